import bespeak

AGENT = "0a3f" * 16
CANDIDATES = [
    {"method": "TRIAGE", "path": "/bills", "when": {"topic": "bill", "amount": {"lt": 1000}}},
    {"method": "TRIAGE", "path": "/questions", "when": {"topic": {"ne": "bill"}}},
]

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT) as desk:
    for payload in ({"topic": "bill", "amount": 80}, {"topic": "parking"}, {"topic": "bill", "amount": 9000}):
        chosen = desk.call(
            "ROUTE", "/", payload=payload, criteria={"prefer": "load"}, candidates=CANDIDATES, fallback="7a4e" * 16
        )
        print(chosen["handler"][:16], chosen.get("output", "in the inbox"))
