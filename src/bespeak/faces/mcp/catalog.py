"""What an MCP server offers: tools, a search if there are too many, prompts and resources, also of upstreams."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, Final, Protocol, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from bespeak.contract.confirmation import ListedCall
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.endpoint_names import group_of, grouped
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.mcp_tool import META, Tool, check_arguments, make_tools, offered_by
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.faces.mcp.results import KeptResults
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.runtime.methods.query import Fetch, list_resources, read_resource, resources_of
from bespeak.runtime.route_table import RouteTable

Arguments = Mapping[str, Any]
USUALLY_FOUND: Final = 5  # number of capabilities that a search returns unless it says otherwise
_LONGEST_NAME: Final = 80
_MOST_DESCRIBED: Final = 400  # characters for the namespaces in the description of the search
_FIND: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": "What is to be done, and to what: cancel an order",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 20, "default": USUALLY_FOUND},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_CALL: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 200},
        "arguments": {"type": "object", "description": "Arguments that match the inputSchema of the capability"},
        "fields": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Only these members of the output: rooms.room_id",
        },
        "compact": {"type": "boolean", "description": "Leave out empty members"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_MOST_INSTRUCTIONS: Final = 1_500  # characters for the namespaces in the instructions of a server


@dataclass(frozen=True, slots=True)
class Wanted:
    tool: Tool
    arguments: dict[str, Any]
    shape: Mapping[str, Any] = field(default_factory=dict)  # `fields` and `compact`, as they were given


class CapabilitySearch:
    """The two tools that stand for many."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._namespaces = list(grouped(tool.endpoint for tool in tools.values()))
        finding, calling = _free_name("find_capability", tools), _free_name("call_capability", tools)
        named = join_within(self._namespaces, _MOST_DESCRIBED)
        self.finder = _own_tool(
            finding,
            _FIND,
            f"Find capabilities of this service by what they do. There are {len(tools)}, in {named}. "
            f"Returns name, inputSchema and impact of each; call one with {calling}.",
            "informational",
        )
        # Annotations of the worst that a capability can do; clients see no others.
        self.caller = _own_tool(
            calling,
            _CALL,
            f"Call a capability by the name that {finding} returned. "
            "If it cannot be undone, a person confirms the call before it runs.",
            "irreversible",
        )

    @cached_property
    def _index(self) -> EndpointIndex:
        return EndpointIndex([tool.endpoint for tool in self._tools.values()], list(self._tools))

    def find(self, arguments: dict[str, Any]) -> Outcome:
        if (invalid := check_arguments(self.finder.endpoint, self.finder.input, arguments)) is not None:
            return invalid
        query, listed = arguments["query"], list(self._tools.values())
        exact = self._tools.get(query.strip())
        ranked = [listed[place] for _, place in self._index.rank(query)]
        found = ranked if exact is None else [exact, *(tool for tool in ranked if tool is not exact)]
        shown = found[: int(arguments.get("limit", USUALLY_FOUND))]
        output: dict[str, Any] = {"capabilities": [_describe(tool) for tool in shown], "matches": len(found)}
        if not found:
            output["namespaces"] = self._namespaces[:100]
            output["advice"] = "Nothing shares a word with the query. Name the thing, as one of the namespaces does."
        return Outcome(status.OK, output)

    def unwrap(self, arguments: dict[str, Any]) -> Wanted | Outcome:
        """Return the capability that is to be called, or a refusal."""
        if (invalid := check_arguments(self.caller.endpoint, self.caller.input, arguments)) is not None:
            return invalid
        name = arguments["name"]
        if (tool := self._tools.get(name)) is not None:
            return Wanted(tool, arguments.get("arguments", {}), arguments)
        near = get_close_matches(name[:_LONGEST_NAME], self._tools, 3)
        meant = f"; did you mean {' or '.join(near)}?" if near else "."
        message = f"This service has no capability {name[:_LONGEST_NAME]!r}{meant}"
        remedy = f"Search with {self.finder.name} and call with a name that it returns."
        return refused(Refused(status.NOT_FOUND, "capability-not-found", message, {"remedy": remedy}))


