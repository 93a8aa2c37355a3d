"""What an MCP server offers: the service behind it, the tools it lists, and a search if there are too many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, Protocol

from bespeak.contract.confirmation import ListedCall
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.endpoint_names import group_of, grouped
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.mcp_tool import Tool, check_arguments, make_tools, offered_by
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
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
