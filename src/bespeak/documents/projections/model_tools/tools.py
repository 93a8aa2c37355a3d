"""Endpoints as tools of a model, in the form of a provider; and its arguments as the contract describes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Final

from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.contract.endpoint_names import describe_tool, tool_names
from bespeak.contract.schema.subschemas import closed
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.projections.model_tools.providers import STYLES, Conversion, convert
from bespeak.documents.projections.model_tools.schema import (
    Definitions,
    Mark,
    Node,
    ToolSchema,
    item_at,
    resolved,
    types,
)

_PAIR: Final = frozenset({"key", "value"})
_STARTS: Final = re.compile(r"[A-Za-z_]")
_LONGEST: Final = 64


class RepeatedMemberError(ValueError):
    """A list of pairs has a key twice."""


class Restorer:
    """Converts values of one converted schema back. Values that do not follow it are returned as they are."""

    def __init__(self, document: ToolSchema) -> None:
        self._document = document
        self._schemas: Definitions = document.schema().get("$defs", {})
        self._validators: dict[int, Validator | None] = {}

    def restore(self, value: Any) -> Any:
        """Convert a value back. Raises RepeatedMemberError if it would have a member twice."""
        return self._restored(value, self._document.root)

    def _restored(self, value: Any, node: Node) -> Any:
        node = resolved(node, self._document.definitions)
        if not isinstance(value, dict | list):
            return value
        if "anyOf" in node:
            return self._restored(value, self._chosen(value, node["anyOf"]))
        if isinstance(value, dict):
            return self._object(value, node) if "object" in types(node) else value
        if "array" not in types(node):
            return value
        items = [self._restored(item, item_at(node, at)) for at, item in enumerate(value)]
        return _members(items) if Mark.MAP in node and all(map(_is_pair, items)) else items

    def _object(self, value: dict[str, Any], node: Node) -> Any:
        if Mark.WRAPPED in node and value.keys() == {node[Mark.WRAPPED]}:
            return self._restored(value[node[Mark.WRAPPED]], node["properties"][node[Mark.WRAPPED]])
        names, optional = dict(node.get(Mark.RENAMED, ())), frozenset(node.get(Mark.OPTIONAL, ()))
        made: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, part in value.items():
            if part is None and name in optional:
                continue
            member = node.get("properties", {}).get(name, node.get("additionalProperties"))
            found = self._restored(part, member if isinstance(member, dict) else {})
            if name == node.get(Mark.REST) and isinstance(found, list) and all(map(_is_pair, found)):
                others = _members(found)
            else:
                made[names.get(name, name)] = found
        for name in made.keys() & others.keys():
            raise RepeatedMemberError(f"{name[:80]!r} is given twice")
        return made | others

    def _chosen(self, value: Any, options: list[Node]) -> Node:
        """Return the alternative that a value meets, else the only one of its type, else one that changes nothing."""
        for option in options:
            validator = self._validator(option)
            if validator is not None and validator.is_valid(value):
                return option
        kind = "object" if isinstance(value, dict) else "array"
        fitting = [option for option in options if kind in types(resolved(option, self._document.definitions))]
        return fitting[0] if len(fitting) == 1 else {}

    def _validator(self, option: Node) -> Validator | None:
        key = id(option)
        if key not in self._validators:
            found = compile_schema({**ToolSchema(option, {}).schema(), "$defs": self._schemas})
            self._validators[key] = found if isinstance(found, Validator) else None
        return self._validators[key]


def _is_pair(item: Any) -> bool:
    return isinstance(item, dict) and item.keys() == _PAIR and isinstance(item["key"], str)


def _members(pairs: list[Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for pair in pairs:
        if pair["key"] in made:
            raise RepeatedMemberError(f"{pair['key'][:80]!r} is given twice")
        made[pair["key"]] = pair["value"]
    return made


@dataclass(frozen=True, eq=False)
class ModelTool:
    name: str
    description: str
    endpoint: Endpoint
    conversion: Conversion

    @property
    def is_irreversible(self) -> bool:
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
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    return dict(zip(_names(listed, style), listed, strict=True))


def make_model_tools(
    endpoints: Iterable[Endpoint], style: str, *, strict: bool = True, chosen: Collection[tuple[str, str]] | None = None
) -> list[ModelTool]:
    """Make the tools of a service, ordered by name. Internal endpoints have none.

    Endpoints that are not `chosen`, by their keys, only count for names: a tool has the same name in every choice.
    """
    named = name_tools(endpoints, style)
    by_key = {endpoint.key: name for name, endpoint in named.items()}
    longest = STYLES[style].description
    tools: list[ModelTool] = []
    for name, endpoint in named.items():
        if chosen is None or endpoint.key in chosen:
            text = describe_tool(endpoint, by_key)
            text = text if len(text) <= longest else f"{text[: longest - 3].rstrip()}..."
            tools.append(ModelTool(name, text, endpoint, convert(endpoint.input_schema, style, strict=strict)))
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
            kept.append(replace(tool, conversion=replace(plain, strict=False, reasons=(reason,))))
    return kept


def _costs(schema: Node) -> list[int]:
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


_SEARCH: Final[dict[str, dict[str, Any]]] = {
    "openai-responses": {"type": "tool_search"},
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
}
DEFERRING: Final = tuple(_SEARCH)  # styles of providers that can search tools themselves


def definitions(tools: Sequence[ModelTool], style: str, *, defer: bool = False) -> list[dict[str, Any]]:
    """Return what to send as `tools`; with `defer`, the model finds them by the provider's search, which is added."""
    if style == "gemini":
        return [{"functionDeclarations": [_gemini(tool) for tool in tools]}]
    made = [_WRITERS[style](tool) for tool in tools]
    return made if not defer else [_SEARCH[style], *({**one, "defer_loading": True} for one in made)]


def _openai(tool: ModelTool) -> dict[str, Any]:
    return {"type": "function", "function": {key: value for key, value in _responses(tool).items() if key != "type"}}


def _responses(tool: ModelTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.conversion.schema,
        # Said in any case: the Responses API takes a tool for strict that does not say so.
        "strict": tool.conversion.strict,
    }


def _anthropic(tool: ModelTool) -> dict[str, Any]:
    made = {"name": tool.name, "description": tool.description, "input_schema": tool.conversion.schema}
    return {**made, "strict": True} if tool.conversion.strict else made


def _gemini(tool: ModelTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.conversion.schema}


_WRITERS: Final = {"openai": _openai, "openai-responses": _responses, "anthropic": _anthropic}
