import asyncio

import bespeak


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1", as_="packer", scopes=["orders:pull"]) as packing:
        ended = {}
        while True:
            pulled = await packing.call("PULL", "/", source="orders", max_items=10, **ended)
            if not pulled["items"]:
                break
            ended = {"acknowledge": [], "reject": []}
            for item in pulled["items"]:
                held = {"item_id": item["item_id"], "receipt": item["receipt"]}
                if item["payload"]["count"] > 100:
                    ended["reject"].append({**held, "reason": "No box is that large.", "final": True})
                else:
                    ended["acknowledge"].append({**held, "result": {"box": f"{item['payload']['sku']}-1"}})
                print(item["payload"], "attempt", item["attempts"])


asyncio.run(main())
