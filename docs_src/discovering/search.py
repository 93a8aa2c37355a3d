import asyncio

import bespeak


async def main() -> None:
    async with bespeak.connect("http://127.0.0.1:8000") as flights:
        found = await flights.call("search_flights", **{"from": "ZRH", "to": "LIS"})
        print(found["flights"][0]["id"])

        refused = await flights.request("search_flights", input={"from": "ZRH"})
        if refused.error is not None:
            print(refused.status, refused.error.code)


asyncio.run(main())
