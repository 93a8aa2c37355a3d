import asyncio

import bespeak

AGENT = "0a3f" * 16


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1", agent_id=AGENT, scopes=["booking:room", "calendar:write"]) as hotel:
        manifest = await hotel.discover()
        print(manifest.server.operator, "offers", len(manifest.endpoints), "endpoints")

        found = await hotel.call("QUERY", "/rooms", beds=3, arrival="2027-05-01", departure="2027-05-03")
        room = found["rooms"][0]
        print("room", room["room_id"], "on floor", room["floor"])

        reply = await hotel.request("QUERY", "/availability", {"arrival": "2027-05-01", "departure": "2027-05-03"})
        print(reply.status, [(warning.kind, warning.successor) for warning in reply.warnings])


asyncio.run(main())
