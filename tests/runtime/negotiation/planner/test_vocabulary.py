"""Vocabulary: how names are read with the nouns of a service."""

from __future__ import annotations

from bespeak.runtime.negotiation.planner.slot import ITEM, Facts, slots_of
from bespeak.runtime.negotiation.planner.vocabulary import Reading, Vocabulary

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
