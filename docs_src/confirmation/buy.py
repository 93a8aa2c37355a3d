import asyncio

import bespeak

TICKET = {"to": "rome", "price": 99.0}


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1", agent_id="a" * 64) as buyer:
        refused = await buyer.request("PURCHASE", "/ticket", TICKET)
        asked = refused.json()["error"]
        print(refused.status, asked["type"], asked["confirmation_status"])

        async with bespeak.connect("agtp://127.0.0.1", agent_id="d" * 64, scopes=["confirmation:decide"]) as desk:
            decision = asked["confirm_with"]
            decided = await desk.request(decision["method"], decision["path"], decision["input"])
            print(decided.status, decided.json()["result"]["status"])

        for price in (420.0, 99.0, 99.0):
            bought = await buyer.request("PURCHASE", "/ticket", {**TICKET, "price": price}, headers=asked["retry_with"])
            print(bought.status, bought.json().get("ticket") or bought.json()["error"]["code"])


asyncio.run(main())
