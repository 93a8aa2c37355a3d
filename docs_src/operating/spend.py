import asyncio

import bespeak


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1") as desk:
        for limit in ("USD=0.05", "USD=0.01, tokens=5000"):
            reply = await desk.request(
                "SUMMARIZE", "/letter", {"text": "All is well."}, headers={"Budget-Limit": limit}
            )
            print(reply.status, reply.headers["cost-estimate"])
            if reply.status == 456:
                print(reply.body.decode())


asyncio.run(main())