def join_within(names: Iterable[str], most: int) -> str:
    """Join names by commas; beyond `most` characters, say how many are left out."""
    every = list(names)
    shown = sum(size <= most for size in accumulate(len(name) + 2 for name in every))
    return ", ".join(every[:shown]) + (f" and {len(every) - shown} more" if shown < len(every) else "")


def _describe(tool: Tool) -> dict[str, Any]:
    told = {member: tool.entry[member] for member in ("description", "inputSchema", "annotations")}
    return {"name": tool.name, **told, "impact": tool.endpoint.semantic.impact}


def _free_name(name: str, tools: Mapping[str, Tool]) -> str:
    while name in tools:
        name += "_"
    return name


def _own_tool(name: str, schema: dict[str, Any], description: str, impact: str) -> Tool:
    """Make a tool of the server itself, of an endpoint that exists nowhere else."""
    reads = impact == "informational"
    endpoint = Endpoint(
        method="SEARCH" if reads else "INVOKE",
        path="/capabilities",
        description=description,
        semantic=Semantic(
            intent=description,
            actor="agent",
            outcome="",
            capability="discovery" if reads else "domain_spanning",
            confidence=1.0,
            impact=impact,
            is_idempotent=reads,
            mcp_tool_name=name,
        ),
        input_schema=schema,
        output_schema={"type": "object"},
        handler=OpaqueHandler(type="registered_function" if reads else "external_service"),
    )
    (tool,) = make_tools([endpoint]).values()
    entry = {member: value for member, value in tool.entry.items() if member != "_meta"}
    return replace(tool, entry={**entry, "description": description})


class ToolCatalog:
    def __init__(self, endpoints: Sequence[Endpoint], settings: McpSettings) -> None:
        # Names are given before tools are left out, so that a tool has the same name in every toolset.
        every = make_tools(endpoints)
        sets = frozenset(settings.toolsets)
        # Tools that are not listed can be called all the same.
        self.tools = {name: tool for name, tool in every.items() if not sets or group_of(tool.endpoint) in sets}
        self.offers = [endpoint for endpoint in endpoints if endpoint.is_listed and offered_by(endpoint) is not None]
        """Prompts and resources of upstream servers."""
        self.search = CapabilitySearch(self.tools)
        self.is_searched = 0 < settings.tools_listed < len(self.tools)  # the search is listed in place of the tools
        self.namespaces = list(grouped(tool.endpoint for tool in every.values()))  # the largest first
        self.missing = sorted(sets.difference(self.namespaces))  # toolsets that no endpoint belongs to

    @cached_property
    def entries(self) -> list[Mapping[str, Any]]:
        listed = (self.search.caller, self.search.finder) if self.is_searched else self.tools.values()
        return [tool.entry for tool in listed]

    def instructions(self, name: str) -> str:
        errors = "Results with isError hold an error with a code and a remedy."
        if not self.is_searched:
            return f"Tools of {name}. {errors}"
        groups = grouped(tool.endpoint for tool in self.tools.values())
        verbs = {name: list(dict.fromkeys(one.method.lower() for one in members)) for name, members in groups.items()}
        named = (f"{name} ({', '.join(some[:3])})" for name, some in verbs.items())
        finder, caller = self.search.finder.name, self.search.caller.name
        return (
            f"{name} has {len(self.tools)} capabilities. Find them with {finder}, call them with {caller}. "
            f"{errors} Namespaces, with some of what can be done: {join_within(named, _MOST_INSTRUCTIONS)}."
        )


