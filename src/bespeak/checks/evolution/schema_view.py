"""Schemas as the comparison sees them: references resolved, types and values as sets, limits, alternatives."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, Literal, TypeGuard

from bespeak.checks.evolution.change import canonical
from bespeak.contract.schema.subschemas import target
from bespeak.contract.schema.view import EVERY_TYPE, listed_values

Schema = Mapping[str, Any]

ANNOTATIONS: Final = frozenset({"title", "description", "examples", "$comment", "default", "deprecated"})
"""Keywords that may differ between a reference and its target without saying anything else about values."""

DEFINITIONS: Final = frozenset({"$defs", "definitions", "$schema", "$id", "$anchor", "discriminator"})
"""Keywords that say nothing about values by themselves."""


class SchemaReferences:
    """The references of one document. Each node is resolved once, so that the same node gives the same schema."""

    __slots__ = ("_resolved", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self._resolved: dict[int, tuple[Any, Schema]] = {}

    def resolve(self, node: Any) -> Schema:
        """Return the schema a node stands for. A `$ref` left in it dangles or is circular."""
        known = self._resolved.get(id(node))
        if known is None:
            # The node is kept beside its schema: its id stays its own as long as it lives.
            known = self._resolved[id(node)] = (node, self._follow(node))
        return known[1]

    def _follow(self, node: Any) -> Schema:
        schema = _as_schema(node)
        for _ in range(32):
            if "$ref" in schema:
                named = target(schema["$ref"], self.root)
                if named is None:
                    return schema
                schema = _merged(_as_schema(named), {key: value for key, value in schema.items() if key != "$ref"})
            elif isinstance(parts := schema.get("allOf"), list) and len(parts) == 1:
                merged = _merged(_as_schema(parts[0]), {key: value for key, value in schema.items() if key != "allOf"})
                if "allOf" in merged and len(merged["allOf"]) > 1:
                    return schema
                schema = merged
            else:
                return schema
        return schema


def _as_schema(node: Any) -> Schema:
    if isinstance(node, Mapping):
        return node
    return {"not": {}} if node is False else {}


def _merged(target: Schema, rest: Schema) -> Schema:
    """Merge two schemas; if they contradict each other, return both as parts of `allOf`."""
    said = {key: value for key, value in rest.items() if key not in DEFINITIONS}
    base = {key: value for key, value in target.items() if key not in DEFINITIONS}
    if any(key in base and base[key] != value for key, value in said.items() if key not in ANNOTATIONS):
        return {"allOf": [base, said]}
    return {**base, **said}


def named_types(types: frozenset[str]) -> str:
    if types == EVERY_TYPE:
        return "any"
    names = set(types)
    if "fraction" in names:
        names = names - {"fraction", "integer"} | {"number"}
    return " or ".join(sorted(names)) or "nothing"


def value_texts(schema: Schema) -> dict[str, Any] | None:
    """Return the values of `enum` or `const` by canonical text, or None if the schema lists none."""
    values = listed_values(schema)
    return None if values is None else {canonical(value): value for value in values}


LimitChange = Literal["tightened", "loosened", "changed"]


def compare_limits(old: Schema, new: Schema) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    """Yield every limit that differs: its keyword, its old and new values, and the direction."""
    yield from _bound("minimum", old, new, 1)
    yield from _bound("maximum", old, new, -1)
    for what in ("Length", "Items", "Properties"):
        yield from _size(f"min{what}", old, new, 1)
        yield from _size(f"max{what}", old, new, -1)
    yield from _multiple(old, new)
    if bool(old.get("uniqueItems")) != bool(new.get("uniqueItems")):
        stricter = bool(new.get("uniqueItems"))
        yield "uniqueItems", not stricter, stricter, "tightened" if stricter else "loosened"


def _bound(keyword: str, old: Schema, new: Schema, sign: int) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    """Combine `minimum` and `exclusiveMinimum` into the stricter bound."""
    before, after = _strictest(keyword, old, sign), _strictest(keyword, new, sign)
    if before != after:
        verdict: LimitChange = "tightened" if after > before else "loosened"
        yield keyword, _shown(before, sign), _shown(after, sign), verdict


def _strictest(keyword: str, schema: Schema, sign: int) -> tuple[float, bool]:
    """Return a sort key for a bound: a greater pair admits fewer numbers."""
    included, excluded = schema.get(keyword), schema.get(f"exclusive{keyword.capitalize()}")
    return max(
        (sign * included, False) if _is_number(included) else (-math.inf, False),
        (sign * excluded, True) if _is_number(excluded) else (-math.inf, False),
    )


def _shown(bound: tuple[float, bool], sign: int) -> float | str | None:
    value, excluded = bound
    if value == -math.inf:
        return None
    return f"{'more' if sign > 0 else 'less'} than {sign * value}" if excluded else sign * value


def _size(keyword: str, old: Schema, new: Schema, sign: int) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    nothing = 0 if sign > 0 else math.inf
    before = old[keyword] if _is_number(old.get(keyword)) else nothing
    after = new[keyword] if _is_number(new.get(keyword)) else nothing
    if before != after:
        yield keyword, old.get(keyword), new.get(keyword), "tightened" if sign * after > sign * before else "loosened"


def _multiple(old: Schema, new: Schema) -> Iterator[tuple[str, Any, Any, LimitChange]]:
    before, after = old.get("multipleOf"), new.get("multipleOf")
    if canonical(before) == canonical(after):
        return
    one, other = _exactly(before), _exactly(after)
    verdict: LimitChange = "changed"
    if before is None or (one and other and (other / one).denominator == 1):
        verdict = "tightened"
    elif after is None or (one and other and (one / other).denominator == 1):
        verdict = "loosened"
    yield "multipleOf", before, after, verdict


def _exactly(value: Any) -> Fraction | None:
    """Return the decimal number as written: 0.1 is a tenth, not the nearest binary fraction."""
    if not _is_number(value):
        return None
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


def _is_number(value: Any) -> TypeGuard[int | float]:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and not (isinstance(value, float) and not math.isfinite(value))
    )


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
    if not isinstance(part, Mapping):
        return ""
    return next((f"{key} {part[key]}" for key in ("$ref", "title", "type") if isinstance(part.get(key), str)), "")


def only_alternatives(schema: Schema, keyword: str) -> bool:
    """Return True if a schema has only alternatives and annotations."""
    return isinstance(schema.get(keyword), list) and not (set(schema) - {keyword} - ANNOTATIONS - DEFINITIONS)


def bare(schema: Schema) -> list[Any]:
    """Return a schema as alternatives: itself without annotations, or one per type if it has nothing else."""
    plain = {key: value for key, value in schema.items() if key not in ANNOTATIONS | DEFINITIONS}
    if plain.get("additionalProperties") is True:  # as without the keyword
        del plain["additionalProperties"]
    types = plain.get("type")
    return [{"type": name} for name in types] if set(plain) == {"type"} and isinstance(types, list) else [plain]
