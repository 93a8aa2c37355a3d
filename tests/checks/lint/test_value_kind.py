"""What is known about the values of a recipe before it runs."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.checks.lint.rules.composition import ValueKind, gaps, misfits
from bespeak.contract.schema.shape import members_of

ROOMS = {
    "type": "object",
    "properties": {
        "rooms": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "beds": {"type": "array", "items": {"type": "integer"}}},
                "required": ["id"],
            },
        },
        "open": {"type": "object"},
    },
    "required": ["rooms"],
}


def kind(schema: dict[str, Any]) -> ValueKind:
    return ValueKind(members=members_of(schema))


@pytest.mark.parametrize(
    ("path", "types"),
    [
        ("rooms", {"array"}),
        ("rooms.id", {"array"}),
        ("rooms.beds", {"array"}),
        ("open", {"object"}),
        ("open.anything", set()),
    ],
)
def test_a_path_leads_to_a_type(path: str, types: set[str]) -> None:
    found = kind(ROOMS).follow(path)
    assert isinstance(found, ValueKind)
    assert found.types == types


def test_elements_of_a_list_have_their_own_kind() -> None:
    found = kind(ROOMS).follow("rooms.beds")
    assert isinstance(found, ValueKind)
    assert found.element.types == {"integer"}
    assert ValueKind(constant=["a"]).element.types == {"string"}
    assert ValueKind(constant=[]).element.types == set()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("room", "there is no field 'room'; there are open, rooms"),
        ("rooms.name", "there is no field 'name'; there are beds, id"),
        ("rooms.id.x", "'x' is not in a value of type string"),
    ],
)
def test_a_path_that_leads_nowhere_is_told(path: str, text: str) -> None:
    assert kind(ROOMS).follow(path) == text


def test_a_field_that_need_not_be_there_is_optional() -> None:
    found = [kind(ROOMS).follow(name) for name in ("rooms", "open")]
    assert [one.is_optional for one in found if isinstance(one, ValueKind)] == [False, True]


def text(schema: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    return list(misfits(kind(schema), members_of(wanted)))


STRING, NUMBER, INTEGER = ({"type": name} for name in ("string", "number", "integer"))


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (STRING, STRING),
        (NUMBER, INTEGER),
        (INTEGER, NUMBER),
        ({}, STRING),
        (STRING, {}),
        ({"type": ["string", "null"]}, STRING),
        (STRING, {"type": "string", "format": "date"}),
        (STRING, {"enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}),
        ({"anyOf": [STRING, {"type": "string", "format": "date"}]}, {"type": "string", "format": "uuid"}),
        (
            {"type": "object", "properties": {"a": STRING}},
            {"type": "object", "anyOf": [{"required": ["b"], "properties": {"b": STRING}}, {"required": ["a"]}]},
        ),
    ],
)
def test_values_that_may_fit(schema: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert text(schema, wanted) == []


@pytest.mark.parametrize(
    ("schema", "wanted", "reason"),
    [
        (STRING, INTEGER, "is a string, and an integer is wanted"),
        ({"type": "array"}, STRING, "is an array, and a string is wanted"),
        (
            {"type": "string", "format": "date"},
            {"type": "string", "format": "uuid"},
            "has the format date, and uuid is wanted",
        ),
        ({"enum": ["a"]}, {"enum": ["b"]}, "is one of a, and one of b is wanted"),
        (
            {"type": "array", "items": STRING},
            {"type": "array", "items": INTEGER},
            "has elements of which each is a string, and an integer is wanted",
        ),
        (
            {"type": "object", "properties": {"a": STRING}},
            {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]},
            "has no 'b', which is required",
        ),
        (
            {"type": "object", "properties": {"a": STRING}},
            {"type": "object", "properties": {"a": INTEGER}},
            "has 'a', which is a string, and an integer is wanted",
        ),
    ],
)
def test_values_that_cannot_fit(schema: dict[str, Any], wanted: dict[str, Any], reason: str) -> None:
    assert text(schema, wanted) == [reason]


def test_constants_are_compared_with_listed_values() -> None:
    wanted = members_of({"enum": ["a", "b"]})
    assert list(misfits(ValueKind(constant="a"), wanted)) == []
    assert list(misfits(ValueKind(constant="c"), wanted)) == ["is 'c', and one of a, b is wanted"]
    assert list(misfits(ValueKind(constant=3), members_of(STRING))) == ["is an integer, and a string is wanted"]


def test_schemas_that_refer_to_themselves_end() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": STRING}}
    other = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": INTEGER}}
    assert len(text(tree, other)) > 1


def test_required_values_that_may_be_null_are_found_at_any_depth() -> None:
    def rows(kind: Any, *required: str) -> dict[str, Any]:
        row = {"type": "object", "properties": {"memo": {"type": kind}}, "required": list(required)}
        return {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"]}

    may_lack = kind(rows(["string", "null"]))
    assert list(gaps(may_lack, members_of(rows("string", "memo")))) == [("rows", "[]", "memo")]
    assert list(gaps(may_lack, members_of(rows("string")))) == []
    assert list(gaps(may_lack, members_of(rows(["null", "string"], "memo")))) == []
    assert list(gaps(kind(rows("string")), members_of(rows("string", "memo")))) == []