class Backend(Protocol):
    """A service that can be called: inside this process, or at an address."""

    @property
    def name(self) -> str: ...
    @property
    def server_id(self) -> str: ...
    @property
    def version(self) -> str: ...  # of its contract

    # The same object is returned until they change; `refresh` looks for changes.
    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]: ...
    # What exists for the caller of a request, which is None over stdio; None if that is what exists for everyone.
    def own(self, request: Any) -> RouteTable | None: ...
    # The manifest or the AGIS document, as the caller may see it; None if there is none for it.
    async def document(self, media_type: str, request: Any) -> bytes | None: ...
    def caller(self, request: Any) -> str: ...  # identifies the caller of a request, for confirmations
    # Everyone behind a request, as far as it is known: none of them may confirm a call of it.
    def parties(self, request: Any) -> tuple[str, ...]: ...
    # The calls that a composite would make; nothing for another endpoint. A fault says why they cannot be listed.
    async def calls(self, endpoint: Endpoint, arguments: Arguments, request: Any) -> tuple[ListedCall, ...] | Fault: ...
    # True if the service itself lets another party confirm every call of an endpoint.
    def is_confirmed(self, endpoint: Endpoint) -> bool: ...
    # Refuses what the service is known to refuse (authority, purchases), so that no user is asked in vain.
    def refuse(
        self, endpoint: Endpoint, request: Any, arguments: Arguments, headers: Mapping[str, str]
    ) -> Outcome | None: ...
    # With the authority of the caller. `headers` are added to those of the backend.
    async def call(
        self, endpoint: Endpoint, arguments: Arguments, headers: Mapping[str, str], request: Any
    ) -> Outcome: ...


