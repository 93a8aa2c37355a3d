"""A scripted model for the OpenAI Agents SDK. Loading the SDK takes a second, so tests import this when they run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

__all__ = ["Agent", "Scripted", "converse"]
QUIET = RunConfig(tracing_disabled=True)


async def converse(agent: Agent[Any], said: Any) -> Any:
    """Run an agent until it ends or waits for an approval."""
    return await Runner.run(agent, said, run_config=QUIET)


class Scripted(Model):
    """A model that makes the given calls, then ends, and notes what it is told."""

    def __init__(self, *turns: list[tuple[str, Any]]) -> None:
        self._turns = list(turns)
        self._count = 0
        self.told: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:  # noqa: A002
        if isinstance(input, list):
            self.told = [item["output"] for item in input if item.get("type") == "function_call_output"]
        output: list[Any] = [self._call(*call) for call in self._turns.pop(0)] if self._turns else [_said("Done.")]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def _call(self, name: str, arguments: Any) -> ResponseFunctionToolCall:
        self._count += 1
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return ResponseFunctionToolCall(type="function_call", call_id=f"call_{self._count}", name=name, arguments=text)

    def stream_response(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def _said(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[content])
