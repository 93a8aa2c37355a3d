"""Guards: plans whose types fit and whose meaning does not."""

from __future__ import annotations

import pytest
from tests.extensions.negotiation.planner.contracts import contracts
from tests.extensions.negotiation.planner.services import approved, doubtful, plan, refused

from bespeak.extensions.negotiation.plan import Plan

SHOP = contracts("""
FETCH /customers/{id} -> id name email:e card.address.city
LIST /customers email?:e -> customers[].id customers[].name
LIST /orders customer_id? -> orders[].id orders[].total:n
LIST /orders/archived customer_id? -> orders[].id orders[].total:n orders[].archived_at:t
LIST /trash/orders customer_id? -> orders[].id orders[].total:n
FETCH /me -> id name email:e
FETCH /warehouses/{id} -> id name orders[].id orders[].total:n
!REFUND /orders/{id} amount:n -> refund_id
!PAY /orders/{id} amount:n -> payment_id
""")


def test_an_input_that_nothing_uses_is_refused() -> None:
    assert refused("LIST /orders customer_id colour -> orders[].id", SHOP).misses[0].field == "colour"


def test_an_optional_input_that_nothing_uses_is_doubtful() -> None:
    assert "colour" in doubtful("LIST /orders customer_id colour? -> orders[].id", SHOP).doubts[0]


def test_a_known_word_of_the_path_must_be_dealt_with() -> None:
    assert "warehouse" in refused("LIST /warehouses/orders customer_id -> orders[].id", SHOP).misses[0].reason


def test_an_unknown_word_needs_an_input_that_says_what_it_means() -> None:
    assert "cheap" in doubtful("LIST /orders/cheap customer_id -> orders[].id", SHOP).doubts[0]
    approved("LIST /orders/cheap customer_id max_total:n -> orders[].id", SHOP)


def test_a_list_of_something_that_nobody_mentioned_is_not_taken() -> None:
    assert [str(one) for one in approved("LIST /orders customer_id -> orders[].id", SHOP).endpoints] == ["LIST /orders"]
    unsaid = [one for one in SHOP if str(one) != "LIST /orders"]
    assert "trash" in doubtful("LIST /orders customer_id -> orders[].id", unsaid).doubts[0]


def test_a_view_that_nobody_mentioned_supplies_nothing() -> None:
    refused("LIST /orders customer_id -> orders[].archived_at:t", SHOP)
    approved(
        "LIST /orders/archived customer_id -> orders[].archived_at:t", [one for one in SHOP if "trash" not in one.path]
    )


def test_a_call_that_does_not_depend_on_the_key_is_not_about_it() -> None:
    without = [one for one in SHOP if not one.path.startswith("/customers")]
    refused("FETCH /users/{user_id} -> name email:e", without)


def test_a_list_inside_something_else_is_not_the_collection() -> None:
    inside = [one for one in SHOP if one.path in ("/warehouses/{id}", "/customers/{id}")]
    assert doubtful("LIST /warehouses/{id}/orders -> orders[].id orders[].total:n", inside).doubts


def test_a_value_object_belongs_to_what_has_it() -> None:
    refused("FETCH /customers/{id} -> name address.city", SHOP)


def test_verbs_of_one_class_are_not_the_same_deed() -> None:
    without = [one for one in SHOP if one.method != "REFUND"]
    refused("!REFUND /orders/{id} amount:n -> refund_id", without)


def test_nothing_is_changed_that_was_only_found_by_a_text() -> None:
    service = contracts("""
SEARCH /rooms query -> rooms[].id rooms[].name
!BOOK /rooms/{id} guest_id -> booking_id
""")
    assert "first match" in " ".join(doubtful("!BOOK /rooms room_name guest_id -> booking_id", service).doubts)


@pytest.mark.parametrize("claim", ["", "~"])
def test_a_plan_never_does_more_than_the_proposal_claims(claim: str) -> None:
    found = refused(f"{claim}PAY /orders/{{id}} amount:n -> payment_id", SHOP)
    assert found.misses[0].field == "semantic.impact"


def test_a_parameter_that_contradicts_its_place_is_doubtful() -> None:
    hotel = contracts("""
FETCH /rooms/{id} -> id hotel_id
FETCH /hotels/{id} -> id name
""")
    doubtful("FETCH /hotels/{room_id} -> name", hotel)
    approved("FETCH /rooms/{room_id}/hotel -> name", hotel)


DESK = contracts("""
SEARCH /users query? -> users[].id users[].name
LIST /tasks/{id}/comments -> comments[].text
FETCH /tasks/{id} -> id title workspace_id
LIST /tags workspace_id? -> tags[].id tags[].name
LIST /macros/active -> macros[].id macros[].title macros[].active:b
LIST /agents next_page? -> agents[].id agents[].name has_more:b
""")


def test_a_search_that_is_told_nothing_is_not_a_list_of_everything() -> None:
    assert "search" in refused("LIST /users -> users[].name", DESK).misses[0].reason


def test_what_a_thing_shares_with_others_does_not_make_them_its_own() -> None:
    refused("LIST /tasks/{task_id}/tags -> tags[].name", DESK)


def test_what_belongs_to_a_thing_is_not_the_thing_itself() -> None:
    service = contracts("LIST /incidents -> incidents[].id incidents[].title")
    approved("LIST /incidents/{id} -> incidents[].id incidents[].title", service)
    asked = "LIST /incidents/{id}/related-incidents -> related_incidents[].id related_incidents[].title"
    assert not isinstance(found := plan(asked, service), Plan) or not found.is_certain


def test_a_distance_is_not_a_comparison() -> None:
    approved("LIST /hotels/by-city city -> hotels[].id")
    assert "`near`" in doubtful("LIST /hotels/near city -> hotels[].id").doubts[0]


def test_a_view_is_named_by_the_path_and_not_by_a_field() -> None:
    refused("LIST /macros active:b -> macros[].title macros[].active:b", DESK)


def test_a_key_is_not_looked_for_in_a_list_that_may_go_on() -> None:
    doubtful("FETCH /agents/{agent_id} -> name", DESK)


def test_an_unknown_word_is_not_explained_by_a_key() -> None:
    service = contracts("LIST /sections -> sections[].id sections[].category_id")
    doubtful("LIST /categories/{category_id}/zorbles -> sections[].id", service)


def test_a_list_inside_the_wanted_object_is_a_field_of_it() -> None:
    service = contracts("FETCH /services/{id} -> id name addons[].name\nFETCH /addons/{id} -> id name")
    approved("FETCH /services/{id} -> name addons[].name", service)
    doubtful("LIST /services/{id}/addons -> addons[].name", service)


def test_a_key_that_is_looked_up_twice_is_still_that_of_a_third_thing() -> None:
    service = contracts("""
FETCH /users/{id} -> id email:e
FETCH /users/email/{email} -> id email:e
FETCH /ships/{id} -> id user_id
LIST /orders user_id? -> items[].id items[].user_id
""")
    refused("LIST /ships/{ship_id}/orders -> orders[].id", service)
