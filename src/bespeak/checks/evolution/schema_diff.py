"""Changes between two JSON Schemas, seen from one side: the client writes the input and reads the output.

A schema is treated as the set of its values. A smaller set hurts senders, a larger one readers. Undecidable changes are
reported as risky, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

import msgspec

from bespeak.checks.evolution.change import WORDING_CHANGED, ChangeList, ChangeRule, Level, canonical, contract, wire
from bespeak.checks.evolution.schema_view import (
    DEFINITIONS,
    LimitChange,
    Schema,
    SchemaReferences,
    bare,
    compare_limits,
    match,
    named_types,
    only_alternatives,
    value_texts,
)
from bespeak.contract.schema.view import overlaps, type_set
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.table import as_list, as_mapping, as_texts
from bespeak.text.source.pointer import child

FIELD_REQUIRED: Final = wire("C120", "field-required", "narrowed", ("breaking", "safe"))
FIELD_OPTIONAL: Final = wire("C121", "field-optional", "widened", ("safe", "breaking"))
FIELD_REMOVED: Final = wire("C122", "field-removed", "removed")
FIELD_ADDED: Final = wire("C123", "field-added", "added")
TYPE_NARROWED: Final = wire("C124", "type-narrowed", "narrowed", ("breaking", "safe"))
TYPE_WIDENED: Final = wire("C125", "type-widened", "widened", ("safe", "breaking"))
TYPE_CHANGED: Final = wire("C126", "type-changed", "changed", ("breaking", "breaking"))
VALUE_REMOVED: Final = wire("C127", "value-removed", "narrowed", ("breaking", "safe"))
VALUE_ADDED: Final = wire("C128", "value-added", "widened", ("safe", "risky"))
LIMIT_TIGHTENED: Final = wire("C129", "limit-tightened", "narrowed", ("breaking", "safe"))
LIMIT_LOOSENED: Final = wire("C130", "limit-loosened", "widened", ("safe", "risky"))
CONSTRAINT_ADDED: Final = wire("C131", "constraint-added", "narrowed", ("breaking", "safe"))
CONSTRAINT_REMOVED: Final = wire("C132", "constraint-removed", "widened", ("safe", "risky"))
CONSTRAINT_CHANGED: Final = wire("C133", "constraint-changed", "changed")
CLOSED: Final = wire("C134", "closed", "narrowed", ("breaking", "safe"))
OPENED: Final = wire("C135", "opened", "widened", ("safe", "safe"))
ALTERNATIVE_REMOVED: Final = wire("C136", "alternative-removed", "narrowed", ("breaking", "safe"))
ALTERNATIVE_ADDED: Final = wire("C137", "alternative-added", "widened", ("safe", "breaking"))
ALTERNATIVES_CHANGED: Final = wire("C138", "alternatives-changed", "changed")
DEFAULT_CHANGED: Final = contract("C139", "default-changed", "changed", ("risky", "safe"))
ANNOTATION_CHANGED: Final = contract("C140", "annotation-changed", "changed")
NOT_COMPARABLE: Final = wire("C141", "not-comparable", "changed")

Side = Literal["request", "response"]


class SchemaSpot(NamedTuple):
    """A place in a schema: its pointer and its readable name, such as `.guests[].age`."""

    at: str
    name: str = ""

    def under(self, part: str | int, name: str = "") -> SchemaSpot:
        """Return the place one step below."""
        return SchemaSpot(child(self.at, part), self.name + name)

    def named(self, name: str) -> SchemaSpot:
        """Return the same place with a longer name."""
        return SchemaSpot(self.at, self.name + name)


_MOST_STEPS: Final = 20_000  # limit of schema pairs compared per input or output: far more than people write
_DEEPEST: Final = 128

_ADVICE: Final[dict[tuple[Side, Level], str]] = {
    ("request", "breaking"): "Requests that were good are refused now. Accept what was accepted before, or offer the "
    "new form as an endpoint of its own and deprecate this one.",
    ("request", "risky"): "Requests that were good may be refused or mean something else. Try real ones against it.",
    ("response", "breaking"): "Clients may meet what they were told would not come. Keep the old promise and add "
    "beside it, or offer an endpoint of its own and deprecate this one.",
    ("response", "risky"): "Clients that rely on the old schema may fail. Notify them before the release.",
}

_GONE: Final = (
    "Clients that read it may find nothing. Keep sending it, or offer an endpoint of its own and deprecate this one."
)
_WORDS: Final = ("title", "description", "examples", "$comment")
_OPINIONS: Final = ("deprecated", "readOnly", "writeOnly")
_CONDITIONS: Final = frozenset(
    {
        *("pattern", "format", "not", "if", "then", "else", "contains", "dependentRequired", "dependencies"),
        *("unevaluatedProperties", "unevaluatedItems", "$ref", "$dynamicRef"),
    }
)
_UNORDERED: Final = frozenset({"minContains", "maxContains", "contentEncoding", "contentMediaType", "contentSchema"})
"""Conditions whose presence and absence are not ordered by strictness."""
_COMPARED: Final = frozenset(
    {
        *("type", "enum", "const", "required", "properties", "additionalProperties", "items", "prefixItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems"),
        *("maxItems", "minProperties", "maxProperties", "multipleOf", "uniqueItems"),
        *("propertyNames", "patternProperties", "dependentSchemas", "anyOf", "oneOf", "allOf", "default"),
    }
)
_PARTS: Final = {  # what the members of a keyword are called, one of them, and the rules for one less and one more
    "anyOf": ("alternatives", "an alternative", ALTERNATIVE_REMOVED, ALTERNATIVE_ADDED),
    "allOf": ("parts", "a part", CONSTRAINT_REMOVED, CONSTRAINT_ADDED),
}
_LIMIT_RULES: Final[dict[LimitChange, ChangeRule]] = {
    "tightened": LIMIT_TIGHTENED,
    "loosened": LIMIT_LOOSENED,
    "changed": CONSTRAINT_CHANGED,
}


def diff_schemas(old: Schema, new: Schema, side: Side, pointer: str, changes: ChangeList) -> None:
    """Add every change between two schemas. `pointer` is the place of the schema in its endpoint."""
    if old == new and canonical(old) == canonical(new):
        return
    comparison = _SchemaComparison(old, new, side, changes)
    try:
        comparison.compare(old, new, SchemaSpot(pointer))
    except RecursionError:
        comparison.give_up(SchemaSpot(pointer), "they are nested too deeply")


class _SchemaComparison:
    def __init__(self, old: Schema, new: Schema, side: Side, changes: ChangeList) -> None:
        self._old = SchemaReferences(old)
        self._new = SchemaReferences(new)
        self._side = side
        self._changes = changes.facing(side)
        self._steps = 0
        self._gave_up = False
        self._doubt = 0  # True inside alternatives that may overlap, where a wider part can make the whole narrower
        self._open: set[tuple[int, int]] = set()
        self._equal: set[tuple[int, int]] = set()
        self._alive: list[Any] = []
        definitions = [[canonical(each.get(key)) for key in ("$defs", "definitions")] for each in (old, new)]
        self._same_definitions = definitions[0] == definitions[1]

    def compare(self, old: Any, new: Any, spot: SchemaSpot) -> None:
        """Compare two nodes. A pair under comparison or already found equal is skipped."""
        pair = (id(old), id(new))
        if pair in self._open or pair in self._equal or self._changes.full:
            return
        self._alive += (old, new)
        self._steps += 1
        if self._steps > _MOST_STEPS or len(self._open) > _DEEPEST:
            self.give_up(spot, "they are too large to be compared in full")
            return
        before = len(self._changes.found)
        self._open.add(pair)
        self._compare_schemas(self._old.resolve(old), self._new.resolve(new), spot)
        self._open.discard(pair)
        if len(self._changes.found) == before:
            self._equal.add(pair)

    def give_up(self, spot: SchemaSpot, why: str) -> None:
        """Report once that the comparison is incomplete."""
        if not self._gave_up:
            self._gave_up = True
            self._add(NOT_COMPARABLE, spot, f"the old and the new schema differ, and {why}")

    def _compare_schemas(self, old: Schema, new: Schema, spot: SchemaSpot) -> None:
        for word in _WORDS:
            self._noted(WORDING_CHANGED, word, old, new, spot)
        for word in _OPINIONS:
            self._noted(ANNOTATION_CHANGED, word, old, new, spot, level="safe" if word == "deprecated" else None)
        self._noted(DEFAULT_CHANGED, "default", old, new, spot)
        if self._wrapped(old, new, spot):
            return
        if not self._types(old, new, spot):
            return
        self._values(old, new, spot)
        for keyword, before, after, verdict in compare_limits(old, new):
            message = f"`{keyword}` {_shown(before)} -> {_shown(after)}"
            self._add(_LIMIT_RULES[verdict], spot.under(keyword), message, before, after)
        self._properties(old, new, spot)
        self._elements(old, new, spot)
        if "propertyNames" in old or "propertyNames" in new:
            here = spot.under("propertyNames", ".(name)")
            self.compare(old.get("propertyNames", {}), new.get("propertyNames", {}), here)
        for keyword in ("patternProperties", "dependentSchemas"):
            before, after = as_mapping(old.get(keyword)), as_mapping(new.get(keyword))
            here = spot.under(keyword, ".(pattern)")
            for key in sorted({*before, *after}):
                self.compare(before.get(key, {}), after.get(key, {}), here.under(key))
        for keyword in ("anyOf", "oneOf", "allOf"):
            self._parts(keyword, old, new, spot)
        self._conditions(old, new, spot)

    def _noted(
        self, rule: ChangeRule, word: str, old: Schema, new: Schema, spot: SchemaSpot, *, level: Level | None = None
    ) -> None:
        before, after = old.get(word), new.get(word)
        if before is not after and canonical(before) != canonical(after):
            message = f"`{word}` {_shown(before)} -> {_shown(after)}"
            self._add(rule, spot.under(word), message, before, after, level=level)

    def _types(self, old: Schema, new: Schema, spot: SchemaSpot) -> bool:
        """Compare value types; return False if the two have none in common."""
        before, after = type_set(old), type_set(new)
        if before == after:
            return True
        rule = TYPE_NARROWED if after < before else TYPE_WIDENED if before < after else TYPE_CHANGED
        message = f"type {named_types(before)} -> {named_types(after)}"
        self._add(rule, spot.under("type"), message, named_types(before), named_types(after))
        return bool(before & after)

    def _values(self, old: Schema, new: Schema, spot: SchemaSpot) -> None:
        before, after = value_texts(old), value_texts(new)
        if before is None and after is None:
            return
        keyword = "enum" if "enum" in old or "enum" in new else "const"
        if before is None or after is None:
            rule, shown = (VALUE_ADDED, before) if after is None else (VALUE_REMOVED, after)
            values = list((shown or {}).values())
            told = f"any value is allowed, not only {_listed(values)}" if after is None else f"only {_listed(values)}"
            known, gone = (values, None) if after is None else (None, values)
            self._add(rule, spot.under(keyword), told, known, gone)
            return
        removed = [value for text, value in before.items() if text not in after]
        added = [value for text, value in after.items() if text not in before]
        if removed:
            self._add(VALUE_REMOVED, spot.under(keyword), f"no longer {_listed(removed)}", _sorted(removed), None)
        if added:
            self._add(VALUE_ADDED, spot.under(keyword), f"now also {_listed(added)}", None, _sorted(added))

    def _properties(self, old: Schema, new: Schema, spot: SchemaSpot) -> None:
        before, after = as_mapping(old.get("properties")), as_mapping(new.get("properties"))
        needed_before, needed_after = {*as_texts(old.get("required"))}, {*as_texts(new.get("required"))}
        freed, bound = needed_before - needed_after, needed_after - needed_before
        for field in sorted({*before, *after}):
            here = spot.under("properties").under(field, f".{field}")
            if field not in after:
                certain = field in freed if self._side == "response" else not _is_open(new)
                level: Level = "breaking" if certain else "risky"
                self._add(FIELD_REMOVED, here, "is removed", before[field], None, level=level)
            elif field not in before:
                self._field_added(here, after[field], is_needed=field in bound, was_open=_is_open(old))
            else:
                self.compare(before[field], after[field], here)
        for field in sorted(bound - (after.keys() - before.keys())):
            self._add(FIELD_REQUIRED, spot.under("required", f".{field}"), "is now required", None, field)
        for field in sorted(freed - (before.keys() - after.keys())):
            self._add(FIELD_OPTIONAL, spot.under("required", f".{field}"), "is no longer required", field, None)
        self._additional(old, new, spot.under("additionalProperties"))

    def _field_added(self, spot: SchemaSpot, schema: Any, *, is_needed: bool, was_open: bool) -> None:
        level: Level = "safe"
        if self._side == "request":
            # In an open input the name could carry anything before.
            level = "breaking" if is_needed else "risky" if was_open and schema not in ({}, True) else "safe"
        elif not was_open:
            level = "risky"
        self._add(FIELD_ADDED, spot, "is new and required" if is_needed else "is new", None, schema, level=level)

    def _additional(self, old: Schema, new: Schema, spot: SchemaSpot) -> None:
        before, after = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if (before is False) != (after is False):
            rule, told = (CLOSED, "no other fields") if after is False else (OPENED, "other fields")
            self._add(rule, spot, f"{told} are allowed", before, after)
        elif before is not False:
            self.compare(_node(before), _node(after), spot.named(".*"))

    def _elements(self, old: Schema, new: Schema, spot: SchemaSpot) -> None:
        before, after = as_list(old.get("prefixItems")), as_list(new.get("prefixItems"))
        rest_before, rest_after = _node(old.get("items", True)), _node(new.get("items", True))
        for index in range(max(len(before), len(after))):
            one = before[index] if index < len(before) else rest_before
            other = after[index] if index < len(after) else rest_after
            self.compare(one, other, spot.under("prefixItems").under(index, f"[{index}]"))
        if "items" in old or "items" in new:
            self.compare(rest_before, rest_after, spot.under("items", "[]"))

    def _wrapped(self, old: Schema, new: Schema, spot: SchemaSpot) -> bool:
        """Compare one schema with alternatives, as when a field becomes nullable: it counts as the only alternative."""
        for keyword in ("anyOf", "oneOf"):
            if only_alternatives(old, keyword) != only_alternatives(new, keyword):
                single = new if only_alternatives(old, keyword) else old
                if not any(word in single for word in ("anyOf", "oneOf", "allOf", "$ref")):
                    # Alternatives are often references, and the single schema is what one of them refers to.
                    alone, references = bare(single), self._old if single is new else self._new
                    parts = [
                        part for one in (old, new)[single is old][keyword] for part in bare(references.resolve(one))
                    ]
                    before, after = (parts, alone) if single is new else (alone, parts)
                    self._alternatives(keyword, before, after, spot.under(keyword))
                    return True
        return False

    def _parts(self, keyword: str, old: Schema, new: Schema, spot: SchemaSpot) -> None:
        before, after, here = as_list(old.get(keyword)), as_list(new.get(keyword)), spot.under(keyword)
        if (before and after) or (keyword == "allOf" and (before or after)):
            self._alternatives(keyword, before, after, here)
        elif before or after:
            rule, told = (CONSTRAINT_ADDED, "is new") if after else (CONSTRAINT_REMOVED, "is gone")
            self._add(rule, here, f"`{keyword}` {told}", before or None, after or None)

    def _alternatives(self, keyword: str, before: list[Any], after: list[Any], spot: SchemaSpot) -> None:
        """Compare alternatives, or the parts of allOf, which are conditions: a new one makes it narrower."""
        pairs, lost, gained = match(before, after)
        # Exactly one part of oneOf may hold: where parts overlap, more of one is less of the whole.
        overlap = any(overlaps(before, self._old.root)) or any(overlaps(after, self._new.root))
        doubtful = keyword == "oneOf" and overlap
        self._doubt += doubtful
        for one, other, index in pairs:
            self.compare(one, other, spot.under(index))
        self._doubt -= doubtful
        several, part, losing, gaining = _PARTS["allOf" if keyword == "allOf" else "anyOf"]
        if (lost and gained) or (doubtful and (lost or gained)):
            told = f"the {several} of `{keyword}` are others"
            self._add(ALTERNATIVES_CHANGED, spot, told, _sorted(lost), _sorted(gained))
        elif lost or gained:
            rule, told = (losing, "is gone") if lost else (gaining, "is new")
            message = f"{part} of `{keyword}` {told}: {brief((lost or gained)[0])}"
            self._add(rule, spot, message, _sorted(lost) or None, _sorted(gained) or None)

    def _conditions(self, old: Schema, new: Schema, spot: SchemaSpot) -> None:
        for keyword in sorted({*old, *new} - _COMPARED - DEFINITIONS - {*_WORDS, *_OPINIONS}):
            before, after, here = old.get(keyword), new.get(keyword), spot.under(keyword)
            if canonical(before) == canonical(after):
                # With equal text, the references may have changed.
                if keyword in ("$ref", "$dynamicRef") or (not self._same_definitions and _refers(after)):
                    message = f"`{keyword}` reads the same, and what it refers to cannot be followed"
                    self._add(NOT_COMPARABLE, here, message, after, after)
                continue
            message = f"`{keyword}` {_shown(before)} -> {_shown(after)}"
            if keyword not in _CONDITIONS | _UNORDERED:
                rule = WORDING_CHANGED if keyword.startswith("x-") else ANNOTATION_CHANGED
                self._add(rule, here, message, before, after)
            elif keyword in _UNORDERED or (keyword in old and keyword in new):
                # A text either keeps a pattern or a format or not: texts that were good will be refused.
                certain = keyword in ("pattern", "format") and self._side == "request"
                self._add(CONSTRAINT_CHANGED, here, message, before, after, level="breaking" if certain else None)
            else:
                self._add(CONSTRAINT_ADDED if keyword in new else CONSTRAINT_REMOVED, here, message, before, after)

    def _add(
        self,
        rule: ChangeRule,
        spot: SchemaSpot,
        told: str,
        old: Any = None,
        new: Any = None,
        *,
        level: Level | None = None,
    ) -> None:
        worst: Level = level or ("safe" if rule == WORDING_CHANGED else rule.levels[self._side == "response"])
        if self._doubt and worst == "safe" and rule != WORDING_CHANGED:
            worst = "risky"
        noun = "input" if self._side == "request" else "output"
        subject = f"{noun} `{spot.name.removeprefix('.')}`" if spot.name else noun
        # A client that reads an output misses what is gone; any other breaking change sends it something new.
        is_gone = rule in (FIELD_REMOVED, FIELD_OPTIONAL) and self._side == "response"
        advice = _GONE if is_gone and worst != "safe" else _ADVICE.get((self._side, worst), "")
        self._changes.add(rule, worst, spot.at, f"{subject}: {told}", advice, old=old, new=new)


_ANYTHING: Final[Schema] = {}


def _node(value: Any) -> Any:
    return _ANYTHING if value is True else value


def _is_open(schema: Schema) -> bool:
    return schema.get("additionalProperties", True) is not False or bool(schema.get("patternProperties"))


def _refers(value: Any) -> bool:
    try:
        return b'"$ref"' in msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError):
        return True


def _shown(value: Any) -> str:
    return "none" if value is None else brief(value)


def _sorted(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=canonical)


def _listed(values: list[Any]) -> str:
    shown = ", ".join(brief(value) for value in values[:8])
    return shown if len(values) <= 8 else f"{shown} and {len(values) - 8} more"
