"""What each provider accepts in the schema of a tool, as documented; no provider's package checks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from bespeak.contract.schema.pattern import needs_backtracking
from bespeak.documents.projections.model_tools.document import Definitions, Document, Node, Pass
from bespeak.documents.projections.model_tools.list_items import describe_items, join_positions
from bespeak.documents.projections.model_tools.open_maps import list_members, without_patterns
from bespeak.documents.projections.model_tools.optional_members import join_null, note_optional, require_all
from bespeak.documents.projections.model_tools.overlap import mark_ambiguous
from bespeak.documents.projections.model_tools.recursion import relax_circles
from bespeak.documents.projections.model_tools.references_alone import inline_described, wrap_described
from bespeak.documents.projections.model_tools.strictness import Limits
from bespeak.documents.projections.model_tools.wording import Keeps, wording

Step = Callable[[Document], Document]
StyleName = Literal["openai", "openai-responses", "anthropic", "gemini"]

_FORMATS: Final = frozenset({"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NUMBERS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_HARD: Final = re.compile(r"\(\?|\\[bBpPkAzZ1-9]|\{\d*,?\d{3,}|\{\d{3,}")
"""Parts of a pattern that Anthropic does not support: groups with options, boundaries, properties, long repetitions."""


_LONGEST_PATTERN: Final = 200
_UNLIMITED: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """The rules of one provider."""

    arguments: re.Pattern[str]
    """Names that arguments may have."""
    plain: tuple[Step, ...]
    """Conversion of a schema that models are asked to follow."""
    strict: tuple[Step, ...] | None = None
    """Conversion of a schema that models are forced to follow; None if the provider has no such mode."""
    limits: Limits = _UNLIMITED
    description: int = 4_096
    """Maximum characters of a tool's description."""
    tools: int | None = None
    """Maximum number of tools in a request."""
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
    limits=Limits(
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
        limits=Limits(levels=10),
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
