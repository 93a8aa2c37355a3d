"""Tools of a service for one model: the list that its API takes, chosen by a query, and what carries out its calls."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from bespeak.agent.tools.tool_runner import MOST, Confirm, ToolRunner, ToolService, Wait
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import tool_names
from bespeak.documents.projections.model_tools.tools import DEFERRING, STYLES, definitions, make_model_tools
from bespeak.errors import ConfigError

FEW: Final = 10  # number of tools that a query chooses unless another one is given


def choose(
    endpoints: Sequence[Endpoint], style: str, *, query: str | None = None, limit: int | None = None
) -> list[tuple[str, str]]:
    """Return the keys of the endpoints, for a query the best. Raises ConfigError if the provider takes fewer."""
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    if query is not None:
        from bespeak.contract.endpoint_index import EndpointIndex  # noqa: PLC0415 - only queries need the language data

        ranked = EndpointIndex(listed, tool_names(listed)).rank(query)
        listed = [listed[number] for _, number in ranked[: FEW if limit is None else limit]]
    elif limit is not None:
        raise ConfigError("limit needs a query, which says which tools are the best.")
    most = STYLES[style].tools if style in STYLES else None  # a framework may use any provider
    if most is not None and len(listed) > most:
        advice = "choose some with query and limit"
        raise ConfigError(f"{style} takes at most {most} tools in a request; there are {len(listed)}: {advice}.")
    return [endpoint.key for endpoint in listed]


APPROVAL: Final = "approval"  # value of `confirm` that leaves the question to the framework's own approval of calls
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
    """Make the tools of a service; `wait` is for threads. Raises ConfigError if the options do not fit the style."""
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
