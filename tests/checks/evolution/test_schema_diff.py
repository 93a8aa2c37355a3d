"""Comparison of two JSON Schemas, and the effect of each difference."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.evolution.contracts import MIRRORED, told

from bespeak.checks.evolution.change import MOST_CHANGES, ChangeList, ContractChange, canonical
from bespeak.checks.evolution.schema_diff import diff_schemas
from bespeak.contract.schema.validation import Validator, compile_schema

Side = Literal["request", "response"]


def changes(old: Any, new: Any, side: Side = "request") -> list[ContractChange]:
    found = ChangeList("BOOK /room")
    diff_schemas(old, new, side, "/schema", found)
    return found.found


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


TEXT, NUMBER, INTEGER, NULL = ({"type": name} for name in ("string", "number", "integer", "null"))
LOW, HIGH = {"minimum": 1}, {"maximum": 9}
NEEDED = {"properties": {"a": TEXT}, "required": ["a"]}
NUMBERS, INTEGERS = {"additionalProperties": NUMBER}, {"additionalProperties": INTEGER}

UNKNOWN, CONDITION = ("C138", "risky", "risky"), ("C131", "breaking", "safe")
# old, new, (rule, level in the input, level in the output), and the rule seen from the other side
CASES: list[tuple[str, Any, Any, str, str, str]] = [
    ("a required field is added", closed(), {**closed(a=TEXT), "required": ["a"]}, "C123", "breaking", "risky"),
    ("an optional field is added", closed(), closed(a=TEXT), "C123", "safe", "risky"),
    ("a field is added to an open object", {}, {"properties": {"a": TEXT}}, "C123", "risky", "safe"),
    ("an optional field is removed", closed(a=TEXT), closed(), "C122", "breaking", "risky"),
    ("a required field is removed", NEEDED, {"properties": {}}, "C122", "risky", "breaking"),
    ("a field becomes required", closed(a=TEXT), {**closed(a=TEXT), "required": ["a"]}, "C120", "breaking", "safe"),
    ("a field becomes optional", {**closed(a=TEXT), "required": ["a"]}, closed(a=TEXT), "C121", "safe", "breaking"),
    ("a type is narrowed", NUMBER, INTEGER, "C124", "breaking", "safe"),
    ("a type is widened", {"type": "integer"}, NUMBER, "C125", "safe", "breaking"),
    ("null is allowed", TEXT, {"type": ["string", "null"]}, "C125", "safe", "breaking"),
    ("a type is another one", TEXT, NUMBER, "C126", "breaking", "breaking"),
    ("a value is removed", {"enum": ["a", "b"]}, {"enum": ["a"]}, "C127", "breaking", "safe"),
    ("a value is added", {"enum": ["a"]}, {"enum": ["a", "b"]}, "C128", "safe", "risky"),
    ("a const becomes an enum", {"const": "a"}, {"enum": ["a", "b"]}, "C128", "safe", "risky"),
    ("values are listed at last", TEXT, {"type": "string", "enum": ["a"]}, "C127", "breaking", "safe"),
    ("values are listed no more", {"type": "string", "enum": ["a"]}, TEXT, "C128", "safe", "risky"),
    ("a minimum is raised", {"minimum": 1}, {"minimum": 2}, "C129", "breaking", "safe"),
    ("a maximum is raised", {"maximum": 1}, {"maximum": 2}, "C130", "safe", "risky"),
    ("a maximum comes", {}, {"maxLength": 9}, "C129", "breaking", "safe"),
    ("a pattern comes", {}, {"pattern": "^a"}, "C131", "breaking", "safe"),
    ("a pattern goes", {"pattern": "^a"}, {}, "C132", "safe", "risky"),
    ("a pattern changes", {"pattern": "^a"}, {"pattern": "^b"}, "C133", "breaking", "risky"),
    ("a format changes", {"format": "date"}, {"format": "uuid"}, "C133", "breaking", "risky"),
    ("a condition changes", {"not": {"const": 1}}, {"not": {"const": 2}}, "C133", "risky", "risky"),
    ("an object is closed", {"type": "object"}, closed() | {"properties": {}}, "C134", "breaking", "safe"),
    ("an object is opened", closed(), {"type": "object"}, "C135", "safe", "safe"),
    ("an alternative comes", {"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER, NULL]}, "C137", "safe", "breaking"),
    ("an alternative goes", {"anyOf": [TEXT, NUMBER]}, {"anyOf": [TEXT]}, "C136", "breaking", "safe"),
    ("a field becomes nullable by anyOf", TEXT, {"anyOf": [TEXT, {"type": "null"}]}, "C137", "safe", "breaking"),
    ("unmatched alternatives", {"anyOf": [LOW, {"maxLength": 3}]}, {"anyOf": [HIGH, {"minLength": 1}]}, *UNKNOWN),
    ("overlapping alternatives of oneOf", {"oneOf": [LOW]}, {"oneOf": [LOW, HIGH]}, *UNKNOWN),
    ("a part of allOf comes", {"allOf": [LOW, HIGH]}, {"allOf": [LOW, HIGH, {"multipleOf": 2}]}, *CONDITION),
    ("a default changes", {"default": 1}, {"default": 2}, "C139", "risky", "safe"),
    ("a default of true is not one of 1", {"default": True}, {"default": 1}, "C139", "risky", "safe"),
    ("a description changes", {"description": "a"}, {"description": "b"}, "C104", "safe", "safe"),
    ("an annotation changes", {"readOnly": True}, {}, "C140", "risky", "risky"),
    ("a field is deprecated", {}, {"deprecated": True}, "C140", "safe", "safe"),
    ("an unknown keyword changes", {"colour": 1}, {"colour": 2}, "C140", "risky", "risky"),
    ("everything is forbidden", closed(a=True), closed(a=False), "C131", "breaking", "safe"),
    ("elements are narrowed", {"items": NUMBER}, {"items": {"type": "integer"}}, "C124", "breaking", "safe"),
    ("a tuple is narrowed", {"prefixItems": [{}]}, {"prefixItems": [{}, TEXT]}, "C124", "breaking", "safe"),
    ("names are limited", {}, {"propertyNames": {"maxLength": 3}}, "C129", "breaking", "safe"),
    ("free fields are narrowed", NUMBERS, INTEGERS, "C124", "breaking", "safe"),
]


@pytest.mark.parametrize(
    ("old", "new", "rule", "sent", "received"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_change_is_judged_by_its_effect_on_the_affected_side(
    old: Any, new: Any, rule: str, sent: str, received: str
) -> None:
    assert told(changes(old, new, "request")) == [(rule, sent)]
    assert told(changes(old, new, "response")) == [(rule, received)]


@pytest.mark.parametrize(("old", "new"), [case[1:3] for case in CASES], ids=[case[0] for case in CASES])
def test_reversed_comparison_reports_the_mirror(old: Any, new: Any) -> None:
    [there], [back] = changes(old, new), changes(new, old)
    mirrored = (MIRRORED[there.rule], there.pointer, there.old, there.new)
    assert mirrored == (back.rule, back.pointer, back.new, back.old)


SAME: list[tuple[str, Any, Any]] = [
    ("numbers are equal by value", {"minimum": 1, "enum": [1]}, {"minimum": 1.0, "enum": [1.0]}),
    ("the order of names does not count", {"required": ["a", "b"]}, {"required": ["b", "a"]}),
    ("the order of values does not count", {"enum": [1, 2]}, {"enum": [2, 1]}),
    ("the order of alternatives does not count", {"anyOf": [TEXT, NUMBER]}, {"anyOf": [NUMBER, TEXT]}),
    ("a type that the values say already", {"enum": ["a"]}, {"type": "string", "enum": ["a"]}),
    ("a const is an enum of one", {"const": 1}, {"enum": [1]}),
    ("a reference is what it refers to", {"$ref": "#/$defs/t", "$defs": {"t": TEXT}}, TEXT),
    ("an allOf of one part is that part", {"allOf": [TEXT]}, TEXT),
    ("both ways to say null", {"type": ["string", "null"]}, {"anyOf": [TEXT, {"type": "null"}]}),
    ("true is the empty schema", {"items": True}, {"items": {}}),
    ("no least size is the least size 0", {}, {"minItems": 0}),
    ("an exclusive bound that holds nothing new", {"minimum": 2, "exclusiveMinimum": 1}, {"minimum": 2}),
    (
        "a circle that is written out once more",
        {"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}}}},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
    ),
]


@pytest.mark.parametrize(("old", "new"), [case[1:] for case in SAME], ids=[case[0] for case in SAME])
def test_equivalent_schemas_have_no_changes(old: Any, new: Any) -> None:
    assert told(changes(old, new)) == told(changes(new, old)) == []


def test_a_message_names_the_field_and_both_values() -> None:
    old = closed(guests={"type": "array", "items": closed(age={"type": "integer", "minimum": 0})})
    new = closed(guests={"type": "array", "items": closed(age={"type": "integer", "minimum": 18})})
    [change] = changes(old, new)
    assert change.message == "input `guests[].age`: `minimum` 0 -> 18"
    assert change.pointer == "/schema/properties/guests/items/properties/age/minimum"
    assert "refused" in change.help


def test_a_change_behind_a_reference_is_reported_where_it_is_used() -> None:
    def schema(kind: str) -> dict[str, Any]:
        return {**closed(a={"$ref": "#/$defs/x"}, b={"$ref": "#/$defs/x"}), "$defs": {"x": {"type": kind}}}

    assert [change.pointer for change in changes(schema("number"), schema("integer"))] == [
        "/schema/properties/a/type",
        "/schema/properties/b/type",
    ]


@pytest.mark.parametrize("reference", ["#anchor", "other.json#/x", "#/$defs/nowhere", "#/$defs/self"])
def test_dangling_reference_is_never_silently_safe(reference: str) -> None:
    old = {"$ref": reference, "$defs": {"self": {"$ref": "#/$defs/self"}, "x": {"$anchor": "anchor", "type": "string"}}}
    new = {**old, "$defs": {**old["$defs"], "x": {"$anchor": "anchor", "type": "number"}}}  # type: ignore[dict-item]
    assert told(changes(old, new)) == [("C141", "risky")]


def part(kind: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]}


def excluding(value: int) -> dict[str, Any]:
    return {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": {"const": value}}}


def titled(most: int) -> dict[str, Any]:
    return {"oneOf": [{"title": "a", "maximum": most}, {"title": "b", "minimum": 9}]}


def deep(leaf: dict[str, Any]) -> dict[str, Any]:
    for _ in range(90):
        leaf = {"items": {"items": leaf}}
    return leaf


@rows(
    "old, new, expected",
    (excluding(1), excluding(2), ("C141", "risky")),  # a condition over a changed definition
    (titled(5), titled(8), ("C130", "risky")),  # a wider part that overlaps another one
    ({"oneOf": [part("a"), part("b")]}, {"oneOf": [part("a"), part("b"), part("c")]}, ("C137", "safe")),
    (deep(TEXT), deep(NUMBER), ("C141", "risky")),  # too many levels
)
def test_uncertain_change_is_never_silently_safe(old: Any, new: Any, expected: tuple[str, str]) -> None:
    assert told(changes(old, new)) == [expected]


def test_endlessly_expanding_schema_is_abandoned_and_reported() -> None:
    def lattice(leaf: str) -> dict[str, Any]:
        levels = {f"l{n}": {"properties": {side: {"$ref": f"#/$defs/l{n + 1}"} for side in "ab"}} for n in range(40)}
        return {"$ref": "#/$defs/l0", "$defs": {**levels, "l40": {"type": leaf}}}

    found = changes(lattice("string"), lattice("number"))
    assert len(found) == MOST_CHANGES + 1 or ("C141", "risky") in told(found)
    assert changes(lattice("string"), {**lattice("string"), "$comment": "the same"})[0].rule == "C104"


def test_changes_beyond_the_limit_count_as_breaking() -> None:
    found = changes(closed(), closed(**{f"f{n}": TEXT for n in range(MOST_CHANGES + 500)}))
    assert len(found) == MOST_CHANGES + 1
    assert told(found)[-1] == ("C199", "breaking")


leaves = st.sampled_from(
    [{}, TEXT, NUMBER, INTEGER, {"type": ["string", "null"]}, {"enum": ["a", "b"]}, {"const": "a"}, True, False]
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.integers(0, 3),
        "maximum": st.integers(3, 6),
        "exclusiveMinimum": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "minItems": st.integers(0, 2),
        "multipleOf": st.sampled_from([1, 2, 3, 6, 0.5]),
        "uniqueItems": st.booleans(),
        "pattern": st.sampled_from(["^a", "b$"]),
        "default": st.sampled_from([1, "a", None]),
        "description": st.sampled_from(["x", "y"]),
    },
)


def deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"])
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(names, inner, max_size=3)},
        optional={
            "required": st.lists(names, unique=True, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), inner),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")}, optional={"items": inner, "prefixItems": st.lists(inner, min_size=1, max_size=2)}
    )
    parts = st.sampled_from(["anyOf", "oneOf", "allOf"]).flatmap(
        lambda word: st.fixed_dictionaries({word: st.lists(inner, min_size=1, max_size=3)})
    )
    return st.one_of(objects, arrays, parts, st.fixed_dictionaries({"not": inner}))


schemas = st.recursive(st.one_of(leaves, limits), deeper, max_leaves=6).filter(lambda schema: isinstance(schema, dict))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 7), st.sampled_from(["", "a", "b", "ab", 0.5])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=5,
)


pairs = st.one_of(
    st.tuples(schemas, schemas),
    st.builds(lambda old, more: (old, {**old, **more}), schemas, schemas),
    st.builds(lambda old, more: ({**old, **more}, old), schemas, schemas),
)
"""Pairs of unrelated schemas, and of schemas where one extends the other."""


@given(schemas)
def test_a_schema_does_not_differ_from_itself(schema: Any) -> None:
    assert changes(schema, {**schema}) == []


@given(pairs)
def test_reversed_comparison_reports_the_mirror_of_every_change(pair: tuple[Any, Any]) -> None:
    old, new = pair

    def key(rule: str, change: ContractChange, before: Any, after: Any) -> tuple[str, ...]:
        return rule, re.sub(r"Of/\d+", "Of/*", change.pointer), canonical(before), canonical(after)

    there = sorted(key(MIRRORED[change.rule], change, change.new, change.old) for change in changes(old, new))
    back = sorted(key(change.rule, change, change.old, change.new) for change in changes(new, old))
    assert there == back


@given(pairs, st.lists(values, min_size=4, max_size=8))
def test_safe_changes_of_input_accept_all_old_values_and_those_of_output_add_none(
    pair: tuple[Any, Any], samples: list[Any]
) -> None:
    before, after = compile_schema(pair[0]), compile_schema(pair[1])
    if not isinstance(before, Validator) or not isinstance(after, Validator):
        return
    if all(change.level == "safe" for change in changes(*pair, "request")):
        for value in samples:
            assert after.is_valid(value) or not before.is_valid(value), value
    # Added fields are the exception: readers pass over them.
    if all(change.level == "safe" and change.about.kind != "added" for change in changes(*pair, "response")):
        opened = any(change.rule == "C135" for change in changes(*pair, "response"))
        for value in samples:
            assert opened or before.is_valid(value) or not after.is_valid(value), value


def test_the_advice_for_a_removed_output_speaks_of_what_is_missing() -> None:
    old = closed(a=TEXT, b=TEXT) | {"required": ["a", "b"]}
    [change] = [one for one in changes(old, closed(a=TEXT) | {"required": ["a"]}, "response") if one.rule == "C122"]
    assert change.help.startswith("Clients that read it may find nothing.")


def test_a_member_that_leaves_a_union_of_classes_is_one_change() -> None:
    members = {
        name: closed(kind={"enum": [name]}, **{field: TEXT}) | {"required": ["kind", field]}
        for name, field in (("card", "number"), ("transfer", "iban"))
    }
    union = {
        "oneOf": [{"$ref": "#/$defs/card"}, {"$ref": "#/$defs/transfer"}],
        "discriminator": {"propertyName": "kind", "mapping": {name: f"#/$defs/{name}" for name in members}},
    }
    old = {"properties": {"payment": union}, "$defs": members}
    new = {"properties": {"payment": {"$ref": "#/$defs/card"}}, "$defs": {"card": members["card"]}}
    assert told(changes(old, new)) == [("C136", "breaking")]
    assert told(changes(new, old)) == [("C137", "safe")]
