import asyncio
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import bespeak


class Scripted(Model):
    """Looks for rooms with three beds, then repeats the first characters of the answer."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:  # noqa: A002
        told = [item["output"] for item in input if isinstance(item, dict) and "output" in item]
        if told:
            text = ResponseOutputText(type="output_text", text=told[0][:40], annotations=[])
            output: Any = ResponseOutputMessage(
                id="m1", type="message", role="assistant", status="completed", content=[text]
            )
        else:
            output = ResponseFunctionToolCall(
                type="function_call",
                call_id="call_1",
                name="query_rooms",
                arguments='{"beds": 3, "arrival": null, "departure": null}',
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    async with bespeak.connect("agtp://127.0.0.1") as hotel:
        tools = await hotel.tools("openai-agents", confirm="approval")
        agent = Agent("Porter", model=Scripted(), tools=tools)
        done = await Runner.run(agent, "Which rooms have three beds?", run_config=RunConfig(tracing_disabled=True))
        print(done.final_output)


asyncio.run(main())
