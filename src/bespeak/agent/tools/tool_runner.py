"""Tools of a service for one model: the list that its API takes, and calls of it: checked, agreed to, carried out."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import importlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal, Protocol

import msgspec

from bespeak.contract.confirmation import LONGEST, declined, list_named, question, too_long_to_show, unlisted
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import tool_names
from bespeak.contract.mcp_tool import PARTIAL, Granting, check_arguments, error_members, invalid_arguments
from bespeak.contract.schema.validation import non_finite
from bespeak.contract.schema.view import members_of
from bespeak.contract.truncation import cut_to_fit
from bespeak.documents.projections.model_tools.tools import (
    DEFERRING,
    STYLES,
    ModelTool,
    RepeatedMemberError,
    definitions,
    make_model_tools,
    name_tools,
)
from bespeak.errors import BespeakError, ConfigError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.json_data import decode_json

Shape = Literal["openai", "openai-responses", "anthropic", "gemini", "plain"]
_PARTS: Final = ("tool_calls", "output", "content", "parts")  # members of a message that list its calls
MOST: Final = 50_000  # characters of a result, unless the program wants another limit
LEAST: Final = 1_000  # least number of characters that a result may be limited to
_MARKER: Final = 300  # characters for what is said beside a cut output


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model wants to be called. Nothing is checked yet."""

    shape: Shape  # provider whose shape the result has to have; `plain` for a dictionary of the application's own
    name: str
    arguments: Any  # arguments as given: an object, or a JSON text
    id: str | None = None


def read_call(call: Any) -> ToolCall:
    """Read a call of a provider's package, or the same as a dictionary. Raises ConfigError for anything else."""
    found = _find_call(_as_data(call))
    if found is None:
        raise ConfigError(
            f"{brief(call)} is not a tool call. Pass a tool call of OpenAI, Anthropic or Gemini, or "
            "{'name': ..., 'arguments': ..., 'id': ...}."
        )
    return found


def read_calls(message: Any) -> list[ToolCall]:
    """Read the calls in a model's message, or in a list of calls and other parts. Other parts are skipped."""
    return [found for part in _parts(message) if (found := _find_call(_as_data(part))) is not None]


def _parts(message: Any) -> Iterator[Any]:
    if isinstance(message, list | tuple):
        yield from message
        return
    data = _as_data(message)
    if _find_call(data) is not None:
        yield data
    listed = next((data[name] for name in _PARTS if isinstance(data.get(name), list)), None)
    if listed is None and isinstance(data.get("candidates"), list) and data["candidates"]:
        yield from _parts(_as_data(data["candidates"][0]).get("content"))
    yield from listed or ()


def _find_call(data: Mapping[str, Any]) -> ToolCall | None:
    kind = data.get("type")
    function = data.get("function")
    if isinstance(function, Mapping):
        return _made("openai", function, "arguments", data.get("id"))
    if kind == "function_call":
        return _made("openai-responses", data, "arguments", data.get("call_id"))
    if kind == "tool_use":
        return _made("anthropic", data, "input", data.get("id"))
    part = data.get("function_call") or data.get("functionCall")
    if isinstance(part, Mapping):
        return _made("gemini", part, "args", part.get("id"))
    if kind in (None, "tool_call"):
        key = next((name for name in ("arguments", "args", "input") if name in data), None)
        return None if key is None else _made("plain", data, key, data.get("id"))
    return None


def _made(shape: Shape, data: Mapping[str, Any], arguments: str, call_id: Any) -> ToolCall | None:
    name = data.get("name")
    if not isinstance(name, str):
        return None
    given = data.get(arguments)
    # A tool without parameters: some providers send nothing, others an empty text.
    return ToolCall(shape, name, {} if given is None or given == "" else given, str(call_id) if call_id else None)


