"""What each provider accepts in the schema of a tool, as documented, and the conversion of an endpoint's input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.schema.safety import needs_backtracking
from bespeak.documents.projections.model_tools import passes
from bespeak.documents.projections.model_tools.plain_form import Merger, TooComplexError, hoist, with_single_types
from bespeak.documents.projections.model_tools.schema import (
    Definitions,
    Mark,
    Node,
    Pass,
    ToolSchema,
    circular,
    open_unions,
    relax_circles,
    types,
)

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
    for count, limit, what in counts:
        if limit is not None and count > limit:
            yield f"the schema has {count:,} {what}, more than {limit:,}"


_UNDESCRIBED: Final = "The arguments are described by the documentation of the service."

Step = Callable[[ToolSchema], ToolSchema]
_FORMATS: Final = frozenset({"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_HARD: Final = re.compile(r"\(\?|\\[bBpPkAzZ1-9]|\{\d*,?\d{3,}|\{\d{3,}")
"""Parts of a pattern that Anthropic does not support: groups with options, boundaries, properties, long repetitions."""
_LONGEST_PATTERN: Final = 200
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
        return len(value) <= _LONGEST_PATTERN and _HARD.search(value) is None
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
        reasons = tuple(faults(made, rules.limits))
        if not reasons:
            return Conversion(made, made.schema(), strict=True)
    made = _run(base, rules.plain)
    return Conversion(made, made.schema(), strict=False, reasons=reasons)


def _run(document: ToolSchema, steps: Any) -> ToolSchema:
    for step in steps:
        document = step(document)
    return document.pruned()
