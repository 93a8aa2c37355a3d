"""Search in place of a long list: one tool finds capabilities, another calls one of them by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from bespeak.contract.capability_id import grouped
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_index import EndpointIndex
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.mcp_tool import Tool, make_tools
from bespeak.contract.semantic import Semantic
from bespeak.contract.tool_error import check_arguments
from bespeak.protocol import status
from bespeak.protocol.exchange.outcome import Outcome, refused
from bespeak.protocol.exchange.refusal import Refused

USUAL: Final = 5
"""Number of capabilities that a search returns unless it says otherwise."""
MOST: Final = 20
_LONGEST_NAME: Final = 80
_MOST_DESCRIBED: Final = 400
"""Characters for the namespaces in the description of the search."""
_MOST_NAMESPACES: Final = 100

_FIND: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": "What is to be done, and to what: cancel an order",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool that is to be called, with its arguments."""

    tool: Tool
    arguments: dict[str, Any]
    shape: Mapping[str, Any] = field(default_factory=dict)
    """`fields` and `compact`, as they were given."""


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
        """Return the capabilities that match a query best."""
        invalid = check_arguments(self.finder.endpoint, self.finder.input, arguments)
        if invalid is not None:
            return invalid
        query, listed = arguments["query"], list(self._tools.values())
        exact = self._tools.get(query.strip())
        ranked = [listed[place] for _, place in self._index.rank(query)]
        found = ranked if exact is None else [exact, *(tool for tool in ranked if tool is not exact)]
        shown = found[: int(arguments.get("limit", USUAL))]
        output: dict[str, Any] = {"capabilities": [_describe(tool) for tool in shown], "matches": len(found)}
        if not found:
            output["namespaces"] = self._namespaces[:_MOST_NAMESPACES]
            output["advice"] = "Nothing shares a word with the query. Name the thing, as one of the namespaces does."
        return Outcome(status.OK, output)

    def unwrap(self, arguments: dict[str, Any]) -> Wanted | Outcome:
        """Return the capability that is to be called, or a refusal."""
        invalid = check_arguments(self.caller.endpoint, self.caller.input, arguments)
        if invalid is not None:
            return invalid
        name = arguments["name"]
        tool = self._tools.get(name)
        if tool is not None:
            return Wanted(tool, arguments.get("arguments", {}), arguments)
        near = get_close_matches(name[:_LONGEST_NAME], self._tools, 3)
        meant = f"; did you mean {' or '.join(near)}?" if near else "."
        message = f"This service has no capability {name[:_LONGEST_NAME]!r}{meant}"
        remedy = f"Search with {self.finder.name} and call with a name that it returns."
        return refused(Refused(status.NOT_FOUND, "capability-not-found", message, {"remedy": remedy}))


def join_within(names: Iterable[str], most: int) -> str:
    """Join names by commas; beyond `most` characters, say how many are left out."""
    shown: list[str] = []
    left_out, size = 0, 0
    for name in names:
        size += len(name) + 2
        if size > most:
            left_out += 1
        else:
            shown.append(name)
    return ", ".join(shown) + (f" and {left_out} more" if left_out else "")


def _describe(tool: Tool) -> dict[str, Any]:
    entry = tool.entry
    return {
        "name": tool.name,
        "description": entry["description"],
        "inputSchema": entry["inputSchema"],
        "annotations": entry["annotations"],
        "impact": tool.endpoint.semantic.impact,
    }


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
