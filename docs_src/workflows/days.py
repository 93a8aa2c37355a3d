import bespeak

AGENT = "0a3f" * 16
CALLS = [{"method": "BOOK", "path": "/press", "parameters": {"day": day}} for day in ("Thu", "Mon", "Fri")]

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT) as press:
    receipt = press.call("BATCH", "/", calls=CALLS, partial_success=True)
    print(receipt["status"], receipt["succeeded"], receipt["failed"])
    print([call.get("output") or call["error"]["code"] for call in receipt["results"]])
