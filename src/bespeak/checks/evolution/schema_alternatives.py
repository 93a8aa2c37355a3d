"""Alternatives of anyOf, oneOf and allOf: matching old parts to new ones, and detecting overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any, Final

from bespeak.checks.evolution.change import canonical
from bespeak.checks.evolution.schema_reference import ANNOTATIONS, DEFINITIONS, Schema
from bespeak.checks.evolution.schema_types import type_set, value_texts
from bespeak.text.reading.untyped import as_texts

_MOST_PAIRS: Final = 64
"""Limit of oneOf parts compared pairwise; beyond it they count as overlapping."""

Matching = tuple[list[tuple[Any, Any, int]], list[Any], list[Any]]
"""Pairs of old and new parts with the new index, then unmatched old parts, then unmatched new parts."""


def match(old: list[Any], new: list[Any]) -> Matching:
    """Match equal parts, then parts with the same label, then the only remaining pair."""
    pairs: list[tuple[Any, Any, int]] = []
    rest_old, rest_new = list(enumerate(old)), list(enumerate(new))
    for key_of in (canonical, _label):
        before = Counter(key_of(part) for _, part in rest_old)
        after = {key_of(part): (index, part) for index, part in rest_new}
        counts = Counter(key_of(part) for _, part in rest_new)
        taken: set[int] = set()
        kept: list[tuple[int, Any]] = []
        for index, part in rest_old:
            key = key_of(part)
            if key and before[key] == counts[key] == 1:
                place, other = after[key]
                pairs.append((part, other, place))
                taken.add(place)
            else:
                kept.append((index, part))
        rest_old, rest_new = kept, [(index, part) for index, part in rest_new if index not in taken]
    if len(rest_old) == len(rest_new) == 1:
        pairs.append((rest_old[0][1], rest_new[0][1], rest_new[0][0]))
        return pairs, [], []
    return pairs, [part for _, part in rest_old], [part for _, part in rest_new]


def _label(part: Any) -> str:
    """Return the label of a part: its reference, title or type."""
    if not isinstance(part, Mapping):
        return ""
    return next((f"{key} {part[key]}" for key in ("$ref", "title", "type") if isinstance(part.get(key), str)), "")


def only_alternatives(schema: Schema, keyword: str) -> bool:
    """Return True if a schema has only alternatives and annotations."""
    return isinstance(schema.get(keyword), list) and not (set(schema) - {keyword} - ANNOTATIONS - DEFINITIONS)


def bare(schema: Schema) -> list[Any]:
    """Return a schema as alternatives: itself without annotations, or one per type if it has nothing else."""
    plain = {key: value for key, value in schema.items() if key not in ANNOTATIONS | DEFINITIONS}
    types = plain.get("type")
    if set(plain) == {"type"} and isinstance(types, list):
        return [{"type": name} for name in types]
    return [plain]


def are_disjoint(parts: list[Any], resolve: Callable[[Any], Schema]) -> bool:
    """Return True if no value can match two parts, judged by types and listed values."""
    if len(parts) > _MOST_PAIRS:
        return False
    schemas = [resolve(part) for part in parts]
    return all(_exclude(one, other, resolve) for one, other in combinations(schemas, 2))


def _exclude(one: Schema, other: Schema, resolve: Callable[[Any], Schema]) -> bool:
    if not type_set(one) & type_set(other) or _differ(one, other):
        return True
    # Objects that name what they are in a field both must have.
    first, second = one.get("properties"), other.get("properties")
    if type_set(one) != {"object"} or not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return False
    needed = {*as_texts(one.get("required"))} & {*as_texts(other.get("required"))} & set(first) & set(second)
    return any(_differ(resolve(first[field]), resolve(second[field])) for field in needed)


def _differ(one: Schema, other: Schema) -> bool:
    first, second = value_texts(one), value_texts(other)
    return first is not None and second is not None and not first.keys() & second.keys()
