import hashlib

import bespeak

AGENT = "0a3f" * 16

with bespeak.connect_sync("agtp://127.0.0.1") as anyone:
    manifest = anyone.request("DISCOVER", "/").body

with bespeak.connect_sync("agtp://127.0.0.1", agent_id=AGENT, scopes=["payments:purchase"]) as shop:
    merchant = {
        "Merchant-ID": "shop.acme.example",
        "Merchant-Manifest-Fingerprint": hashlib.sha256(manifest).hexdigest(),
    }

    def buy(name: str, value: str, *, now: bool = True, budget: str = "EUR=80") -> dict:
        given = {
            "item": {"sale": "furniture", "input": {"name": name}},
            "principal_id": AGENT,
            "amount": {"value": value, "currency": "EUR"},
            "confirm_immediately": now,
        }
        reply = shop.request("PURCHASE", "/", given, headers={**merchant, "Budget-Limit": budget})
        if reply.error is not None:
            return {"status": reply.status, "code": reply.error.code}
        return reply.output

    asked = {"item": {"sale": "furniture", "input": {"name": "lamp"}}, "principal_id": AGENT}
    print(shop.call("QUOTE", "/", method="PURCHASE", parameters=asked)["estimated_cost"]["EUR"]["expected"])
    print(buy("lamp", "0.01"))
    lamp = buy("lamp", "50.00")
    print(lamp["status"], lamp["amount"]["value"], lamp["delivered"])
    print(buy("sofa", "95.00"))
    print(buy("piano", "900.00", budget="EUR=900"))
    print(buy("chair", "20.00"))

    held = buy("lamp", "30.00", now=False)
    print(held["status"])
    print(shop.call("CONFIRM", "/", target_id=held["hold_id"], status="accepted")["purchase"]["status"])

    back = shop.call("CANCEL", "/", target_id=held["purchase_id"], refund_policy="full")
    print(back["status"], back["refund"])
