"""Validators: violations with their places, refused schemas, pruned values, and what is too large."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.schema.subschemas import MAX_DEPTH, nodes
from bespeak.contract.schema.validation import (
    Pruner,
    Validator,
    Violation,
    compile_schema,
    excess,
    is_within,
    non_finite,
    refuse_input,
    shorten,
)
from bespeak.protocol.exchange.refusal import Fault


def compiled(schema: dict[str, Any]) -> Validator:
    validator = compile_schema(schema)
    assert isinstance(validator, Validator), validator
    return validator


def fault(schema: Any) -> Fault:
    found = compile_schema(schema)
    assert isinstance(found, Fault)
    return found


ROOM = {
    "type": "object",
    "properties": {
        "guest_id": {"type": "string", "format": "uuid"},
        "nights": {"type": "integer", "minimum": 1},
        "note": {"type": "string", "maxLength": 5},
    },
    "required": ["guest_id", "nights"],
    "additionalProperties": False,
}


def test_every_violation_is_reported_not_only_the_first() -> None:
    violations = compiled(ROOM).violations({"guest_id": "x", "nights": 0, "note": "too long", "extra": 1})
    assert {(violation.pointer, violation.keyword) for violation in violations} == {
        ("/guest_id", "format"),
        ("/nights", "minimum"),
        ("/note", "maxLength"),
        ("", "additionalProperties"),
    }


def test_violation_names_its_pointers_and_closed_objects_and_forbidden_properties() -> None:
    schema = {"properties": {"a/b": {"items": {"type": "string"}}}}
    assert compiled(schema).violations({"a/b": ["x", 1]}) == [
        Violation("/a~1b/1", "/properties/a~1b/items/type", "type", '1 is not of type "string"')
    ]
    (violation,) = compiled({"type": "object", "additionalProperties": False}).violations({"x": 1})
    assert (violation.keyword, violation.message) == ("additionalProperties", "no properties are allowed here")
    (violation,) = compiled({"properties": {"x": False}}).violations({"x": 1})
    assert (violation.pointer, violation.keyword) == ("/x", "false")


def _kind(name: str, field: str) -> dict[str, Any]:
    properties = {"kind": {"enum": [name]}, field: {"type": "string"}}
    return {"type": "object", "properties": properties, "required": ["kind", field], "additionalProperties": False}


@rows(
    "value, expected",
    ({"kind": "cash", "number": "1"}, [("/kind", '"cash" is not one of "card", "transfer"')]),
    ({"kind": "card", "number": 1}, [("/number", '1 is not of type "string"')]),
    ({}, [("", '"kind" is a required property')]),
    ("card", [("", '"card" is not of type "object"')]),
)
def test_a_value_of_no_alternative_is_told_what_all_of_them_admit(value: Any, expected: list[tuple[str, str]]) -> None:
    schema = {"type": "object", "oneOf": [_kind("card", "number"), _kind("transfer", "iban")]}
    assert [(one.pointer, one.message) for one in compiled(schema).violations(value)] == expected


@rows(
    "name, good, bad",
    ("uuid", "e50f7480-8398-4b33-9507-63017246837d", "e50f7480"),
    ("date", "2026-02-28", "2026-02-30"),
    ("date-time", "2026-02-28T10:00:00Z", "2026-02-28T10:00:00"),
    ("email", "ops@acme.example", "ops"),
    ("uri", "https://acme.example/x", "not a uri"),
)
def test_formats_are_asserted(name: str, good: str, bad: str) -> None:
    validator = compiled({"format": name})
    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


def test_message_number_and_values_of_violations_are_bounded() -> None:
    (violation,) = compiled({"maxLength": 3}).violations("x" * 1_000_000)
    assert len(violation.message) <= 300
    assert violation.message.endswith("is longer than 3 characters")
    assert len(compiled({"items": {"type": "string"}}).violations(list(range(900)))) == 100
    checked = compiled({"type": "object", "properties": {"a": {"items": {"type": "string"}}}})
    [violation] = checked.violations({"a": [1] * 1_000_000})
    assert (violation.pointer, violation.keyword) == ("/a/0", "type")
    assert len(checked.violations({"a": [1] * 90})) == 90


def test_equal_schemas_share_one_validator() -> None:
    assert compiled({"type": "object", "title": "shared"}) is compiled({"type": "object", "title": "shared"})


@rows(
    "schema, pointer",
    ({"type": "strin"}, "/type"),
    ({"properties": {"a": {"minimum": "x"}}}, "/properties/a/minimum"),
    ({"required": "a"}, "/required"),
    ({"pattern": "("}, "/pattern"),
    ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
)
def test_an_invalid_schema_is_refused_with_its_place(schema: dict[str, Any], pointer: str) -> None:
    assert fault(schema).at == pointer


@pytest.mark.parametrize("schema", [True, [], "x", None, {"a": object()}, {"const": {1j}}])
def test_value_that_is_not_a_json_object_is_not_a_schema(schema: Any) -> None:
    assert fault(schema).message


@rows(
    "schema",
    {"$ref": "https://example.com/schema"},
    {"$ref": "file:///etc/passwd"},
    {"items": {"$ref": "other.json"}},
    {"anyOf": [{"$dynamicRef": "other.json#x"}]},
    {"properties": {"$ref": {"$ref": "other.json"}}},
    {"$ref": 5},
)
def test_a_reference_to_another_document_is_refused(schema: dict[str, Any]) -> None:
    assert "must stay inside its schema" in fault(schema).message


def test_dangling_reference_is_refused_and_a_property_or_data_named_ref_is_no_reference() -> None:
    assert "does not exist" in fault({"$ref": "#/$defs/nothing"}).message
    validator = compiled(
        {"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "x"}, "enum": [{"$ref": "anything"}]}
    )
    assert validator.is_valid({"$ref": "anything"})


@rows(
    "schema",
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"not": {"$ref": "#"}},
)
def test_circular_schema_still_validates(schema: dict[str, Any]) -> None:
    assert compiled(schema).is_valid({}) in (True, False)


def test_a_recursive_schema_follows_the_value() -> None:
    validator = compiled({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False})
    value: dict[str, Any] = {}
    for _ in range(200):
        value = {"next": value}
    assert validator.is_valid(value)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_pattern_takes_more_than_linear_time(pattern: str) -> None:
    assert not compiled({"pattern": pattern}).is_valid("a" * 50_000 + "!")


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(a{1000}){1000}"])
def test_a_pattern_the_linear_engine_cannot_hold_is_refused(pattern: str) -> None:
    assert fault({"pattern": pattern}).at == "/pattern"


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def test_depth_of_a_schema_is_limited() -> None:
    compiled(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 900, 5_000):
        assert fault(nested(levels)).message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(
    ["type", "$ref", "properties", "items", "anyOf", "const", "enum", "pattern", "required", "$id"]
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYWORDS, JSON, max_size=4), JSON)
def test_any_document_is_a_schema_or_a_fault_and_any_value_gets_an_answer(schema: dict[str, Any], value: Any) -> None:
    validator = compile_schema(schema)
    if isinstance(validator, Fault):
        assert validator.message
    else:
        assert validator.is_valid(value) == (not validator.violations(value))


@given(JSON)
def test_a_decoded_value_is_valid_for_its_own_constant(value: Any) -> None:
    plain = msgspec.json.decode(msgspec.json.encode(value))
    assert compiled({"const": plain}).is_valid(plain)


@pytest.mark.parametrize("bound", [0, 1.0, 2**63, 2**64, 10**30, 1e300])
@pytest.mark.parametrize("keyword", ["maxLength", "minItems", "maxProperties", "minimum", "exclusiveMaximum"])
def test_a_schema_that_was_accepted_answers_however_large_its_bounds(keyword: str, bound: float) -> None:
    assert isinstance(compiled({keyword: bound}).is_valid("x"), bool)


def levels(count: int, step: Callable[[str], dict[str, Any]], last: dict[str, Any] | None = None) -> dict[str, Any]:
    """Build levels that each refer to the next one."""
    shared = {f"s{level}": step(f"#/$defs/s{level + 1}") for level in range(count)}
    return {"$defs": {**shared, f"s{count}": last or {}}, "$ref": "#/$defs/s0"}


def multiplying(keyword: str, count: int) -> dict[str, Any]:
    return levels(count, lambda following: {keyword: [{"$ref": following}] * 10}, {"type": "object"})


def by_anchors() -> dict[str, Any]:
    shared = {f"s{n}": {"$anchor": f"a{n}", "anyOf": [{"$ref": f"#a{n + 1}"}] * 10} for n in range(30)}
    return {"$defs": {**shared, "s30": {"$anchor": "a30"}}, "$ref": "#a0"}


def everyone_asks_everyone() -> dict[str, Any]:
    shared = {f"s{one}": {"allOf": [{"$ref": f"#/$defs/s{other}"} for other in range(50)]} for one in range(50)}
    return {"$defs": shared, "$ref": "#/$defs/s0"}


@rows(
    "schema",
    multiplying("allOf", 30),
    multiplying("anyOf", 30),
    multiplying("oneOf", 30),
    {**multiplying("allOf", 30), "unevaluatedProperties": False},
    {"$defs": {"inner": {"$id": "urn:inner", **multiplying("allOf", 30)}}, "$ref": "#/$defs/inner"},
    by_anchors(),
    levels(30, lambda following: {key: {"$ref": following} for key in ("if", "then", "else", "not")}),
    levels(30, lambda following: {"dependentSchemas": {name: {"$ref": following} for name in "abcd"}}),
    everyone_asks_everyone(),
)
def test_a_schema_that_multiplies_itself_is_refused(schema: dict[str, Any]) -> None:
    assert "multiply" in fault(schema).message


@rows(
    "schema",
    {"type": "object"},
    multiplying("allOf", 3),
    multiplying("prefixItems", 30),
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}, {"$ref": "#/allOf/7"}, {"$ref": "#/allOf/x"}]},
    {"properties": {"child": {"$ref": "#"}, "other": {"$ref": "#"}}},
    {"$defs": {"a": {"$dynamicAnchor": "a", "items": {"$dynamicRef": "#a"}}}, "$ref": "#/$defs/a"},
    {"$ref": 7, "allOf": 7, "dependentSchemas": [], "not": True},
)
def test_references_to_parts_of_the_value_are_not_multiplied(schema: dict[str, Any]) -> None:
    assert excess(nodes(schema)) is None


def chain(length: int, last: dict[str, Any]) -> dict[str, Any]:
    return {**levels(length, lambda following: {"$ref": following}, last), "unevaluatedProperties": False}


def test_chain_of_references_is_usable_and_too_many_references_are_refused() -> None:
    assert compiled(chain(190, {"type": "object"})).is_valid({})
    properties = {f"p{number}": {"$ref": "#/$defs/name"} for number in range(10_001)}
    found = fault({"$defs": {"name": {"type": "string"}}, "properties": properties})
    assert "more than 10,000 references" in found.message


@pytest.mark.parametrize("last", [{"type": "object"}, {"$ref": "#/$defs/s0"}])
@pytest.mark.parametrize("length", [250, 9_000])
def test_a_chain_that_overflows_the_native_stack_is_refused(length: int, last: dict[str, Any]) -> None:
    assert "form a chain" in fault(chain(length, last)).message


TEXT = {"type": "string"}
USER = {"type": "object", "properties": {"name": TEXT}, "required": ["name"], "additionalProperties": False}
ADMIN = {
    "type": "object",
    "properties": {"name": TEXT, "rights": TEXT},
    "required": ["name", "rights"],
    "additionalProperties": False,
}
ROW = {"name": "Ada", "key": 1}


@rows(
    "schema, value, kept, dropped",
    (USER, ROW, {"name": "Ada"}, {"key"}),
    ({"type": "object"}, ROW, ROW, set()),
    ({**USER, "additionalProperties": True}, ROW, ROW, set()),
    ({"type": "array", "items": USER}, [ROW, ROW], [{"name": "Ada"}] * 2, {"key"}),
    ({"type": "array", "items": USER}, (ROW,), [{"name": "Ada"}], {"key"}),
    ({"prefixItems": [USER], "items": False}, [ROW, 1], [{"name": "Ada"}], {"key", "[1]"}),
    ({"additionalProperties": USER}, {"x": ROW}, {"x": {"name": "Ada"}}, {"key"}),
    ({"patternProperties": {"^x": USER}}, {"x": ROW}, {"x": {"name": "Ada"}}, {"key"}),
    ({"patternProperties": {"^x": USER, "^y": ADMIN}}, {"x": ROW}, {"x": {"name": "Ada"}}, {"key"}),
    ({"anyOf": [USER, ADMIN]}, {**ROW, "rights": "all"}, {"name": "Ada", "rights": "all"}, {"key"}),
    ({"oneOf": [USER, ADMIN]}, {**ROW, "rights": 1}, {"name": "Ada"}, {"key", "rights"}),
    ({"anyOf": [USER, {"type": "null"}]}, {"key": 1}, {"key": 1}, set()),
    ({"anyOf": [{"type": "array", "items": USER}, USER]}, [ROW], [{"name": "Ada"}], {"key"}),
    ({"anyOf": [True, USER]}, ROW, ROW, set()),
    ({"$ref": "#/$defs/User", "$defs": {"User": USER}}, ROW, {"name": "Ada"}, {"key"}),
    ({"$ref": "#/$defs/Lost", "$defs": {}}, ROW, ROW, set()),
)
def test_fields_that_the_schema_refuses_are_dropped_and_named(
    schema: dict[str, Any], value: Any, kept: Any, dropped: set[str]
) -> None:
    assert Pruner(schema).prune(value) == (kept, dropped)


_JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(["name", "left", "key"]), part),
    max_leaves=20,
)
_NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": TEXT, "left": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
    "additionalProperties": False,
}


@given(_JSON)
def test_any_data_ends_in_data_that_is_valid_or_was_not_valid_before(value: Any) -> None:
    pruner = Pruner({"$ref": "#/$defs/Node", "$defs": {"Node": _NODE}})
    kept, dropped = pruner.prune(value)
    assert dropped <= {"key"}
    assert not isinstance(kept, dict) or "key" not in kept
    assert pruner.prune(kept) == (kept, frozenset())


@pytest.mark.parametrize(
    ("value", "parts", "characters"),
    [(1, 1, 0), ("four", 1, 4), ([], 1, 0), ([1, [2]], 4, 0), ({"ab": "c", "d": None}, 3, 4), ([{"a": []}] * 3, 7, 3)],
)
def test_parts_and_characters_are_counted(value: Any, parts: int, characters: int) -> None:
    assert is_within(value, parts=parts, characters=characters)
    assert not is_within(value, parts=parts - 1, characters=characters)
    assert not characters or not is_within(value, parts=parts, characters=characters - 1)


def test_deep_value_does_not_overflow() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    assert not is_within(value, parts=1000, characters=0)
    assert is_within(value, parts=100_001, characters=0)
    while value:
        value = value.pop()  # taken apart step by step: freeing it at once would recurse


@given(st.text(max_size=1000))
def test_a_shortened_text_has_at_most_three_hundred_characters(text: str) -> None:
    short = shorten(text)
    assert len(short) <= 300
    assert short == text or short.endswith(text[-100:])


def test_message_has_the_first_violation_and_the_list_all() -> None:
    violations = [
        Violation("/a", "/properties/a/type", "type", "1 is no text"),
        Violation("", "/required", "required", "b"),
    ]
    refused = refuse_input("BOOK", "/room", violations)
    assert (refused.status, refused.code) == (422, "input-validation-failed")
    assert refused.message == "The input of BOOK /room is not valid: 1 is no text (and 1 more)."
    assert [violation["pointer"] for violation in refused.details["violations"]] == ["/a", ""]


def test_infinities_and_nan_are_found_with_their_pointers() -> None:
    value = {"a": [1.0, math.inf], "b": {"c": math.nan}, "d": None, "e": "inf"}
    assert sorted(violation.pointer for violation in non_finite(value)) == ["/a/1", "/b/c"]
    assert non_finite({"a": [1.5, -0.0, None]}) == []


@rows(
    "text, fits", ("1.50", True), ("-3", True), (".5", True), ("1e3", True), ("x", False), ("NaN", False), ("", False)
)
def test_a_decimal_is_checked_with_everything_else(text: str, fits: bool) -> None:
    properties = {"price": {"type": "string", "format": "decimal"}, "count": {"type": "integer"}}
    found = compiled({"type": "object", "properties": properties}).violations({"price": text, "count": "many"})
    assert [one.pointer for one in found] == (["/count"] if fits else ["/price", "/count"])
