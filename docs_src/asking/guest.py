import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

import bespeak

NOW = datetime(2026, 11, 19, 9, 0, tzinfo=ZoneInfo("Europe/Zurich"))


def confirm(call: bespeak.Confirmation) -> bool:
    print(call)
    return input("Call it? ") == "yes"


async def main() -> None:
    async with bespeak.Agent(["agtp://127.0.0.1"], confirm=confirm, now=NOW, as_="ann") as agent:
        decided = await agent.decide("find rooms with 3 beds")
        print(decided.place, decided.values)

        done = await agent.carry_out(decided, agreed=True)
        print(done.state, done.output["rooms"][0]["room_id"])

        unknown = await agent.act("what is the capital of France?")
        print(unknown.state)


asyncio.run(main())
