"""Sources as functions: paths, defaults, shapes, and null where it is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compositions import captured, given, item

from bespeak.contract.recipe import Condition, Source, constant
from bespeak.runtime.composition.values import (
    MISSING,
    Scope,
    compile_conditions,
    compile_members,
    compile_value,
    follow,
)

SCOPE = Scope({"city": "Riga", "none": None, "guest": {"name": "Ann"}})
SCOPE.capture("rooms", {"items": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": ["c"]}, {}]})

ONE = {"n": 1, "at": "Riga"}


def read(source: Source, element: Any = None) -> Any:
    return compile_value(source)(SCOPE, element)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        (constant(3), 3),
        (given("city"), "Riga"),
        (given("guest.name"), "Ann"),
        (given(""), SCOPE.input),
        (given("town"), MISSING),
        (given("city.name"), MISSING),
        (given("town", default="Tallinn"), "Tallinn"),
        (given("none", default=1), 1),
        (given("none"), None),
        (captured("rooms.items.id"), [1, 2]),
        (captured("rooms.items.tags"), ["a", "b", "c"]),
        (captured("halls.items"), MISSING),
        (captured("rooms.items", limit=constant(1), get="id"), [1]),
        (captured("rooms.items", pick="first", get="id"), 1),
        (
            captured("rooms.items", limit=constant(1), select={"n": item("id"), "at": given("city")}),
            [{"n": 1, "at": "Riga"}],
        ),
        (given("guest", select={"who": item("name"), "age": item("age")}), {"who": "Ann"}),
        (given("town", select={"who": item("name")}), MISSING),
    ],
)
def test_a_source_gives_its_value(source: Source, value: Any) -> None:
    assert read(source) == value


def test_the_element_of_a_list_is_a_source() -> None:
    assert read(item("id"), {"id": 7}) == 7
    assert read(item(), 7) == 7


def test_null_is_left_out_where_it_is_not_allowed() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"$ref": "#/$defs/c"}}}
    schema["$defs"] = {"c": {"type": "string"}}
    build = compile_members({name: constant(None) for name in ("a", "b", "c", "d")}, schema)
    assert build(SCOPE, None) == {"b": None, "d": None}


def test_null_is_left_out_of_selected_elements_too() -> None:
    schema = {"properties": {"rows": {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}}}
    build = compile_members({"rows": constant([{"n": None}, {"n": 1}])} | {}, schema)
    assert build(SCOPE, None) == {"rows": [{"n": None}, {"n": 1}]}
    shaped = Source(kind="constant", value=[{"n": None}, {"n": 1}], select={"n": item("n")})
    assert compile_members({"rows": shaped}, schema)(SCOPE, None) == {"rows": [{}, {"n": 1}]}


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        (Condition(left=given("city"), right=constant("Riga")), True),
        (Condition(left=given("city"), right=constant("Oslo")), False),
        (Condition(left=given("city"), right=given("town")), True),
        (Condition(left=given("town"), right=constant("Riga")), False),
        (Condition(left=given("town"), op="ne", right=constant("Riga")), True),
        (Condition(left=given("town"), op="absent"), True),
        (Condition(left=given("none"), op="present"), False),
        (Condition(left=given("city"), op="present"), True),
    ],
)
def test_conditions_of_a_step(condition: Condition, met: bool) -> None:
    assert compile_conditions((condition,))(SCOPE, None) is met


def test_a_path_into_a_list_continues_in_each_element() -> None:
    assert follow([{"a": [{"b": 1}, {"b": 2}]}, {"a": {"b": 3}}, 4], ("a", "b")) == [1, 2, 3]


def test_a_new_object_keeps_the_element_around_it() -> None:
    nested = Source(kind="constant", value={}, select={"id": item("id"), "at": given("city")})
    source = captured("rooms.items", limit=constant(1), select={"room": nested})
    assert read(source) == [{"room": {"id": 1, "at": "Riga"}}]
