"""Operations on lists, compared with the plain way to do them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given as example
from hypothesis import strategies as st
from tests.compositions import captured, given, item

from bespeak.contract.recipe import Condition, constant
from bespeak.runtime.composition.values import MISSING, MOST_ROWS, Scope, UnmetError, compile_value

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
