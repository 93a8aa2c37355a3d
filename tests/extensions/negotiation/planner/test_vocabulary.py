"""Vocabulary: how names are read with the nouns of a service."""

from __future__ import annotations

import pytest

from bespeak.extensions.negotiation.planner.slot import ITEM, Facts, slots_of
from bespeak.extensions.negotiation.planner.vocabulary import (
    Comparison,
    Reading,
    Segment,
    Vocabulary,
    comparison,
    noun_of,
    other_names,
    resource_of,
    stems,
)

TEXT = Facts(kinds={"string"})


def vocabulary() -> Vocabulary:
    takes = slots_of({"properties": {"customer_id": {"type": "string"}}}, most=9, levels=2)
    return Vocabulary([("/orders/{id}", [], []), ("/accounts/{id}", takes, []), ("/customers", [], [])])


def test_things_are_what_has_an_id() -> None:
    assert vocabulary().things == {"order", "account", "customer"}


def test_a_bare_id_belongs_to_its_owner_and_a_prefixed_one_does_not() -> None:
    known = vocabulary()
    assert known.read(("id",), ["order"], TEXT) == (Reading("order", "id"),)
    assert known.read(("customer_id",), ["order"], TEXT) == (Reading("customer", "id"),)


def test_a_known_noun_before_an_attribute_is_one_reading_of_two() -> None:
    assert set(vocabulary().read(("customer_name",), ["order"], TEXT)) == {
        Reading("order", "customer_name"),
        Reading("customer", "name"),
    }


def test_a_field_named_like_a_thing_may_be_its_id_unless_its_values_are_listed() -> None:
    known = vocabulary()
    listed = Facts(kinds={"string"}, values=frozenset({(False, "asc")}))
    assert Reading("customer", "id") in known.read(("customer",), ["order"], TEXT)
    assert Reading("order", "id") not in known.read(("order",), ["customer"], listed)


def test_members_of_a_value_object_belong_to_what_has_it() -> None:
    assert vocabulary().read(("address", "city"), ["customer"], TEXT) == (Reading("customer", "address_city"),)


def test_rows_belong_to_the_noun_of_their_list_unless_it_is_a_wrapper() -> None:
    known = vocabulary()
    assert known.read(("orders", ITEM, "total"), ["customer"], TEXT)[0] == Reading("order", "total")
    assert known.read(("items", ITEM, "total"), ["order"], TEXT)[0] == Reading("order", "total")


def test_a_role_is_a_thing_with_words_before_it() -> None:
    assert vocabulary().is_role("from_account") == "account"
    assert vocabulary().is_role("account") == ""
    assert vocabulary().is_role("nb_account") == ""


def test_a_name_that_only_mentions_a_thing_is_not_a_role_of_it() -> None:
    known = vocabulary()
    assert known.is_role("name_with_account") == ""
    assert known.read(("menu_order",), ["customer"], TEXT) == (Reading("customer", "menu_order"),)


def test_the_parent_of_a_thing_is_one_of_its_own_kind() -> None:
    assert vocabulary().read(("parent_id",), ["order"], TEXT) == (Reading("order", "parent_id"),)


def test_members_of_links_are_ids_of_what_they_are_named_after() -> None:
    assert Reading("customer", "id") in vocabulary().read(("links", "customer"), ["order"], TEXT)


THINGS = {"order", "movie", "invoice"}


@pytest.mark.parametrize(
    ("path", "noun", "parent", "view"),
    [
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
    ],
)
def test_the_last_segment_that_is_a_thing_is_the_noun(path: str, noun: str, parent: str, view: str) -> None:
    resource = resource_of(path, THINGS)
    assert (resource.noun, resource.parent, resource.view) == (noun, parent, view)


def test_a_parameter_belongs_to_the_noun_before_it() -> None:
    assert resource_of("/shops/{shop}/orders/{id}", THINGS).owners == (("shop", "shop"), ("id", "order"))


def test_a_segment_may_only_say_what_the_parameter_after_it_is() -> None:
    resource = resource_of("/shops/name/{name}/orders/code/{code}", THINGS)
    assert (resource.noun, resource.parent, resource.nouns) == ("order", "shop", ["shop", "order"])
    assert resource.owners == (("name", "shop"), ("code", "order"))


def test_words_that_connect_split_a_segment_into_phrases() -> None:
    assert Segment("orders-by-customer-email").phrases == (("order",), ("customer", "email"))


def test_segment_of_a_format_says_nothing_about_the_things() -> None:
    assert resource_of("/account/{id}/transactions/csv", {"account"}).noun == "transaction"
    assert resource_of("/data/transaction-history/geojson", set()).view == ""


@pytest.mark.parametrize("name", ["orderIds", "order_id", "Order-ID", "order_uuid"])
def test_spellings_of_one_name_have_the_same_words(name: str) -> None:
    assert stems(name) == ("order", "id")


def test_an_email_is_one_word_however_it_is_written() -> None:
    assert stems("e_mail") == stems("email") == stems("mail") == ("email",)


def test_units_stay_part_of_a_name() -> None:
    assert stems("dose_mg") == ("dose", "mg")


def test_how_a_noun_is_kept_does_not_change_it() -> None:
    assert noun_of(stems("transaction-history")) == "transaction"
    assert noun_of(("history",)) == "history"


@pytest.mark.parametrize(
    ("name", "op", "attribute"),
    [
        ("max_price", "lte", "price"),
        ("price_min", "gte", "price"),
        ("booked_before", "lt", "booked"),
        ("text_contains", "contains", "text"),
    ],
)
def test_inputs_that_compare_are_recognised(name: str, op: str, attribute: str) -> None:
    assert comparison(stems(name)) == Comparison(op, attribute)


def test_a_role_before_a_noun_does_not_compare() -> None:
    assert comparison(stems("from_account")) is None


def test_synonyms_go_both_ways_and_exclude_the_word_itself() -> None:
    assert other_names("booking") == ["reservation"]
    assert other_names("reservation") == ["booking"]
    assert other_names("price") == []
