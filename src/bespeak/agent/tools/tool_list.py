"""Tools of a service for one model: the list that its API takes, and what carries out its calls."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from bespeak.agent.tools.choice import choose
from bespeak.agent.tools.framework import Wait
from bespeak.agent.tools.tool_result import MOST
from bespeak.agent.tools.tool_runner import Confirm, ToolRunner
from bespeak.agent.tools.tool_service import ToolService
from bespeak.documents.projections.model_tools.definition import DEFERRING, definitions
from bespeak.documents.projections.model_tools.model_tool import make_model_tools
from bespeak.documents.projections.model_tools.style import STYLES
from bespeak.errors import ConfigError

APPROVAL: Final = "approval"
"""Value of `confirm` that leaves the question to the framework's own approval of calls."""

_FRAMEWORKS: Final[Mapping[str, tuple[str, str, bool]]] = {
    "langchain": ("langchain", "openai", False),
    "openai-agents": ("openai_agents", "openai-responses", True),
    "pydantic-ai": ("pydantic_ai", "openai", False),
}
"""Frameworks: the module of the adapter, the style of schemas, and whether they may be strict. The other frameworks
convert schemas themselves, for any provider.
"""


class ToolList(list[Any]):
    """What to send as `tools`. `run` and `run_all` carry out what the model calls."""

    def __init__(self, entries: list[Any], names: tuple[str, ...], runner: ToolRunner) -> None:
        super().__init__(entries)
        self.names = names
        """Names of the tools, in order."""
        self._runner = runner

    async def run(self, call: Any) -> dict[str, Any]:
        """Carry out one call of the model and return the message for it, whether it succeeds or not.

        The call is an object of the provider's package or a dictionary: an entry of `tool_calls` (Chat Completions), a
        `function_call` item (Responses), a `tool_use` block (Anthropic), a part with a `function_call` (Gemini), or a
        dictionary with `name`, `arguments` and `id`.
        """
        return await self._runner.run(call)

    async def run_all(self, message: Any) -> list[dict[str, Any]]:
        """Carry out all calls in a message of the model at the same time and return the messages for them, in order."""
        return await self._runner.run_all(message)


class SyncToolList(ToolList):
    """A ToolList whose methods block."""

    def __init__(self, tools: ToolList, wait: Wait) -> None:
        super().__init__(list(tools), tools.names, tools._runner)
        self._wait = wait

    def run(self, call: Any) -> dict[str, Any]:  # type: ignore[override] # the blocking twin
        """Carry out one call of the model and return the message for it."""
        done: dict[str, Any] = self._wait(super().run(call))
        return done

    def run_all(self, message: Any) -> list[dict[str, Any]]:  # type: ignore[override] # the blocking twin
        """Carry out all calls in a message of the model and return the messages for them."""
        done: list[dict[str, Any]] = self._wait(super().run_all(message))
        return done


async def list_tools(
    service: ToolService,
    style: str,
    *,
    strict: bool = True,
    query: str | None = None,
    limit: int | None = None,
    defer: bool = False,
    confirm: Confirm | Literal["approval"] | None = None,
    conversation: str = "",
    max_result: int = MOST,
    wait: Wait | None = None,
) -> ToolList:
    """Make the tools of a service for a style. `wait` lets frameworks call them from other threads.

    Raises ConfigError if the options do not fit the style.
    """
    module, base, may_be_strict = _FRAMEWORKS.get(style, ("", style, True))
    if base not in STYLES:
        known = ", ".join((*STYLES, *_FRAMEWORKS))
        raise ConfigError(f"{style[:80]!r} is not a style of tools; use one of {known}.")
    if defer and (module or style not in DEFERRING):
        raise ConfigError(f"defer is for {' and '.join(DEFERRING)}; the others have no search.")
    approves = module in ("openai_agents", "pydantic_ai")
    if isinstance(confirm, str) and (str(confirm) != APPROVAL or not approves):
        raise ConfigError("confirm must be a function; openai-agents and pydantic-ai also take 'approval'.")
    endpoints = await service.endpoints()
    chosen = choose(endpoints, base if may_be_strict else style, query=query, limit=limit)
    tools = make_model_tools(endpoints, base, strict=strict and may_be_strict, chosen=chosen)
    asks = None if isinstance(confirm, str) else confirm
    runner = ToolRunner(service, base, tools=tools, confirm=asks, conversation=conversation, max_result=max_result)
    names = tuple(tool.name for tool in tools)
    if not module:
        return ToolList(definitions(tools, style, defer=defer), names, runner)
    adapt = importlib.import_module(f"bespeak.agent.tools.{module}").adapt
    return ToolList(adapt(tools, runner, approval=confirm == APPROVAL, wait=wait), names, runner)
