"""Operations: endpoints with meaning."""

from __future__ import annotations

import pytest
from tests.extensions.negotiation.planner.contracts import contract, contracts
from tests.extensions.negotiation.planner.services import HOTEL, approved, refused

from bespeak.extensions.negotiation.planner.operation import Index, Operation, PlanField, alternatives, likeness
from bespeak.extensions.negotiation.planner.slot import ITEM, Facts
from bespeak.extensions.negotiation.planner.vocabulary import Reading, Vocabulary


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


KNOWN = Vocabulary([("/accounts/{id}", [], []), ("/payments/{id}", [], []), ("/batch-payments/{id}", [], [])])


def field(noun: str, attribute: str) -> PlanField:
    return PlanField((attribute,), (Reading(noun, attribute),), Facts())


def test_the_id_of_one_thing_is_never_that_of_another() -> None:
    assert likeness(field("account", "id"), field("payment", "id"), KNOWN) == 0
    assert likeness(field("customer", "id"), field("client", "id"), KNOWN) == 0


def test_field_a_uuid_beside_an_id_is_another_key() -> None:
    readings = (Reading("account", "id"),)
    uuid = PlanField(("uuid",), readings, Facts())
    assert likeness(PlanField(("id",), readings, Facts()), uuid, KNOWN) < 0.95
    assert likeness(PlanField(("id",), readings, Facts(format="uuid")), uuid, KNOWN) == 1


def test_a_role_is_like_the_thing_but_another_resource_is_not() -> None:
    assert 0.8 < likeness(field("from_account", "id"), field("account", "id"), KNOWN) < 0.9
    assert likeness(field("batch_payment", "id"), field("payment", "id"), KNOWN) == 0


def test_synonyms_are_alike_except_for_ids() -> None:
    assert 0.8 < likeness(field("booking", "created_at"), field("booking", "creation_date"), KNOWN) < 0.9
    assert 0.8 < likeness(field("booking", "total"), field("reservation", "total"), KNOWN) < 0.9


def test_names_that_only_look_alike_are_not() -> None:
    assert likeness(field("movie", "previous_title"), field("movie", "title"), KNOWN) == 0


def test_providers_are_also_found_under_other_names() -> None:
    assert Reading("account", "id") in alternatives(field("from_account", "id"), KNOWN)


def test_a_field_of_a_list_has_a_row_and_a_column() -> None:
    nested = PlanField(("orders", ITEM, "customer", "id"), (), Facts())
    assert (nested.text, nested.rows, nested.column) == ("orders[].customer.id", ("orders",), "customer.id")


def test_one_of_several_ids_is_not_another() -> None:
    service = contracts("FETCH /movies/{id} -> title ids.slug ids.imdb")
    approved("FETCH /movies/{id} -> ids.slug", service)
    refused("FETCH /movies/{id} -> ids.tmdb", service)
    refused("FETCH /movies id -> movie_id title", contracts("FETCH /movies/{slug} -> title ids.slug"))


def test_operations_are_found_by_what_they_yield() -> None:
    index = Index(HOTEL)
    assert [str(one.endpoint) for one, _ in index.yielding(Reading("hotel", "star"))] == ["FETCH /hotels/{id}"]
    assert [str(one.endpoint) for one, _ in index.listing("guest")] == ["LIST /guests"]
    assert index.yielding(Reading("hotel", "price")) == []


def test_the_order_of_registration_does_not_matter() -> None:
    numbers = [[str(one.endpoint) for one in Index(order).operations] for order in (HOTEL, HOTEL[::-1])]
    assert numbers[0] == numbers[1]
