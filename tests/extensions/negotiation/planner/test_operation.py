"""Operations: endpoints with meaning, and how names are read with the nouns of a service."""

from __future__ import annotations

import pytest
from tests.cases import rows
from tests.extensions.negotiation.planner.contracts import contract, contracts
from tests.extensions.negotiation.planner.services import HOTEL, approved, refused

from bespeak.extensions.negotiation.planner.operation import (
    OperationIndex,
    PlanField,
    PlanOperation,
    alternatives,
    likeness,
)
from bespeak.extensions.negotiation.planner.slot import ITEM, Facts, slots_of
from bespeak.extensions.negotiation.planner.vocabulary import (
    ComparedName,
    NounReading,
    Segment,
    ServiceNouns,
    comparison,
    noun_of,
    resource_of,
    stems,
)
from bespeak.text.language.names import other_names


def operation(line: str) -> PlanOperation:
    return OperationIndex([contract(line)]).operations[0]


@pytest.mark.parametrize("name", ["id", "order", "order_id"])
def test_a_path_parameter_is_the_id_of_the_noun_before_it(name: str) -> None:
    assert operation(f"FETCH /orders/{{{name}}} -> total").inputs[0].readings == (NounReading("order", "id"),)


def test_an_id_beside_a_list_is_that_of_the_parent() -> None:
    found = operation("LIST /movies/{id}/credits -> id credits[].id")
    assert [field.readings[0] for field in found.outputs if field.name == "id"] == [
        NounReading("movie", "id"),
        NounReading("credit", "id"),
    ]


def test_lists_have_totals_pages_and_optional_limits_of_their_own() -> None:
    found = operation("LIST /orders -> total:i orders[].id")
    assert NounReading("order", "total") not in found.outputs[0].readings
    pages = operation("LIST /orders cursor? -> orders[].id next_cursor?").pages
    assert (pages.parameter, pages.cursor, pages.items) == ("cursor", "next_cursor", "orders")
    assert not operation("LIST /orders limit?:i -> orders[].id").is_partial


@rows(
    "line, counts, cursor",
    ("LIST /orders page?:i per_page?:i -> orders[].id", "pages", ""),
    ("LIST /orders offset?:i limit?:i -> orders[].id more?:b", "elements", "more"),
)
def test_numbered_pages_are_counted(line: str, counts: str, cursor: str) -> None:
    pages = operation(line).pages
    assert (pages.counts, pages.cursor, pages.items) == (counts, cursor, "orders")


@pytest.mark.parametrize("inputs", ["page?", "start? limit?:i", "start_index?:i==1", "limit:i==20"])
def test_a_list_in_pages_without_a_way_to_the_next_is_partial(inputs: str) -> None:
    assert operation(f"LIST /orders {inputs} -> orders[].id").is_partial


def test_what_is_near_the_root_of_a_wide_answer_is_read_first() -> None:
    wide = " ".join(f"films[].{letter}.{number}.size" for letter in "abc" for number in range(80))
    found = operation(f"LIST /films -> {wide} films[].title")
    assert "films[].title" in [field.text for field in found.outputs]


def test_links_beside_an_answer_do_not_make_a_list_of_it_and_say_nothing_about_what_they_name() -> None:
    found = operation("FETCH /clients/{id}/lead-source -> links[].href campaign")
    assert found.outputs[-1].readings[0].noun != "client list"
    linked = operation("FETCH /orders/{id} -> relationships.account.type relationships.account.id")
    assert [reading for field in linked.outputs if field.name == "type" for reading in field.readings] == []


def test_keys_are_found_whatever_an_endpoint_calls_them_and_beside_each_other() -> None:
    found = operation("FETCH /meetings/{id} -> id:i uuid topic")
    assert NounReading("meeting", "id") not in found.outputs[1].readings
    alone = operation("FETCH /meetings/{id} -> uuid topic")
    assert NounReading("meeting", "id") in alone.outputs[0].readings
    assert NounReading("balancer", "id") in operation("FETCH /balancers/{lb_id} -> ip").inputs[0].readings


