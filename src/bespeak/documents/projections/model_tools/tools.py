"""Endpoints as tools of a model, in the form of a provider; and its arguments as the contract describes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Final

from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.contract.endpoint_names import describe_tool, tool_names
from bespeak.contract.schema.safety import needs_backtracking
from bespeak.contract.schema.subschemas import closed
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.projections.model_tools import passes
from bespeak.documents.projections.model_tools.passes import (
    Definitions,
    Mark,
    Node,
    Pass,
    ToolSchema,
    circular,
    item_at,
    open_unions,
    relax_circles,
    resolved,
    types,
)
from bespeak.documents.projections.model_tools.plain_form import Merger, TooComplexError, hoist, with_single_types

_MOST: Final = 5  # maximum reasons that are reported


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictLimits:
    properties: int | None = None
    levels: int | None = None  # nested objects, without those behind references
    values: int | None = None  # listed values in all
    long_list: tuple[int, int] | None = None  # length from which characters are limited, and limit
    characters: int | None = None  # characters of names and listed values in all
    recursion: bool = False  # True if a definition may contain itself


def faults(document: ToolSchema, limits: StrictLimits) -> list[str]:
    """Return the first reasons why a schema cannot be strict, each with its place."""
    found: list[str] = []
    if not limits.recursion and circular(document.definitions):
        found.append("a definition contains itself")
    found += _excess(document, limits)
    for place, root in (("", document.root), *((f"{name}: ", node) for name, node in document.definitions.items())):
        for at, reason in _unfit(root):
            found.append(f"{place}{'.'.join(at) or 'input'}: {reason}")
            if len(found) >= _MOST:
                return found
    return found


def _unfit(root: Node) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield nodes that are marked or accept everything, with their places."""
    waiting: list[tuple[tuple[str, ...], Node]] = [((), root)]
    while waiting:
        at, node = waiting.pop()
        if Mark.UNFIT in node:
            yield at, node[Mark.UNFIT]
        elif not {"type", "anyOf", "$ref"} & node.keys():
            yield at, "any value is accepted"
        waiting += [((*at, name), part) for name, part in node.get("properties", {}).items()]
        waiting += [((*at, "[]"), node["items"])] if "items" in node else []
        waiting += [(at, option) for option in node.get("anyOf", ())]


def _excess(document: ToolSchema, limits: StrictLimits) -> Iterator[str]:
    properties = values = 0
    characters = sum(map(len, document.definitions))
    deepest = 0
    for root in (document.root, *document.definitions.values()):
        waiting = [(root, 0)]
        while waiting:
            node, level = waiting.pop()
            if "object" in types(node):
                level += 1
                deepest = max(deepest, level)
            members = node.get("properties", {})
            properties += len(members)
            listed = node.get("enum", ())
            length = sum(map(len, [value for value in listed if isinstance(value, str)]))
            if limits.long_list and len(listed) > limits.long_list[0] and length > limits.long_list[1]:
                yield f"a list of {len(listed)} values has {length:,} characters"
            values += len(listed)
            characters += sum(map(len, members)) + length
            waiting += [(part, level) for part in (*members.values(), *node.get("anyOf", ()))]
            waiting += [(node["items"], level)] if "items" in node else []
    counts = (
        (properties, limits.properties, "properties"),
        (deepest, limits.levels, "levels of objects"),
        (values, limits.values, "listed values"),
        (characters, limits.characters, "characters of names and listed values"),
    )
    for number, limit, what in counts:
        if limit is not None and number > limit:
            yield f"the schema has {number:,} {what}, more than {limit:,}"


_UNDESCRIBED: Final = "The arguments are described by the documentation of the service."

