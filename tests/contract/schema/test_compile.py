from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.schema.subschemas import MAX_DEPTH
from bespeak.contract.schema.validation import Validator, Violation, compile_schema
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


def test_violation_has_pointers_into_value_and_schema() -> None:
    schema = {"properties": {"a/b": {"items": {"type": "string"}}}}
    assert compiled(schema).violations({"a/b": ["x", 1]}) == [
        Violation("/a~1b/1", "/properties/a~1b/items/type", "type", '1 is not of type "string"')
    ]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("uuid", "e50f7480-8398-4b33-9507-63017246837d", "e50f7480"),
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-02-28T10:00:00Z", "2026-02-28T10:00:00"),
        ("email", "ops@acme.example", "ops"),
        ("uri", "https://acme.example/x", "not a uri"),
    ],
)
def test_formats_are_asserted(name: str, good: str, bad: str) -> None:
    validator = compiled({"format": name})
    assert validator.is_valid(good)
    assert not validator.is_valid(bad)


def test_message_for_a_closed_object_without_properties() -> None:
    (violation,) = compiled({"type": "object", "additionalProperties": False}).violations({"x": 1})
    assert violation.keyword == "additionalProperties"
    assert violation.message == "no properties are allowed here"


def test_message_for_a_forbidden_property() -> None:
    (violation,) = compiled({"properties": {"x": False}}).violations({"x": 1})
    assert (violation.pointer, violation.keyword) == ("/x", "false")


def test_a_huge_value_makes_a_short_message_that_keeps_its_end() -> None:
    (violation,) = compiled({"maxLength": 3}).violations("x" * 1_000_000)
    assert len(violation.message) <= 300
    assert violation.message.endswith("is longer than 3 characters")


def test_the_number_of_reported_violations_is_bounded() -> None:
    assert len(compiled({"items": {"type": "string"}}).violations(list(range(900)))) == 100


def test_equal_schemas_share_one_validator() -> None:
    assert compile_schema({"type": "object", "title": "shared"}) is compile_schema(
        {"type": "object", "title": "shared"}
    )


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "strin"}, "/type"),
        ({"properties": {"a": {"minimum": "x"}}}, "/properties/a/minimum"),
        ({"required": "a"}, "/required"),
        ({"pattern": "("}, "/pattern"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
    ],
)
def test_an_invalid_schema_is_refused_with_its_place(schema: dict[str, Any], pointer: str) -> None:
    assert fault(schema).at == pointer


@pytest.mark.parametrize("schema", [True, [], "x", None, {"a": object()}, {"const": {1j}}])
def test_value_that_is_not_a_json_object_is_not_a_schema(schema: Any) -> None:
    assert fault(schema).message


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.com/schema"},
        {"$ref": "file:///etc/passwd"},
        {"items": {"$ref": "other.json"}},
        {"anyOf": [{"$dynamicRef": "other.json#x"}]},
        {"properties": {"$ref": {"$ref": "other.json"}}},
        {"$ref": 5},
    ],
)
def test_a_reference_to_another_document_is_refused(schema: dict[str, Any]) -> None:
    assert "must stay inside its schema" in fault(schema).message


def test_dangling_reference_is_refused() -> None:
    assert "does not exist" in fault({"$ref": "#/$defs/nothing"}).message


def test_property_called_ref_and_data_with_a_ref_are_not_references() -> None:
    validator = compiled(
        {"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "x"}, "enum": [{"$ref": "anything"}]}
    )
    assert validator.is_valid({"$ref": "anything"})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"not": {"$ref": "#"}},
    ],
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


def test_only_the_first_violation_of_a_huge_value_is_reported() -> None:
    checked = compile_schema({"type": "object", "properties": {"a": {"items": {"type": "string"}}}})
    assert isinstance(checked, Validator)
    [violation] = checked.violations({"a": [1] * 1_000_000})
    assert (violation.pointer, violation.keyword) == ("/a/0", "type")
    assert len(checked.violations({"a": [1] * 90})) == 90
