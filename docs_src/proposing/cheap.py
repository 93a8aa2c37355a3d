import asyncio

import bespeak

AGENT = "0a3f" * 16


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1", agent_id=AGENT) as hotel:
        cheap = await hotel.propose(
            "FIND",
            "/rooms/cheap",
            given={"max_price": int},
            needs=["rooms[].room_id:string", "rooms[].price:integer"],
            intent="Find the rooms that cost at most a price.",
        )
        print(cheap.endpoint, cheap.endpoint.semantic.impact)
        for step in cheap.explanation:
            print(step)
        found = await cheap.call(max_price=9500)
        print([room["room_id"] for room in found["rooms"]])


asyncio.run(main())