Step = Callable[[ToolSchema], ToolSchema]
_FORMATS: Final = frozenset({"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_HARD: Final = re.compile(r"\(\?|\\[bBpPkAzZ1-9]|\{\d*,?\d{3,}|\{\d{3,}")
"""Parts of a pattern that Anthropic does not support: groups with options, boundaries, properties, long repetitions."""
_UNLIMITED: Final = StrictLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    arguments: re.Pattern[str]  # names that arguments may have
    plain: tuple[Step, ...]  # conversion of a schema that models are asked to follow
    strict: tuple[Step, ...] | None = None  # what models must follow; None if there is no such mode
    limits: StrictLimits = _UNLIMITED
    description: int = 4_096  # maximum characters of a tool's description
    tools: int | None = None  # maximum number of tools in a request
    most_strict: tuple[int, int, int] | None = None  # strict tools, their optional and union parameters


def _each(step: Pass) -> Step:
    return lambda document: document.apply(step)


def _close(node: Node, _: Definitions) -> Node:
    return {**node, "additionalProperties": False} if node.get("type") == "object" else node


def _openai_keeps(keyword: str, value: Any) -> bool:
    if keyword == "pattern":
        return not needs_backtracking(value)
    if keyword == "format":
        return value in _FORMATS
    return keyword in ("enum", "minItems", "maxItems") or keyword in _NUMBERS


def _anthropic_keeps(keyword: str, value: Any) -> bool:
    if keyword == "pattern":
        return len(value) <= 200 and _HARD.search(value) is None
    if keyword == "format":
        return value in _FORMATS or value == "uri"
    return keyword == "enum" or (keyword == "minItems" and value in (0, 1))


def _gemini_keeps(keyword: str, value: Any) -> bool:
    if keyword == "enum":
        return not any(isinstance(each, bool) for each in value)
    if keyword == "format":
        return value in ("date-time", "date", "time")
    return keyword in ("minimum", "maximum", "minItems", "maxItems")


def _worded(keeps: passes.Keeps) -> tuple[Step, ...]:
    return (_each(passes.wording(keeps)), _each(passes.join_null), _each(passes.wrap_described))


_STRICT: Final = (_each(passes.join_positions), _each(passes.list_members))
_PLAIN: Final = (_each(passes.join_positions), _each(passes.note_optional))
_NAMES: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # of arguments: Anthropic refuses a request with another one

_OPENAI: Final = Style(
    arguments=_NAMES,
    strict=(*_STRICT, _each(passes.require_all), _each(_close), *_worded(_openai_keeps), passes.mark_ambiguous),
    plain=(*_PLAIN, *_worded(lambda *_: True)),
    limits=StrictLimits(
        properties=5_000, levels=10, values=1_000, long_list=(250, 15_000), characters=120_000, recursion=True
    ),
    description=1_024,
    tools=128,
)
STYLES: Final[Mapping[str, Style]] = {
    "openai": _OPENAI,
    "openai-responses": _OPENAI,
    "anthropic": Style(
        arguments=_NAMES,
        strict=(
            *_STRICT,
            _each(_close),
            _each(passes.wording(_anthropic_keeps)),
            passes.inline_described,
            passes.mark_ambiguous,
        ),
        plain=(*_PLAIN, _each(passes.wording(lambda *_: True))),
        limits=StrictLimits(levels=10),
        most_strict=(20, 24, 16),
    ),
    "gemini": Style(
        arguments=re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
        plain=(
            *map(_each, (passes.describe_items, passes.without_patterns, passes.note_optional)),
            relax_circles,
            *_worded(_gemini_keeps),
        ),
        tools=128,
    ),
}


@dataclass(frozen=True, slots=True)
class Conversion:
    """A converted schema, with what is needed to convert values back."""

    document: ToolSchema  # the schema with marks
    schema: Node
    strict: bool
    reasons: tuple[str, ...] = ()  # why the schema is not strict although that was wanted


def convert(schema: Mapping[str, Any], style: str, *, strict: bool = True) -> Conversion:
    """Convert a schema for a provider, as a strict one if that is wanted and no value is lost."""
    rules = STYLES[style]
    try:
        raw = hoist(schema)
        plain = with_single_types(Merger(raw.definitions).document(raw.root))
    except TooComplexError:
        root: Node = {"type": "object", "properties": {}, "additionalProperties": True, "description": _UNDESCRIBED}
        reason = "the schema is too deep or too large"
        return Conversion(ToolSchema(root, {}), dict(root), strict=False, reasons=(reason,))
    base = passes.with_root_object(open_unions(plain).apply(passes.inline_leaves), rules.arguments).pruned()
    reasons: tuple[str, ...] = ()
    if strict and rules.strict is not None:
        made = _run(base, rules.strict)
        if not (reasons := tuple(faults(made, rules.limits))):
            return Conversion(made, made.schema(), strict=True)
    made = _run(base, rules.plain)
    return Conversion(made, made.schema(), strict=False, reasons=reasons)


def _run(document: ToolSchema, steps: Any) -> ToolSchema:
    for step in steps:
        document = step(document)
    return document.pruned()


_PAIR: Final = frozenset({"key", "value"})
_STARTS: Final = re.compile(r"[A-Za-z_]")


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
            new = f"_{next(numbers) or ''}{name}"[:64]
        taken.add(new)
        made.append(new)
    return made


def _within_limits(tools: list[ModelTool], style: str) -> list[ModelTool]:
    """Make tools plain that exceed what a provider takes as strict in one request, the least dangerous ones first."""
    if (most := STYLES[style].most_strict) is None:
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