def test_an_id_beside_an_object_of_the_noun_is_that_of_an_entry() -> None:
    found = operation("LIST /users/{user_id}/movies -> items[].id items[].movie.id items[].movie.title")
    assert [NounReading("movie", "id") in field.readings for field in found.outputs if field.name == "id"] == [
        False,
        True,
    ]


def test_any_of_several_ids_is_a_key() -> None:
    found = operation("FETCH /movies/{id} -> ids.trakt:i ids.slug ids.imdb")
    assert [field.name for field in found.outputs if "movie" in field.identifies and not field.inner] == [
        "trakt",
        "slug",
    ]


KNOWN = ServiceNouns([("/accounts/{id}", [], []), ("/payments/{id}", [], []), ("/batch-payments/{id}", [], [])])


def field(noun: str, attribute: str) -> PlanField:
    return PlanField((attribute,), (NounReading(noun, attribute),), Facts())


@rows(
    "need, have, alike",
    # The id of one thing is never that of another.
    ("account.id", "payment.id", 0),
    ("customer.id", "client.id", 0),
    # A role is like the thing, but another resource is not.
    ("from_account.id", "account.id", 0.85),
    ("batch_payment.id", "payment.id", 0),
    # Synonyms are alike except for ids; names that only look alike are not.
    ("booking.created_at", "booking.creation_date", 0.85),
    ("booking.total", "reservation.total", 0.85),
    ("movie.previous_title", "movie.title", 0),
)
def test_likeness_of_fields(need: str, have: str, alike: float) -> None:
    one, other = (field(*name.split(".")) for name in (need, have))
    assert likeness(one, other, KNOWN) == alike


def test_fields_of_a_list_have_row_and_column_and_ids_stay_apart() -> None:
    readings = (NounReading("account", "id"),)
    uuid = PlanField(("uuid",), readings, Facts())
    assert likeness(PlanField(("id",), readings, Facts()), uuid, KNOWN) < 0.95
    assert likeness(PlanField(("id",), readings, Facts(format="uuid")), uuid, KNOWN) == 1
    service = contracts("FETCH /movies/{id} -> title ids.slug ids.imdb")
    approved("FETCH /movies/{id} -> ids.slug", service)
    refused("FETCH /movies/{id} -> ids.tmdb", service)
    refused("FETCH /movies id -> movie_id title", contracts("FETCH /movies/{slug} -> title ids.slug"))
    nested = PlanField(("orders", ITEM, "customer", "id"), (), Facts())
    assert (nested.text, nested.rows, nested.column) == ("orders[].customer.id", ("orders",), "customer.id")


def test_operations_are_found_by_what_they_yield_also_under_other_names() -> None:
    assert NounReading("account", "id") in alternatives(field("from_account", "id"), KNOWN)
    index = OperationIndex(HOTEL)
    assert [str(one.endpoint) for one, _ in index.yielding[NounReading("hotel", "star")]] == ["FETCH /hotels/{id}"]
    assert [str(one.endpoint) for one, _ in index.listing["guest"]] == ["LIST /guests"]
    assert NounReading("hotel", "price") not in index.yielding
    numbers = [[str(one.endpoint) for one in OperationIndex(order).operations] for order in (HOTEL, HOTEL[::-1])]
    assert numbers[0] == numbers[1]


TEXT = Facts(kind="string")


def vocabulary() -> ServiceNouns:
    takes = slots_of({"properties": {"customer_id": {"type": "string"}}}, most=9, levels=2)
    return ServiceNouns([("/orders/{id}", [], []), ("/accounts/{id}", takes, []), ("/customers", [], [])])


def test_things_have_an_id_and_fields_named_like_them_may_be_it() -> None:
    assert vocabulary().things == {"order", "account", "customer"}
    known = vocabulary()
    listed = Facts(kind="string", values=frozenset({(False, "asc")}))
    assert NounReading("customer", "id") in known.read(("customer",), ["order"], TEXT)
    assert NounReading("order", "id") not in known.read(("order",), ["customer"], listed)


