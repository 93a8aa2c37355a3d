"""A scripted model for Pydantic AI. Loading the package takes half a second, so tests import this when they run."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

__all__ = ["Agent", "DeferredToolRequests", "DeferredToolResults", "TestModel", "returned", "scripted"]


def scripted(*turns: list[tuple[str, Any]]) -> FunctionModel:
    """Return a model that makes the given calls, then ends."""
    waiting = list(turns)

    def speak(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
        if not waiting:
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in waiting.pop(0)])

    return FunctionModel(speak)


def returned(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
