"""Fields: when two of them mean the same."""

from __future__ import annotations

from tests.runtime.negotiation.planner.contracts import contracts
from tests.runtime.negotiation.planner.services import approved, refused

from bespeak.runtime.negotiation.planner.operation import Field, alternatives, likeness
from bespeak.runtime.negotiation.planner.slot import ITEM, Facts
from bespeak.runtime.negotiation.planner.vocabulary import Reading, Vocabulary

KNOWN = Vocabulary([("/accounts/{id}", [], []), ("/payments/{id}", [], []), ("/batch-payments/{id}", [], [])])


def field(noun: str, attribute: str) -> Field:
    return Field((attribute,), (Reading(noun, attribute),), Facts())


def test_the_id_of_one_thing_is_never_that_of_another() -> None:
    assert likeness(field("account", "id"), field("payment", "id"), KNOWN) == 0
    assert likeness(field("customer", "id"), field("client", "id"), KNOWN) == 0


def test_a_uuid_beside_an_id_is_another_key() -> None:
    readings = (Reading("account", "id"),)
    uuid = Field(("uuid",), readings, Facts())
    assert likeness(Field(("id",), readings, Facts()), uuid, KNOWN) < 0.95
    assert likeness(Field(("id",), readings, Facts(format="uuid")), uuid, KNOWN) == 1


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
    nested = Field(("orders", ITEM, "customer", "id"), (), Facts())
    assert (nested.text, nested.rows, nested.column) == ("orders[].customer.id", ("orders",), "customer.id")


def test_one_of_several_ids_is_not_another() -> None:
    service = contracts("FETCH /movies/{id} -> title ids.slug ids.imdb")
    approved("FETCH /movies/{id} -> ids.slug", service)
    refused("FETCH /movies/{id} -> ids.tmdb", service)
    refused("FETCH /movies id -> movie_id title", contracts("FETCH /movies/{slug} -> title ids.slug"))
