"""Sources as functions: paths, defaults, shapes, and null where it is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as example
from hypothesis import strategies as st
from tests.compositions import captured, given, item

from bespeak.contract.recipe import COMPARISONS, Condition, Source, constant
from bespeak.runtime.composition.values import (
    COMPARE,
    MISSING,
    MOST_ROWS,
    Scope,
    UnmetError,
    compile_conditions,
    compile_members,
    compile_value,
    follow,
    is_there,
    normal,
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


ROW = st.fixed_dictionaries({"id": st.integers(0, 9)}, optional={"price": st.integers(-5, 5) | st.none()})


def scope(rows: Any, **values: Any) -> Scope:
    made = Scope(values)
    made.capture("rows", rows)
    return made


def less(limit: Any) -> Condition:
    return Condition(left=item("price"), op="lt", right=limit)


@example(st.lists(ROW), st.integers(-5, 5) | st.none(), st.none() | st.integers(0, 5), st.booleans())
def test_where_sort_and_limit_agree_with_the_plain_way(
    rows: list[dict[str, Any]], most: int | None, limit: int | None, down: bool
) -> None:
    source = captured(
        "rows", where=(less(given("most")),), sort=constant("-price" if down else "price"), limit=given("limit")
    )
    kept = [row for row in rows if most is None or (row.get("price") is not None and row["price"] < most)]
    priced = [row for row in kept if row.get("price") is not None]
    expected = sorted(priced, key=lambda row: row["price"], reverse=down)
    expected += [row for row in kept if row.get("price") is None]
    assert compile_value(source)(scope(rows, most=most, limit=limit), None) == expected[:limit]


@example(st.lists(ROW), st.lists(ROW))
def test_a_join_agrees_with_comparing_each_with_each(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    same = Condition(left=item("id"), right=item("id"))
    source = given("left", select={"id": item("id"), "prices": captured("rows", where=(same,), get="price")})
    joined = compile_value(source)(scope(right, left=left), None)
    assert joined == [
        {
            "id": row["id"],
            "prices": [other["price"] for other in right if other["id"] == row["id"] and "price" in other],
        }
        for row in left
    ]


def test_a_join_of_two_long_lists_does_not_compare_each_with_each() -> None:
    rows = [{"id": number} for number in range(10_000)]
    same = Condition(left=item("id"), right=item("id"))
    source = given("left", select={"found": captured("rows", where=(same,), pick="only", get="id")})
    joined = compile_value(source)(scope(rows, left=rows), None)
    assert [row["found"] for row in joined] == list(range(10_000))


def test_comparing_each_with_each_of_two_long_lists_is_refused() -> None:
    rows = [{"id": number} for number in range(10_000)]
    smaller = Condition(left=item("id"), op="lt", right=item("id"))
    source = given("left", select={"found": captured("rows", where=(smaller,))})
    with pytest.raises(UnmetError, match=f"{MOST_ROWS:,}"):
        compile_value(source)(scope(rows, left=rows), None)


def test_several_fields_give_an_order() -> None:
    rows = [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}]
    source = captured("rows", sort=constant(["a", "-b"]))
    assert compile_value(source)(scope(rows), None) == [rows[2], rows[0], rows[1]]


@pytest.mark.parametrize(
    ("pick", "count", "code"), [("first", 0, "no-element"), ("only", 0, "no-element"), ("only", 2, "several-elements")]
)
def test_a_pick_that_cannot_be_made_fails(pick: str, count: int, code: str) -> None:
    with pytest.raises(UnmetError) as raised:
        compile_value(captured("rows", pick=pick))(scope([{}] * count), None)
    assert raised.value.code == code


def test_a_pick_from_nothing_fails_and_all_of_nothing_is_nothing() -> None:
    with pytest.raises(UnmetError, match="no element"):
        compile_value(captured("other", pick="first"))(scope([]), None)
    assert compile_value(captured("other", limit=constant(1)))(scope([]), None) is MISSING


@pytest.mark.parametrize("limit", [-1, True, "3", 1.5])
def test_a_limit_that_is_not_a_count_fails(limit: Any) -> None:
    with pytest.raises(UnmetError, match="limit"):
        compile_value(captured("rows", limit=given("limit")))(scope([1], limit=limit), None)


@pytest.mark.parametrize("order", ["", 3, ["a", 1]])
def test_an_order_that_names_no_field_fails(order: Any) -> None:
    with pytest.raises(UnmetError, match="order"):
        compile_value(captured("rows", sort=given("order")))(scope([1], order=order), None)


def test_absent_fields_can_be_asked_for() -> None:
    source = captured("rows", where=(Condition(left=item("closed"), op="absent"),), get="id")
    assert compile_value(source)(scope([{"id": 1}, {"id": 2, "closed": True}]), None) == [1]


def compare(left: Any, op: str, right: Any) -> bool:
    return COMPARE[op](right)(left)


def test_every_operator_with_a_right_side_can_be_computed() -> None:
    assert {*COMPARE, "present", "absent"} == {*COMPARISONS}


@pytest.mark.parametrize(
    ("left", "op", "right"),
    [
        (2, "eq", 2.0),
        ("a", "ne", "A"),
        (9, "lt", 10),
        ("9", "gt", "10"),
        ("2026-01-01T01:00:00+01:00", "eq", "2026-01-01T00:00:00Z"),
        ("2026-01-01", "lt", "2026-01-01T00:00:01Z"),
        ("2026-01-01", "lte", "2026-01-01T00:00:00"),
        ("Sea View", "contains", "sea"),
        ([1, 2], "contains", 2),
        ("a", "in", ["a", "b"]),
        ({"b": 1, "a": 2}, "eq", {"a": 2, "b": 1}),
    ],
)
def test_comparisons_that_hold(left: Any, op: str, right: Any) -> None:
    assert compare(left, op, right)


@pytest.mark.parametrize(
    ("left", "op", "right"),
    [
        (1, "eq", True),
        (1, "eq", "1"),
        (1, "lt", "2"),
        ("2026-99-99", "eq", "2026-01-01"),
        (5, "contains", 5),
        ("a", "in", "abc"),
        ("a", "contains", 1),
    ],
)
def test_comparisons_that_do_not_hold(left: Any, op: str, right: Any) -> None:
    assert not compare(left, op, right)


def test_a_text_that_only_looks_like_a_date_is_a_text() -> None:
    assert normal("2026-02-31") == normal("2026-02-31")
    assert normal("2026-02-31")[0] == normal("x")[0]


def test_null_is_not_there_but_zero_and_empty_are() -> None:
    assert [is_there(value) for value in (MISSING, None, 0, "", [])] == [False, False, True, True, True]


def test_a_new_output_makes_indexes_of_old_ones_invalid() -> None:
    scope = Scope({})
    scope.indexes[1] = {}
    scope.capture("rooms", [])
    assert (scope.captured, scope.indexes) == ({"rooms": []}, {})


def test_the_rows_of_one_run_are_bounded() -> None:
    scope = Scope({})
    scope.spend(MOST_ROWS)
    with pytest.raises(UnmetError, match="comparisons"):
        scope.spend(1)
