"""Operations: endpoints with meaning."""

from __future__ import annotations

import pytest
from tests.runtime.negotiation.planner.contracts import contract

from bespeak.runtime.negotiation.planner.operation import Index, Operation
from bespeak.runtime.negotiation.planner.vocabulary import Reading


def operation(line: str) -> Operation:
    return Index([contract(line)]).operations[0]


@pytest.mark.parametrize("name", ["id", "order", "order_id"])
def test_a_path_parameter_is_the_id_of_the_noun_before_it(name: str) -> None:
    assert operation(f"FETCH /orders/{{{name}}} -> total").inputs[0].readings == (Reading("order", "id"),)


def test_an_id_beside_a_list_is_that_of_the_parent() -> None:
    found = operation("LIST /movies/{id}/credits -> id credits[].id")
    assert [field.readings[0] for field in found.outputs if field.name == "id"] == [
        Reading("movie", "id"),
        Reading("credit", "id"),
    ]


def test_a_total_beside_a_list_is_not_that_of_a_row() -> None:
    found = operation("LIST /orders -> total:i orders[].id")
    assert Reading("order", "total") not in found.outputs[0].readings


def test_pages_are_followed_by_the_cursor_that_fits() -> None:
    pages = operation("LIST /orders cursor? -> orders[].id next_cursor?").pages
    assert pages is not None
    assert (pages.parameter, pages.cursor, pages.items) == ("cursor", "next_cursor", "orders")


@pytest.mark.parametrize(
    ("line", "counts", "cursor"),
    [
        ("LIST /orders page?:i per_page?:i -> orders[].id", "pages", ""),
        ("LIST /orders offset?:i limit?:i -> orders[].id more?:b", "elements", "more"),
    ],
)
def test_numbered_pages_are_counted(line: str, counts: str, cursor: str) -> None:
    pages = operation(line).pages
    assert pages is not None
    assert (pages.counts, pages.cursor, pages.items) == (counts, cursor, "orders")


@pytest.mark.parametrize("inputs", ["page?", "start?:i limit?:i", "limit:i==20"])
def test_a_list_in_pages_without_a_way_to_the_next_is_partial(inputs: str) -> None:
    assert operation(f"LIST /orders {inputs} -> orders[].id").is_partial


def test_a_list_with_an_optional_limit_is_whole() -> None:
    assert not operation("LIST /orders limit?:i -> orders[].id").is_partial


def test_a_uuid_beside_an_id_is_another_key() -> None:
    found = operation("FETCH /meetings/{id} -> id:i uuid topic")
    assert Reading("meeting", "id") not in found.outputs[1].readings
    alone = operation("FETCH /meetings/{id} -> uuid topic")
    assert Reading("meeting", "id") in alone.outputs[0].readings


def test_an_endpoint_may_call_its_own_key_what_it_likes() -> None:
    assert Reading("balancer", "id") in operation("FETCH /balancers/{lb_id} -> ip").inputs[0].readings


def test_an_id_beside_an_object_of_the_noun_is_that_of_an_entry() -> None:
    found = operation("LIST /users/{user_id}/movies -> items[].id items[].movie.id items[].movie.title")
    assert [Reading("movie", "id") in field.readings for field in found.outputs if field.name == "id"] == [False, True]


def test_any_of_several_ids_is_a_key() -> None:
    found = operation("FETCH /movies/{id} -> ids.trakt:i ids.slug ids.imdb")
    assert [field.name for field in found.outputs if "movie" in field.identifies and not field.inner] == [
        "trakt",
        "slug",
    ]
