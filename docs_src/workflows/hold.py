import bespeak

AGENT = "0a3f" * 16
STEPS = [{"method": "ORDER", "path": "/paper", "parameters": {"paper": "matte", "sheets": 9000}}]

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT) as press:
    receipt = press.call("CHAIN", "/", steps=STEPS, on_failure="escalate")
    print(receipt["status"], receipt["steps"][0]["error"]["code"])

    paused = press.call("PAUSE", "/", workflow_id=receipt["chain_id"], reason="stocktaking")
    print(paused["status"])

    resumed = press.call("RESUME", "/", workflow_id=receipt["chain_id"], resumption_nonce=paused["resumption_nonce"])
    print(resumed["status"])

    print(press.call("CANCEL", "/", target_id=receipt["chain_id"])["status"])