def _as_data(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        data = dump()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        data = dataclasses.asdict(value)
    else:
        data = None
    return data if isinstance(data, Mapping) else {}


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a model is told about its call."""

    output: Any = None  # output of the endpoint: JSON data or text
    error: Mapping[str, Any] | None = None  # code, message, details and remedy of a refusal; None after a success

    @property
    def text(self) -> str:
        """The result as a text: JSON, unless the output is a text itself."""
        if self.error is not None:
            return _json({"error": self.error})
        return self.output if isinstance(self.output, str) else _json(self.output)

    def message(self, call: ToolCall) -> dict[str, Any]:
        """Return the result in the shape of the call."""
        match call.shape:
            case "openai":
                return {"role": "tool", "tool_call_id": call.id or "", "content": self.text}
            case "openai-responses":
                return {"type": "function_call_output", "call_id": call.id or "", "output": self.text}
            case "anthropic":
                failed = {"is_error": True} if self.error is not None else {}
                return {"type": "tool_result", "tool_use_id": call.id or "", "content": self.text, **failed}
            case "gemini":
                response = {"output": self.output} if self.error is None else {"error": self.error}
                named = {"id": call.id} if call.id else {}
                return {"functionResponse": {**named, "name": call.name, "response": response}}
            case _:
                named = {"id": call.id} if call.id else {}
                return {**named, "name": call.name, "content": self.text, "is_error": self.error is not None}


def bounded(result: ToolResult, most: int, endpoint: Endpoint) -> ToolResult:
    """Cut a result that is too long by the contract, and say what it lacks, as over MCP."""
    if len(result.text) <= most:
        return result
    if result.error is not None:
        return ToolResult(error=cut_to_fit(dict(result.error), most - _MARKER, members_of({})).output)
    found = cut_to_fit(result.output, most - _MARKER, members_of(endpoint.output_schema))
    rest = "Call again with arguments that match less, or page by page if there are arguments for it."
    return ToolResult({PARTIAL: {"output": found.output, "left_out": found.left_out, "rest": rest}})


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class ToolService(Protocol):
    """A service whose endpoints a model can call, with the authority of its client."""

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints. The same object is returned until they change; `refresh` looks for changes."""

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if the service itself lets another party confirm every call of an endpoint."""

    def lacking(self, endpoint: Endpoint) -> list[str]:
        """Return the scopes that a call needs and the client is known not to have."""

    async def call(self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
        """Call an endpoint and return the outcome, whatever it is."""


_GRANTING: Final = Granting(
    lambda scopes: f"in the program: bespeak.connect(..., scopes={list(scopes)!r})",
    "in the program: bespeak.connect with agent_id, scopes or token",
)
_MOST_CALLS: Final = 128  # maximum calls of one message that are carried out
_LONGEST_NAME: Final = 80
_LONGEST_ARGUMENTS: Final = 1_000_000
_LATER: Final = "Tell the user that the service cannot be reached. Nothing was called; try again later."


@dataclass(frozen=True, slots=True)
class Question:
    """A call that cannot be undone, for a person to decide about."""

    text: str
    """What will happen, in the words of the contract, with the arguments."""
    tool: str
    arguments: Mapping[str, Any]
    endpoint: Endpoint

    def __str__(self) -> str:
        return self.text


Confirm = Callable[[Question], bool | Awaitable[bool]]
"""Asks a person: returns True if the call shall run. A plain function runs in a thread of its own, so it may block."""


class ToolRunner:
    def __init__(
        self,
        service: ToolService,
        style: str,
        *,
        tools: Iterable[ModelTool] | None = None,
        confirm: Confirm | None = None,
        conversation: str = "",
        max_result: int = MOST,
    ) -> None:
        """Carry out calls of `tools`, or of all; `conversation` tells apart ids that are unique only in one."""
        if max_result < LEAST:
            raise ConfigError(f"max_result must be at least {LEAST:,}; got {max_result}.")
        self._service = service
        self._style = style
        self._confirm = confirm
        self._conversation = conversation
        self._max_result = max_result
        self._asking = asyncio.Lock()
        self._offered = None if tools is None else {tool.name: tool for tool in tools}
        self._endpoints: Sequence[Endpoint] = ()
        self._named: dict[str, Endpoint] = {}
        self._tools: dict[str, ModelTool] = {}

    async def run(self, call: Any) -> dict[str, Any]:
        read = read_call(call)
        return (await self.result(read)).message(read)

    async def run_all(self, message: Any) -> list[dict[str, Any]]:
        calls = read_calls(message)
        done = await asyncio.gather(*map(self.result, calls[:_MOST_CALLS]))
        late = ToolResult(error={"code": "too-many-calls", "message": f"At most {_MOST_CALLS} calls run at once."})
        results = [*done, *[late] * (len(calls) - len(done))]
        return [result.message(call) for call, result in zip(calls, results, strict=True)]

    async def result(self, call: ToolCall, *, agreed: bool = False) -> ToolResult:
        """Carry out a call. `agreed` is True if a person has agreed to it already."""
        try:
            tool = await self._find(call.name)
        except BespeakError as error:  # the client says what failed and what may help
            return ToolResult(error={"code": "service-not-reached", "message": str(error), "remedy": _LATER})
        if tool is None:
            return ToolResult(error=self._unknown(call.name))
        outcome = await self._outcome(tool, call, agreed=agreed)
        refusal = None if outcome.ok else error_members(tool.endpoint, outcome, _GRANTING)
        return bounded(ToolResult(outcome.output, refusal), self._max_result, tool.endpoint)

    async def _find(self, name: str) -> ModelTool | None:
        """Find a tool by its name; look for new endpoints if it is not known."""
        if self._offered is not None:
            return self._offered.get(name)
        for refresh in (False, True):
            endpoints = await self._service.endpoints(refresh=refresh)
            if endpoints is not self._endpoints:
                self._endpoints, self._named, self._tools = endpoints, name_tools(endpoints, self._style), {}
            if name in self._named:
                if name not in self._tools:
                    self._tools[name] = make_model_tools(endpoints, self._style, chosen=[self._named[name].key])[0]
                return self._tools[name]
        return None

    def _unknown(self, name: str) -> dict[str, Any]:
        near = get_close_matches(name[:_LONGEST_NAME], self._named if self._offered is None else self._offered, 3)
        remedy = f"Call one of these instead: {', '.join(near)}." if near else "Call only the tools that are listed."
        return {"code": "unknown-tool", "message": f"There is no tool {name[:_LONGEST_NAME]!r}.", "remedy": remedy}

    async def _outcome(self, tool: ModelTool, call: ToolCall, *, agreed: bool) -> Outcome:
        arguments = _arguments(tool, call.arguments)
        if isinstance(arguments, Outcome):
            return arguments
        if not agreed and self.must_ask(tool):
            refusal = self._lacking(tool) or await self._ask(tool, arguments)
            if refusal is not None:
                return refusal
        headers = self._headers(tool, call, arguments)
        outcome = await self._service.call(tool.endpoint, arguments, headers)
        case_id = outcome.confirmation_id
        if case_id is None:
            return outcome
        if outcome.error.get("confirmation_status") == "accepted":
            return await self._service.call(tool.endpoint, arguments, {**headers, "Confirmation-ID": case_id})
        remedy = "Tell the user that another party has to confirm it. Then repeat the call unchanged."
        return Outcome(outcome.status, error={"remedy": remedy, **outcome.error})

    def must_ask(self, tool: ModelTool) -> bool:
        """Return True if a person has to agree to calls of a tool before they run."""
        endpoint = tool.endpoint
        return tool.is_irreversible and endpoint.confirm is None and not self._service.is_confirmed(endpoint)

    def _lacking(self, tool: ModelTool) -> Outcome | None:
        """Refuse a call for which the client lacks authority, so that no person is asked in vain."""
        missing = self._service.lacking(tool.endpoint)
        if not missing:
            return None
        message = f"{tool.name} needs the scopes {', '.join(missing)}, which this client does not have."
        return refused(Refused(status.SCOPE_VIOLATION, "scope-violation", message, {"missing_scopes": missing}))

    async def _ask(self, tool: ModelTool, arguments: Mapping[str, Any]) -> Outcome | None:
        if self._confirm is None:
            message = f"{tool.name} cannot be undone, so a person must confirm it, and this program cannot ask one."
            remedy = "Tell the user. The program has to pass confirm=, a function that asks a person."
            return refused(Refused(status.AUTHORIZATION_REQUIRED, "confirmation-required", message, {"remedy": remedy}))
        calls = list_named(tool.endpoint, arguments, await self._service.endpoints())
        if isinstance(calls, Fault):
            return refused(unlisted(tool.name, calls))
        text = question(tool, arguments, calls)
        if len(text) > LONGEST:
            return refused(too_long_to_show(tool, text, "Or let the user call it with `bespeak call`."))
        asked = Question(text, tool.name, arguments, tool.endpoint)
        async with self._asking:  # one question after the other: a person reads one at a time
            if inspect.iscoroutinefunction(self._confirm):
                answer = await self._confirm(asked)
            else:
                answer = await asyncio.to_thread(self._confirm, asked)
                answer = await answer if inspect.isawaitable(answer) else answer
        return None if answer is True else declined(tool)

    def _headers(self, tool: ModelTool, call: ToolCall, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Give a call that changes something a key, so that it runs once however often the conversation is retried."""
        if call.id is None or tool.endpoint.semantic.impact == "informational":
            return {}
        given = msgspec.json.encode([self._conversation, call.id, call.name, arguments], order="sorted")
        return {IDEMPOTENCY_KEY: f"tool-{hashlib.sha256(given).hexdigest()[:40]}"}


async def run_tool(service: ToolService, call: Any, **options: Any) -> dict[str, Any]:
    """Carry out one call of any endpoint, with options of a ToolRunner; return its result in the shape of the call."""
    style = read_call(call).shape
    return await ToolRunner(service, "openai" if style == "plain" else style, **options).run(call)


def _arguments(tool: ModelTool, given: Any) -> dict[str, Any] | Outcome:
    try:
        data = _decoded(given)
        if not isinstance(data, dict):
            return invalid_arguments(f"The arguments must be an object; got {brief(data)}.")
        made = tool.restorer.restore(data)
    except RepeatedMemberError as error:
        return invalid_arguments(f"The arguments are not usable: {error}.")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:  # msgspec's and Unicode errors are these
        return invalid_arguments(f"The arguments are not valid JSON: {error}.")
    if not isinstance(made, dict):
        return invalid_arguments(f"The arguments must be an object; got {brief(made)}.")
    return check_arguments(tool.endpoint, tool.validator, made) or made


def _decoded(given: Any) -> Any:
    """Return the JSON data of arguments, which are a text or data already. Raises an error if they are not JSON."""
    text = given.encode(errors="surrogatepass") if isinstance(given, str) else given
    if not isinstance(text, bytes):
        text = msgspec.json.encode(given)
        if infinite := non_finite(given):
            raise ValueError(infinite[0].message)
    if len(text) > _LONGEST_ARGUMENTS:
        raise ValueError(f"they have {len(text):,} bytes, more than {_LONGEST_ARGUMENTS:,}")
    return decode_json(text)


Wait = Callable[[Coroutine[Any, Any, Any]], Any]  # Runs a coroutine on a blocking client's loop, from another thread.


@contextmanager
def framework_needed(module: str, package: str) -> Iterator[None]:
    """Raise ConfigError with install advice if the import of a framework fails inside the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module:
            raise
        raise ConfigError(f"These tools need the package {package}: pip install {package}") from error


async def carry_out(runner: ToolRunner, call: ToolCall, wait: Wait | None, *, agreed: bool = False) -> ToolResult:
    """Carry out a call in this event loop, or on that of a blocking client."""
    work = runner.result(call, agreed=agreed)
    if wait is None:
        return await work
    done: ToolResult = await asyncio.to_thread(wait, work)
    return done


FEW: Final = 10  # number of tools that a query chooses unless another one is given


def choose(
    endpoints: Sequence[Endpoint], style: str, *, query: str | None = None, limit: int | None = None
) -> list[tuple[str, str]]:
    """Return the keys of the endpoints, for a query the best. Raises ConfigError if the provider takes fewer."""
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    if query is not None:
        from bespeak.contract.matching import EndpointIndex  # noqa: PLC0415 - only queries need the language data

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
"""Frameworks: the name of the adapter, the style of schemas, and whether they may be strict. The other frameworks
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
    adapt = getattr(importlib.import_module("bespeak.agent.tools.frameworks"), f"adapt_{module}")
    return ToolList(adapt(tools, runner, approval=confirm == APPROVAL, wait=wait), names, runner)
