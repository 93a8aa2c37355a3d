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

    def buy(item: str, value: str, *, now: bool = True, budget: str = "EUR=80") -> dict:
        given = {
            "item": item,
            "principal_id": AGENT,
            "amount": {"value": value, "currency": "EUR"},
            "confirm_immediately": now,
        }
        reply = shop.request("PURCHASE", "/", given, headers={**merchant, "Budget-Limit": budget})
        if reply.error is not None:
            return {"status": reply.status, "code": reply.error.code}
        return reply.output

    print(buy("lamp", "30.00")["status"])
    print(buy("sofa", "95.00"))
    print(buy("piano", "90.00", budget="EUR=900"))

    chair = buy("chair", "20.00", now=False)
    print(chair["status"])
    print(shop.call("CONFIRM", "/", target_id=chair["hold_id"], status="accepted")["purchase"]["status"])

    back = shop.call("CANCEL", "/", target_id=chair["purchase_id"], refund_policy="full")
    print(back["status"], back["refund"])
