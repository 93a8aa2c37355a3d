"""What each provider accepts in the schema of a tool, as documented, and the conversion of an endpoint's input to it.

No provider's package checks a schema. `faults` says why a converted schema cannot be sent as strict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from bespeak.contract.schema.safety import needs_backtracking
from bespeak.documents.projections.model_tools.passes import (
    Keeps,
    describe_items,
    inline_described,
    inline_leaves,
    join_null,
    join_positions,
    list_members,
    mark_ambiguous,
    note_optional,
    require_all,
    with_root_object,
    without_patterns,
    wording,
    wrap_described,
)
from bespeak.documents.projections.model_tools.plain_form import Merger, TooComplexError, hoist, with_single_types
from bespeak.documents.projections.model_tools.schema import (
    UNFIT,
    Definitions,
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
    """Limits of a strict schema."""

    properties: int | None = None
    levels: int | None = None  # nested objects, without those behind references
    values: int | None = None  # listed values in all
    long_list: tuple[int, int] | None = None
    """Length of a list of values from which their characters are limited, and that limit."""
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
        if UNFIT in node:
            yield at, node[UNFIT]
        elif not {"type", "anyOf", "$ref"} & node.keys():
            yield at, "any value is accepted"
        waiting += [((*at, name), part) for name, part in node.get("properties", {}).items()]
        waiting += [((*at, "[]"), node["items"])] if "items" in node else []
        waiting += [(at, option) for option in node.get("anyOf", ())]


def _excess(document: ToolSchema, limits: StrictLimits) -> Iterator[str]:
    """Yield the limits that a schema exceeds."""
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
            texts = [value for value in listed if isinstance(value, str)]
            length = sum(map(len, texts))
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


Step = Callable[[ToolSchema], ToolSchema]
StyleName = Literal["openai", "openai-responses", "anthropic", "gemini"]

_FORMATS: Final = frozenset({"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_HARD: Final = re.compile(r"\(\?|\\[bBpPkAzZ1-9]|\{\d*,?\d{3,}|\{\d{3,}")
"""Parts of a pattern that Anthropic does not support: groups with options, boundaries, properties, long repetitions."""


_LONGEST_PATTERN: Final = 200
_UNLIMITED: Final = StrictLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The rules of one provider."""

    arguments: re.Pattern[str]  # names that arguments may have
    plain: tuple[Step, ...]  # conversion of a schema that models are asked to follow
    strict: tuple[Step, ...] | None = None
    """Conversion of a schema that models are forced to follow; None if the provider has no such mode."""
    limits: StrictLimits = _UNLIMITED
    description: int = 4_096  # maximum characters of a tool's description
    tools: int | None = None  # maximum number of tools in a request
    most_strict: tuple[int, int, int] | None = None
    """Maximum number of strict tools in a request, of their optional parameters and of those with a union."""


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


def _keeps_all(_: str, __: Any) -> bool:
    return True


def _worded(keeps: Keeps) -> tuple[Step, ...]:
    return (_each(wording(keeps)), _each(join_null), _each(wrap_described))


_STRICT: Final = (_each(join_positions), _each(list_members))
_PLAIN: Final = (_each(join_positions), _each(note_optional))
_NAMES: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of arguments: Anthropic refuses the whole request for another one."""

_OPENAI: Final = Style(
    arguments=_NAMES,
    strict=(*_STRICT, _each(require_all), _each(_close), *_worded(_openai_keeps), mark_ambiguous),
    plain=(*_PLAIN, *_worded(_keeps_all)),
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
        strict=(*_STRICT, _each(_close), _each(wording(_anthropic_keeps)), inline_described, mark_ambiguous),
        plain=(*_PLAIN, _each(wording(_keeps_all))),
        limits=StrictLimits(levels=10),
        most_strict=(20, 24, 16),
    ),
    "gemini": Style(
        arguments=re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}"),
        plain=(
            _each(describe_items),
            _each(without_patterns),
            _each(note_optional),
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
        return _fallback("the schema is too deep or too large")
    base = with_root_object(open_unions(plain).apply(inline_leaves), rules.arguments).pruned()
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


def _fallback(reason: str) -> Conversion:
    root = {
        "type": "object",
        "properties": {},
        "additionalProperties": True,
        "description": "The arguments are described by the documentation of the service.",
    }
    document = ToolSchema(root, {})
    return Conversion(document, dict(root), strict=False, reasons=(reason,))
