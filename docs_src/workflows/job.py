import sys

import bespeak

AGENT = "0a3f" * 16
SHEETS = int(sys.argv[1])

STEPS = [
    {"name": "stock", "method": "QUERY", "path": "/papers", "parameters": {"sheets": SHEETS}},
    {
        "name": "press",
        "method": "BOOK",
        "path": "/press",
        "parameters": {"day": sys.argv[2]},
        "compensate": {"method": "CANCEL", "path": "/press", "parameters": {"slot": {"$from": "press.slot"}}},
    },
    {
        "method": "ORDER",
        "path": "/paper",
        "parameters": {"paper": {"$from": "stock.papers[0]"}, "sheets": SHEETS},
    },
]

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT) as press:
    receipt = press.call("CHAIN", "/", steps=STEPS, context_propagation=True, timeout=60)
    for step in receipt["steps"]:
        print(step["method"], step["path"], step["status"], step.get("output") or step["error"]["message"])
    print(receipt["status"])
