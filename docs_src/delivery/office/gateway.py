from typing import Any

from bespeak import Refusal


def send_text(number: str, letter: dict[str, Any]) -> dict[str, Any]:
    if not number.startswith("+"):
        raise Refusal("number_invalid", "Write the number with its country code.")
    print(f"to {number}: {letter['content']}")  # here a real gateway is called
    return {"segments": 1}
