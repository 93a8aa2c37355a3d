import asyncio

import bespeak


async def main():
    async with bespeak.connect("agtp://127.0.0.1") as service:
        async for room in service.stream("QUERY", "/rooms", beds=2):
            print(room["room_id"])
        try:
            async for room in service.stream("QUERY", "/rooms", most=9):
                print(room["room_id"])
        except bespeak.BusinessError as error:
            print("ended early:", error.code)


asyncio.run(main())