class Offers:
    """The endpoints that read prompts and resources. The texts are those of the reviewed endpoint, not the server's."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        """Index endpoints. Of several with the same name or URI, the first counts."""
        self.prompts: dict[str, Endpoint] = {}
        self.resources: dict[str, Endpoint] = {}
        for endpoint in endpoints:
            server = offered_by(endpoint)
            if server is not None and server.prompt:
                self.prompts.setdefault(server.prompt, endpoint)
            elif server is not None:
                self.resources.setdefault(server.resource, endpoint)

    def prompt_entries(self, taken: Container[str]) -> Iterator[dict[str, Any]]:
        """Yield the entries of prompts/list, without the names that are taken."""
        for name, endpoint in self.prompts.items():
            if name not in taken:
                yield {
                    "name": name,
                    "description": endpoint.description,
                    "arguments": list(_arguments(endpoint.input_schema)),
                    "_meta": {f"{META}endpoint": str(endpoint)},
                }

    @property
    def resource_entries(self) -> Mapping[str, dict[str, Any]]:
        """Entries of resources/list, by URI."""
        return {
            uri: {
                "uri": uri,
                "name": endpoint.path.rpartition("/")[2],
                "description": endpoint.description,
                "_meta": {f"{META}endpoint": str(endpoint)},
            }
            for uri, endpoint in self.resources.items()
        }


def _arguments(schema: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        described = {"description": part["description"]} if "description" in part else {}
        yield {"name": name, **described, "required": name in required}


TASK: Final = "task"  # name of the one argument
LONGEST_TASK: Final = 4_000
_LONGEST: Final = 12_000  # maximum characters of the text without the task
_LONGEST_LINE: Final = 400
_IMPACTS: Final[Mapping[str, str]] = {
    "informational": "These only read:",
    "reversible": "These change something that can be undone:",
    "irreversible": "These cannot be undone:",
}


@dataclass(frozen=True, slots=True, eq=False)
class NamespacePrompt:
    entry: Mapping[str, Any]  # entry of prompts/list
    text: str

    def message(self, task: str) -> str:
        """Return the text of the message; `task` may be empty."""
        return f"{self.text}\n\nTask: {task}" if task else self.text


def make_prompts(service: str, tools: Iterable[Tool]) -> dict[str, NamespacePrompt]:
    """Make a prompt for each namespace, by default the first segment of a path, in the order of the names."""
    groups: dict[str, list[Tool]] = {}
    for tool in tools:
        groups.setdefault(group_of(tool.endpoint), []).append(tool)
    return {name: _prompt(service, name, groups[name]) for name in sorted(groups)}


def _prompt(service: str, name: str, tools: list[Tool]) -> NamespacePrompt:
    entry = {
        "name": name,
        "title": f"{service}: {name}",
        "description": f"Explains what {service} does with {name}, and which of {len(tools)} tools to use for what.",
        "arguments": [{"name": TASK, "description": "What is to be done, in your words.", "required": False}],
    }
    head = f"{service} offers these tools for {name}. Choose a tool by what it does, and pass only declared arguments."
    tail = (
        "Read before you change something. If a call is refused, its result has a code and a remedy: follow it. "
        "Never repeat a call that may have changed something, unless the tool is idempotent."
    )
    lines, room = [], _LONGEST - len(head) - len(tail)
    left = len(tools)
    for line, is_tool in _lines(tools):
        room -= len(line) + 1
        if room < 0:
            lines.append(f"And {left} more: see the list of tools.")
            break
        lines.append(line)
        left -= is_tool
    return NamespacePrompt(entry, "\n".join((head, *lines, "", tail)))


def _lines(tools: list[Tool]) -> Iterator[tuple[str, bool]]:
    """Yield the lines, and whether each is a tool: the harmless ones first, deprecated ones last."""
    for impact, heading in _IMPACTS.items():
        chosen = [tool for tool in tools if _impact(tool) == impact]
        chosen.sort(key=lambda tool: tool.endpoint.deprecated is not None)
        if chosen:
            yield f"\n{heading}", False
            yield from ((_line(tool), True) for tool in chosen)


def _impact(tool: Tool) -> str:
    """Return the impact of a tool: the worst one if the service does not say it."""
    impact = tool.endpoint.semantic.impact
    return impact if impact in _IMPACTS else "irreversible"


def _line(tool: Tool) -> str:
    """Describe a tool on one line: the lines of its description, its required arguments, whether it may be repeated."""
    described = str(tool.entry["description"]).splitlines()
    required = tool.endpoint.input_schema.get("required") or []
    notes = [line if line.endswith((".", "!", "?", "]")) else f"{line}." for line in described if line]
    if isinstance(required, list) and required:
        notes.append(f"Requires {', '.join(map(str, required))}.")
    if tool.endpoint.error_names:
        notes.append(f"May fail with {', '.join(tool.endpoint.error_names)}.")
    if tool.endpoint.semantic.is_idempotent and tool.endpoint.semantic.impact != "informational":
        notes.append("It is idempotent.")
    text = f"- {tool.name}: {' '.join(notes)}"
    return text if len(text) <= _LONGEST_LINE else f"{text[: _LONGEST_LINE - 3]}..."


_logger = logging.getLogger(__name__)
_NOT_FOUND: Final = -32002  # code for an unknown resource before 2026-07-28, which uses that of invalid parameters
_LONGEST_ERROR: Final = 1_000
Context = ServerRequestContext[Any, Any]
Page = types.PaginatedRequestParams | None
ResultT = TypeVar("ResultT")


@dataclass(eq=False)
class ResourceReader:
    _backend: Backend
    _catalog: Callable[[], Awaitable[ToolCatalog]]
    _meet: Callable[[Context], None]  # called for every client that reads a list
    _kept: KeptResults | None  # results that were too long
    _described: ToolCatalog | None = None
    _prompts: dict[str, NamespacePrompt] = field(default_factory=dict)
    _offers: Offers = field(default_factory=lambda: Offers(()))

    @property
    def uris(self) -> Iterable[str]:
        return resources_of(self._backend.server_id)

    async def list_resources(self, context: Context, _: Page) -> types.ListResourcesResult:
        self._meet(context)
        entries = await _attempt("The resources", list_resources(self._backend.server_id, self._fetch(context)))
        await _attempt("The resources", self._read_catalog())
        entries += [entry for uri, entry in self._offers.resource_entries.items() if uri not in self.uris]
        return types.ListResourcesResult(resources=[types.Resource.model_validate(entry) for entry in entries])

    async def list_templates(self, context: Context, _: Page) -> types.ListResourceTemplatesResult:
        """Answer resources/templates/list: there are none."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = None if self._kept is None else self._kept.read(uri, self._backend.caller(context.request))
        if found is None:
            found = await _attempt("The resource", read_resource(self._backend.server_id, uri, self._fetch(context)))
        if found is None:
            await _attempt("The resource", self._read_catalog())
            if (offer := self._offers.resources.get(uri)) is not None:
                contents = await self._call(context, offer, {})
                return types.ReadResourceResult.model_validate({"contents": contents.get("contents", [])})
            code = types.INVALID_PARAMS if context.protocol_version in MODERN_PROTOCOL_VERSIONS else _NOT_FOUND
            raise MCPError(code, f"Resource not found: {uri[:200]}", {"uri": uri[:2000]})
        return types.ReadResourceResult(contents=[types.TextResourceContents.model_validate(found)])

    async def list_prompts(self, context: Context, _: Page) -> types.ListPromptsResult:
        self._meet(context)
        await _attempt("The prompts", self._read_catalog())
        entries = [*(one.entry for one in self._prompts.values()), *self._offers.prompt_entries(self._prompts)]
        return types.ListPromptsResult(prompts=[types.Prompt.model_validate(entry) for entry in entries])

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        await _attempt("The prompt", self._read_catalog())
        prompt, offer = self._prompts.get(params.name), self._offers.prompts.get(params.name)
        if prompt is None and offer is not None:
            return types.GetPromptResult.model_validate(await self._call(context, offer, params.arguments or {}))
        if prompt is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name[:80]}")
        arguments = params.arguments or {}
        unknown = [name for name in arguments if name != TASK]
        if unknown:
            raise MCPError(types.INVALID_PARAMS, f"Unknown argument: {unknown[0][:80]}. There is only {TASK}.")
        task = arguments.get(TASK, "").strip()
        if len(task) > LONGEST_TASK:
            raise MCPError(types.INVALID_PARAMS, f"{TASK} may have at most {LONGEST_TASK} characters.")
        text = types.TextContent(text=prompt.message(task))
        return types.GetPromptResult(
            description=str(prompt.entry["description"]), messages=[types.PromptMessage(role="user", content=text)]
        )

    def _fetch(self, context: Context) -> Fetch:
        return partial(self._backend.document, request=context.request)

    async def _read_catalog(self) -> None:
        catalog = await self._catalog()
        if catalog is not self._described:
            self._described = catalog
            self._prompts = make_prompts(self._backend.name, catalog.tools.values())
            self._offers = Offers(catalog.offers)

    async def _call(self, context: Context, offer: Endpoint, arguments: Mapping[str, str]) -> Any:
        """Read a prompt or a resource of an upstream, through the gates of its endpoint."""
        outcome = await _attempt("What the upstream offers", self._backend.call(offer, arguments, {}, context.request))
        if outcome.ok:
            return outcome.output
        message = str(outcome.error.get("message", "It cannot be read."))
        raise MCPError(types.INVALID_PARAMS, message[:_LONGEST_ERROR], {"code": outcome.error.get("code")})


async def _attempt(what: str, made: Awaitable[ResultT]) -> ResultT:
    """Await something that reads the service. The SDK would send the text of an exception to earlier clients."""
    try:
        return await made
    except Exception as error:
        _logger.error("%s cannot be read", what, exc_info=error)
        raise MCPError(types.INTERNAL_ERROR, f"{what} cannot be read; try again later.") from None
