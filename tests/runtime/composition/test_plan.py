"""Plans: what is computed once for a recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.compositions import TEXT, compose, given, recipe, step
from tests.service import build, echo, make_endpoint

from bespeak.contract.recipe import Paging
from bespeak.runtime.composition.plan import PagedOutput, plan_composition
from bespeak.runtime.composition.step import APART, AUTHORIZED, JOURNALED, UNDOES, UNLIMITED, VALID, Steps
from bespeak.runtime.composition.values import MISSING, UnmetError

READ = make_endpoint("FETCH", "/a", echo)
WRITE = make_endpoint("BOOK", "/a", echo, impact="reversible")
SERVED = {READ.key: READ, WRITE.key: WRITE}
MADE = compose("BOOK", "/c", "r")


def test_steps_of_one_group_belong_together_and_reads_before_a_change_are_journaled() -> None:
    steps = [step("FETCH /a", group=group) for group in ("x", "x", None, None, "x")]
    plan = plan_composition(MADE, recipe(*steps), SERVED)
    assert [[one.number for one in group] for group in plan.groups] == [[1, 2], [3], [4], [5]]
    calls = ("FETCH /a", "BOOK /a", "FETCH /a", "BOOK /a", "FETCH /a")
    plan = plan_composition(MADE, recipe(*(step(called) for called in calls)), SERVED)
    assert [group[0].flags for group in plan.groups] == [JOURNALED, JOURNALED, JOURNALED, 0, 0]
    assert [group[0].changes for group in plan.groups] == [False, True, False, True, False]


def test_the_path_of_a_step_has_the_values_of_its_input() -> None:
    room = replace(READ, path="/rooms/{rooms}/beds", input_schema={"properties": {"rooms": TEXT}})
    plan = plan_composition(
        MADE, recipe(step("FETCH /rooms/{rooms}/beds", take={"rooms": given("id")})), {room.key: room}
    )
    fill = plan.groups[0][0].fill
    assert fill({"rooms": "a/b é"}) == "/rooms/a%2Fb%20%C3%A9/beds"
    assert fill({"rooms": True}) == "/rooms/true/beds"


ONE = {"one": TEXT}
FLAT, NESTED = {"one": "a"}, {"one": ["a"]}


@rows(
    "schema, take, mirrors",
    ({"properties": ONE, "additionalProperties": False}, {"one": given("one")}, True),
    ({"properties": {"one": {"type": "array"}}, "additionalProperties": False}, {"one": given("one")}, True),
    ({"properties": ONE, "additionalProperties": False}, {"one": given("two")}, False),
    ({"properties": ONE, "additionalProperties": False}, {"one": given("one", default="a")}, False),
    ({"properties": ONE, "additionalProperties": False}, {"one": "a"}, False),
    ({"properties": {**ONE, "two": TEXT}, "additionalProperties": False}, {"one": given("one")}, False),
    ({"properties": ONE, "additionalProperties": False, "patternProperties": {"^x": {}}}, ONE, False),
    ({"properties": ONE}, {"one": given("one")}, False),
)
def test_step_that_takes_all_by_name_mirrors_input(schema: dict[str, Any], take: dict[str, Any], mirrors: bool) -> None:
    called = replace(READ, input_schema=schema)
    mirror = plan_composition(MADE, recipe(step("FETCH /a", take=take)), {called.key: called}).steps[0].mirror
    assert (mirror is not None) is mirrors
    if mirror is not None:
        value = NESTED if schema["properties"] != ONE else FLAT
        copied = mirror(value)
        assert copied == value
        assert copied is not value
        assert value is FLAT or copied["one"] is not value["one"]


PLAN = Paging(parameter="after", cursor="meta.next", items="data.rows", most=2)


def test_pages_are_joined_without_cursor_up_to_the_number_allowed() -> None:
    pages = PagedOutput(PLAN)
    assert pages.add({"data": {"rows": [1], "of": "x"}, "meta": {"next": "c", "total": 2}}) == "c"
    assert pages.add({"data": {"rows": [2]}, "meta": {}}) is MISSING
    assert pages.output == {"data": {"rows": [1, 2], "of": "x"}, "meta": {"total": 2}}
    pages, more = PagedOutput(PLAN), {"data": {"rows": [1]}, "meta": {"next": 1}}
    pages.add(more)
    with pytest.raises(UnmetError, match="more than 2 pages"):
        pages.add(more)


@pytest.mark.parametrize("end", [{}, {"meta": None}, {"meta": {"next": None}}, {"meta": {"next": ""}}])
def test_a_page_without_a_cursor_is_the_last(end: dict[str, object]) -> None:
    assert PagedOutput(PLAN).add({"data": {"rows": [1]}, **end}) is MISSING


BY_PAGE = Paging(parameter="page", counts="pages", items="rows")


def read(paging: Paging, answer: Callable[[Any], list[int]]) -> tuple[list[int], list[Any]]:
    """Read all pages of a list; return its elements and the numbers that were asked for."""
    pages, asked, number = PagedOutput(paging), list[Any](), None
    while number is not MISSING:
        asked.append(number)
        number = pages.add({"rows": answer(number)})
    return pages.output["rows"], asked


@pytest.mark.parametrize("first", [0, 1])
def test_pages_are_counted_from_where_the_endpoint_counts_them(first: int) -> None:
    def answer(page: int | None) -> list[int]:
        at = 2 * ((first if page is None else page) - first)
        return list(range(5))[at : at + 2]

    assert read(BY_PAGE, answer) == ([0, 1, 2, 3, 4], [None, *range(1, first + 4)])


def test_numbered_pages_count_earlier_elements_and_end_where_an_answer_says_so() -> None:
    def answer(offset: int | None) -> list[int]:
        return list(range(5))[offset or 0 :][:2]

    assert read(replace(BY_PAGE, counts="elements"), answer) == ([0, 1, 2, 3, 4], [None, 2, 4, 5])
    pages = PagedOutput(replace(BY_PAGE, counts="elements", cursor="more"))
    assert pages.add({"rows": [1, 2], "more": True}) == 2
    assert pages.add({"rows": [3], "more": False}) is MISSING
    assert pages.output == {"rows": [1, 2, 3]}


@pytest.mark.parametrize("counts", ["pages", "elements"])
def test_an_endpoint_that_ignores_the_number_is_read_once(counts: str) -> None:
    assert read(replace(BY_PAGE, counts=counts), lambda _: [1, 2])[0] == [1, 2]


def test_the_dispatcher_calls_steps() -> None:
    steps: Steps = build().dispatcher
    assert [1 << bit for bit in range(6)] == [JOURNALED, APART, UNDOES, AUTHORIZED, VALID, UNLIMITED]
    assert steps.run_step is not None