@rows(
    "path, base, readings",
    # A bare id belongs to its owner, a prefixed one does not.
    ("id", "order", [("order", "id")]),
    ("customer_id", "order", [("customer", "id")]),
    # A known noun before an attribute is one reading of two.
    ("customer_name", "order", [("order", "customer_name"), ("customer", "name")]),
    # Members of a value object belong to what has it, those of links are ids of what they are named after.
    ("address.city", "customer", [("customer", "address_city")]),
    ("links.customer", "order", [("customer", "id")]),
    # Rows belong to the noun of their list, unless it is a wrapper.
    ("orders.[].total", "customer", [("order", "total")]),
    ("items.[].total", "order", [("order", "total")]),
    # The parent of a thing is one of its own kind; a name that only mentions a thing is not a role of it.
    ("parent_id", "order", [("order", "parent_id")]),
    ("menu_order", "customer", [("customer", "menu_order")]),
)
def test_a_name_is_read_as(path: str, base: str, readings: list[tuple[str, str]]) -> None:
    assert list(vocabulary().read(tuple(path.split(".")), [base], TEXT)) == readings


@pytest.mark.parametrize(
    ("noun", "thing"), [("from_account", "account"), ("account", ""), ("nb_account", ""), ("name_with_account", "")]
)
def test_a_role_is_a_thing_with_words_before_it(noun: str, thing: str) -> None:
    assert vocabulary().is_role(noun) == thing


THINGS = {"order", "movie", "invoice"}


@rows(
    "path, noun, parent, view",
    ("/orders", "order", "", ""),
    ("/orders/{id}", "order", "", ""),
    ("/customers/{id}/orders", "order", "customer", ""),
    ("/orders/{id}/invoice", "invoice", "order", ""),
    ("/movie/popular", "movie", "", "popular"),
    ("/orders/latest", "order", "", "latest"),
    ("/orders/{id}/status", "order", "", "status"),
    ("/v1/search/movie", "movie", "", ""),
    ("/customers/email/{email}/orders", "order", "customer", ""),
    ("/movies-2/{id}/posters", "poster", "movie", ""),
    ("/codes/{code}", "code", "", ""),
)
def test_the_last_segment_that_is_a_thing_is_the_noun(path: str, noun: str, parent: str, view: str) -> None:
    resource = resource_of(path, THINGS)
    assert (resource.noun, resource.parent, resource.view) == (noun, parent, view)


def test_segments_of_a_path_are_read_as_phrases_of_nouns_and_parameters() -> None:
    assert resource_of("/shops/{shop}/orders/{id}", THINGS).owners == (("shop", "shop"), ("id", "order"))
    resource = resource_of("/shops/name/{name}/orders/code/{code}", THINGS)
    assert (resource.noun, resource.parent, resource.nouns) == ("order", "shop", ["shop", "order"])
    assert resource.owners == (("name", "shop"), ("code", "order"))
    assert Segment("orders-by-customer-email").phrases == (("order",), ("customer", "email"))
    assert resource_of("/account/{id}/transactions/csv", {"account"}).noun == "transaction"
    assert resource_of("/data/transaction-history/geojson", set()).view == ""


@rows(
    "name, words",
    *((name, ("order", "id")) for name in ("orderIds", "order_id", "Order-ID", "order_uuid")),
    *((name, ("email",)) for name in ("e_mail", "email", "mail")),
    ("dose_mg", ("dose", "mg")),
)
def test_spellings_of_one_name_have_the_same_words(name: str, words: tuple[str, ...]) -> None:
    assert stems(name) == words


def test_synonyms_forms_and_roles_of_a_noun_do_not_change_it() -> None:
    assert noun_of(stems("transaction-history")) == "transaction"
    assert noun_of(("history",)) == "history"
    assert comparison(stems("from_account")) is None
    assert other_names("booking") == ["reservation"]
    assert other_names("reservation") == ["booking"]
    assert other_names("price") == []


@rows(
    "name, op, attribute",
    ("max_price", "lte", "price"),
    ("price_min", "gte", "price"),
    ("booked_before", "lt", "booked"),
    ("text_contains", "contains", "text"),
)
def test_inputs_that_compare_are_recognised(name: str, op: str, attribute: str) -> None:
    assert comparison(stems(name)) == ComparedName(op, attribute)
