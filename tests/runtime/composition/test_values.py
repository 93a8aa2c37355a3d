"""Sources as functions: paths, defaults, shapes, and null where it is allowed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as example
from hypothesis import strategies as st
from tests.cases import rows
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


@rows(
    "source, value",
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
    # A list without values has a count and a sum.
    (captured("rooms.items.id", form="text"), ["1", "2"]),
    (Source(kind="constant", value="12", form="integer"), 12),
    (Source(kind="constant", value="12", form="text"), "12"),
    (captured("rooms.missing", form="text"), MISSING),
    (captured("rooms.items", reduce="count"), 3),
    (captured("rooms.items", get="id", reduce="count"), 2),
    (captured("rooms.items.id", reduce="sum"), 3),
    (captured("rooms.items.id", reduce="average"), 1.5),
    (captured("rooms.items.tags", reduce="max"), "c"),
    (captured("rooms.items", where=(Condition(left=item("id"), right=constant(9)),), get="id", reduce="sum"), 0),
    (captured("rooms.items", where=(Condition(left=item("id"), right=constant(9)),), get="id", reduce="min"), MISSING),
    (captured("halls.items", reduce="count"), MISSING),
    (given("guest", select={"who": item("name"), "age": item("age")}), {"who": "Ann"}),
    (given("town", select={"who": item("name")}), MISSING),
)
def test_a_source_gives_its_value(source: Source, value: Any) -> None:
    assert read(source) == value


def test_elements_of_lists_are_sources_and_paths_continue_in_each() -> None:
    assert read(item("id"), {"id": 7}) == 7
    assert read(item(), 7) == 7
    assert follow([{"a": [{"b": 1}, {"b": 2}]}, {"a": {"b": 3}}, 4], ("a", "b")) == [1, 2, 3]
    nested = Source(kind="constant", value={}, select={"id": item("id"), "at": given("city")})
    source = captured("rooms.items", limit=constant(1), select={"room": nested})
    assert read(source) == [{"room": {"id": 1, "at": "Riga"}}]


def test_null_is_left_out_and_is_not_there() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "c": {"$ref": "#/$defs/c"}}}
    schema["$defs"] = {"c": {"type": "string"}}
    build = compile_members({name: constant(None) for name in ("a", "b", "c", "d")}, schema)
    assert build(SCOPE, None) == {"b": None, "d": None}
    assert [is_there(value) for value in (MISSING, None, 0, "", [])] == [False, False, True, True, True]


def test_null_is_left_out_of_selected_elements_too() -> None:
    schema = {"properties": {"rows": {"type": "array", "items": {"properties": {"n": {"type": "integer"}}}}}}
    build = compile_members({"rows": constant([{"n": None}, {"n": 1}])} | {}, schema)
    assert build(SCOPE, None) == {"rows": [{"n": None}, {"n": 1}]}
    shaped = Source(kind="constant", value=[{"n": None}, {"n": 1}], select={"n": item("n")})
    assert compile_members({"rows": shaped}, schema)(SCOPE, None) == {"rows": [{}, {"n": 1}]}


@rows(
    "condition, met",
    (Condition(left=given("city"), right=constant("Riga")), True),
    (Condition(left=given("city"), right=constant("Oslo")), False),
    (Condition(left=given("city"), right=given("town")), True),
    (Condition(left=given("town"), right=constant("Riga")), False),
    (Condition(left=given("town"), op="ne", right=constant("Riga")), True),
    (Condition(left=given("town"), op="absent"), True),
    (Condition(left=given("none"), op="present"), False),
    (Condition(left=given("city"), op="present"), True),
)
def test_conditions_of_a_step(condition: Condition, met: bool) -> None:
    assert compile_conditions((condition,))(SCOPE, None) is met


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


def test_long_lists_are_joined_by_index_and_not_compared_each_with_each() -> None:
    rows = [{"id": number} for number in range(10_000)]
    same = Condition(left=item("id"), right=item("id"))
    source = given("left", select={"found": captured("rows", where=(same,), pick="only", get="id")})
    joined = compile_value(source)(scope(rows, left=rows), None)
    assert [row["found"] for row in joined] == list(range(10_000))
    smaller = Condition(left=item("id"), op="lt", right=item("id"))
    source = given("left", select={"found": captured("rows", where=(smaller,))})
    with pytest.raises(UnmetError, match=f"{MOST_ROWS:,}"):
        compile_value(source)(scope(rows, left=rows), None)


def test_several_fields_give_an_order_and_only_dates_are_dates() -> None:
    rows = [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}]
    source = captured("rows", sort=constant(["a", "-b"]))
    assert compile_value(source)(scope(rows), None) == [rows[2], rows[0], rows[1]]
    assert normal("2026-02-31") == normal("2026-02-31")
    assert normal("2026-02-31")[0] == normal("x")[0]


@rows(
    "source, rows, code",
    (captured("rows", pick="first"), [], "no-element"),
    (captured("rows", pick="only"), [], "no-element"),
    (captured("other", pick="first"), [], "no-element"),
    (captured("rows", pick="only"), [{}, {}], "several-elements"),
    *((captured("rows", limit=constant(limit)), [1], "invalid-limit") for limit in (-1, True, "3", 1.5)),
    *((captured("rows", sort=constant(order)), [1], "invalid-order") for order in ("", 3, ["a", 1])),
)
def test_a_pick_a_limit_and_an_order_that_cannot_be_fail(source: Source, rows: list[Any], code: str) -> None:
    with pytest.raises(UnmetError) as raised:
        compile_value(source)(scope(rows), None)
    assert raised.value.code == code


def test_conditions_ask_for_absent_fields_and_all_operators() -> None:
    assert compile_value(captured("other", limit=constant(1)))(scope([]), None) is MISSING
    source = captured("rows", where=(Condition(left=item("closed"), op="absent"),), get="id")
    assert compile_value(source)(scope([{"id": 1}, {"id": 2, "closed": True}]), None) == [1]
    assert {*COMPARE, "present", "absent"} == {*COMPARISONS}


@rows(
    "left, op, right, holds",
    (2, "eq", 2.0, True),
    ("a", "ne", "A", True),
    (9, "lt", 10, True),
    ("9", "gt", "10", True),
    ("2026-01-01T01:00:00+01:00", "eq", "2026-01-01T00:00:00Z", True),
    ("2026-01-01", "lt", "2026-01-01T00:00:01Z", True),
    ("2026-01-01", "lte", "2026-01-01T00:00:00", True),
    ("Sea View", "contains", "sea", True),
    ([1, 2], "contains", 2, True),
    ("a", "in", ["a", "b"], True),
    ({"b": 1, "a": 2}, "eq", {"a": 2, "b": 1}, True),
    (1, "eq", True, False),
    (1, "eq", "1", False),
    (1, "lt", "2", False),
    ("2026-99-99", "eq", "2026-01-01", False),
    (5, "contains", 5, False),
    ("a", "in", "abc", False),
    ("a", "contains", 1, False),
)
def test_comparisons(left: Any, op: str, right: Any, holds: bool) -> None:
    assert COMPARE[op](right)(left) is holds


def test_elements_are_indexed_anew_for_new_outputs_and_rows_of_a_run_bounded() -> None:
    scope = Scope({})
    scope.indexes[1] = {}
    scope.capture("rooms", [])
    assert (scope.captured, scope.indexes) == ({"rooms": []}, {})
    scope.spend(MOST_ROWS)
    with pytest.raises(UnmetError, match="comparisons"):
        scope.spend(1)


@rows(
    "value, form",
    ("007", "integer"),
    ("seven", "integer"),
    (True, "text"),
    (7.5, "integer"),
)
def test_what_is_not_a_key_is_not_converted(value: Any, form: str) -> None:
    with pytest.raises(UnmetError, match="must be a"):
        read(Source(kind="constant", value=value, form=form))


@rows(
    "values, way",
    ([1, "a"], "sum"),
    ([True], "average"),
    ([1, "a"], "min"),
    ([1e308, 1e308], "sum"),
    ([10**400], "average"),
)
def test_what_is_not_a_number_is_not_added_up(values: list[Any], way: str) -> None:
    with pytest.raises(UnmetError, match="list"):
        read(Source(kind="constant", value=values, reduce=way))
