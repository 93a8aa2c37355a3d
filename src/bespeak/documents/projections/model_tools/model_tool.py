"""Endpoints as tools of a model: names and descriptions as those of MCP, schemas for the provider."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.closing import closed
from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.semantic import IMPACTS
from bespeak.contract.tool_description import describe_tool
from bespeak.contract.tool_name import tool_names
from bespeak.documents.projections.model_tools.conversion import Conversion, convert
from bespeak.documents.projections.model_tools.document import Node, types
from bespeak.documents.projections.model_tools.restoration import Restorer
from bespeak.documents.projections.model_tools.style import STYLES

_STARTS: Final = re.compile(r"[A-Za-z_]")
_LONGEST: Final = 64


@dataclass(frozen=True, eq=False)
class ModelTool:
    """One endpoint that a model can call by name."""

    name: str
    description: str
    endpoint: Endpoint
    conversion: Conversion

    @property
    def is_irreversible(self) -> bool:
        """True if a call cannot be undone."""
        return self.endpoint.semantic.impact == "irreversible"

    @cached_property
    def validator(self) -> Validator | None:
        """Validator of the arguments by the contract, which refuses undeclared ones; None if it is not usable."""
        found = compile_schema(closed(self.endpoint.input_schema))
        return found if isinstance(found, Validator) else None

    @cached_property
    def restorer(self) -> Restorer:
        """Converts the arguments of the model back to those of the contract."""
        return Restorer(self.conversion.document)


def name_tools(endpoints: Iterable[Endpoint], style: str) -> dict[str, Endpoint]:
    """Return the listed endpoints by the names of their tools."""
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    return dict(zip(_names(listed, style), listed, strict=True))


def make_model_tools(
    endpoints: Iterable[Endpoint],
    style: str,
    *,
    strict: bool = True,
    chosen: Collection[tuple[str, str]] | None = None,
) -> list[ModelTool]:
    """Make the tools of a service, ordered by name. Internal endpoints have none.

    `chosen` are the keys of the endpoints that are wanted; the others only count for names, so that a tool has the
    same name in every choice.
    """
    named = name_tools(endpoints, style)
    by_key = {endpoint.key: name for name, endpoint in named.items()}
    longest = STYLES[style].description
    tools = [
        ModelTool(
            name,
            _cut(describe_tool(endpoint, by_key), longest),
            endpoint,
            convert(endpoint.input_schema, style, strict=strict),
        )
        for name, endpoint in named.items()
        if chosen is None or endpoint.key in chosen
    ]
    return sorted(_within_limits(tools, style), key=lambda tool: tool.name)


def _names(endpoints: Sequence[Endpoint], style: str) -> list[str]:
    names = tool_names(endpoints)
    if style != "gemini":
        return names
    taken, made = set(names), []
    for name in names:
        numbers = count()
        new = name
        while not _STARTS.match(new) or (new != name and new in taken):
            new = f"_{next(numbers) or ''}{name}"[:_LONGEST]
        taken.add(new)
        made.append(new)
    return made


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3].rstrip()}..."


def _within_limits(tools: list[ModelTool], style: str) -> list[ModelTool]:
    """Make tools plain that exceed what a provider takes as strict in one request, the least dangerous ones first."""
    most = STYLES[style].most_strict
    if most is None:
        return tools
    left = list(most)
    kept: list[ModelTool] = []
    for tool in sorted(tools, key=lambda tool: (-IMPACTS.index(tool.endpoint.semantic.impact), tool.name)):
        costs = _costs(tool.conversion.schema) if tool.conversion.strict else [0, 0, 0]
        if all(cost <= rest for cost, rest in zip(costs, left, strict=True)):
            left = [rest - cost for cost, rest in zip(costs, left, strict=True)]
            kept.append(tool)
        else:
            plain = convert(tool.endpoint.input_schema, style, strict=False)
            reason = f"the provider takes {most[0]} strict tools with {most[1]} optional and {most[2]} union parameters"
            made = Conversion(plain.document, plain.schema, strict=False, reasons=(reason,))
            kept.append(ModelTool(tool.name, tool.description, tool.endpoint, made))
    return kept


def _costs(schema: Node) -> list[int]:
    """Count a tool, its optional parameters and its parameters with a union."""
    optional = unions = 0
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        members = node.get("properties", {})
        optional += len(members) - len(set(node.get("required", ())) & members.keys())
        unions += sum("anyOf" in part or len(types(part)) > 1 for part in members.values())
        waiting += [*members.values(), *node.get("anyOf", ()), *node.get("$defs", {}).values()]
        waiting += [node["items"]] if "items" in node else []
    return [1, optional, unions]
