import asyncio

from langchain_core.messages import AIMessage

import bespeak

CALL = {"type": "tool_call", "id": "call_1", "name": "query_rooms", "args": {"beds": 3}}


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1") as hotel:
        tools = {tool.name: tool for tool in await hotel.tools("langchain", query="find a room", limit=2)}
        # answer = await ChatOpenAI(...).bind_tools(list(tools.values())).ainvoke(messages)
        answer = AIMessage(content="", tool_calls=[CALL])
        for call in answer.tool_calls:
            message = await tools[call["name"]].ainvoke(call)
            print(message.status, message.content[:60])


asyncio.run(main())
