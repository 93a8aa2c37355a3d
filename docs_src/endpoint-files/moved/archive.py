from bespeak import Refusal

DEEDS = {"17": "One field by the river."}


def fetch_deed(deed_id: str) -> dict[str, str]:
    if deed_id not in DEEDS:
        raise Refusal("deed_unknown", "There is no such deed.")
    return {"text": DEEDS[deed_id]}
