import asyncio

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.models.test import TestModel

import bespeak


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1", agent_id="0a3f" * 16, scopes=["booking:*"]) as hotel:
        tools = await hotel.tools("pydantic-ai", query="cancel a reservation", limit=1, confirm="approval")
        agent = Agent(TestModel(), tools=tools, output_type=[str, DeferredToolRequests])
        paused = await agent.run("Cancel my reservation.")
        assert isinstance(paused.output, DeferredToolRequests)
        for call in paused.output.approvals:
            print("approve?", call.tool_name)
        refused = DeferredToolResults(approvals={call.tool_call_id: False for call in paused.output.approvals})
        done = await agent.run(message_history=paused.all_messages(), deferred_tool_results=refused)
        print(done.output)


asyncio.run(main())
