"""The verb of an operation comes from the catalog, by its words before its method."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.verb_choice import choose_verb

CATALOG = load_bundled()


def operation(method: str, path: str, name: str = "", summary: str = "", **fields: Any) -> Candidate:
    return Candidate(method=method, path=path, name=name, summary=summary, **fields)


@pytest.mark.requirement("API-14.1-1", "AGIS-B-1")
@rows(
    "method, path, name, summary, verb",
    ("POST", "/reservations", "createReservation", "", "CREATE"),
    ("POST", "/#Target=GetItem", "GetItem", "The GetItem operation does much", "FETCH"),
    ("POST", "/#Target=DeleteTable", "DeleteTable", "", "REMOVE"),
    ("POST", "/books:batchGet", "", "", "FETCH"),
    ("POST", "/runs/{id}/rerun", "actions/re-run-workflow", "Re-run a workflow", "RETRY"),
    ("GET", "/users/$count", "users.GetCount", "", "COUNT"),
    ("POST", "/login", "", "", "AUTHENTICATE"),
    ("POST", "/upload", "", "", "SUBMIT"),
    ("POST", "/invoices/{id}/mark_uncollectible", "PostInvoiceMarkUncollectible", "", "SET"),
    ("POST", "/users/{id}/access-tokens", "", "", "CREATE"),
    ("POST", "/cards/{id}/attach", "", "Attaches a card to a customer", "ATTACH"),
    ("GET", "/users/delta()", "users.delta", "Invoke function delta", "FETCH"),
    ("POST", "/rooms", "bookRoom", "", "BOOK"),
    ("GET", "/restaurants", "searchRestaurants", "", "SEARCH"),
    ("GET", "/pets", "listPets", "List all pets", "LIST"),
    ("GET", "/pets/{id}", "getPet", "", "FETCH"),
    ("GET", "/pets/{id}", "getPet", "Info for a specific pet", "FETCH"),
    ("DELETE", "/pets/{id}", "deletePet", "", "REMOVE"),
    ("PUT", "/pets/{id}", "", "", "REPLACE"),
    ("PATCH", "/pets/{id}", "", "", "MODIFY"),
    ("PUT", "/pets/{id}", "updatePet", "Update an existing pet", "UPDATE"),
    ("POST", "/store/order", "placeOrder", "Place an order for a pet", "ORDER"),
    ("POST", "/orders/{id}/cancel", "", "", "CANCEL"),
    ("POST", "/orders/{id}/cancel", "orders_cancel_create", "", "CANCEL"),
    ("POST", "/jobs/{id}:run", "", "", "RUN"),
    ("GET", "/orders", "orders_list", "", "LIST"),
    ("GET", "/orgs/{org}/repos", "repos/list-for-org", "List organization repositories", "LIST"),
    ("POST", "/v1/customers", "PostCustomers", "<p>Creates a new customer object.</p>", "CREATE"),
    ("GET", "/order-history", "orderHistory", "", "FETCH"),
    ("POST", "/x", "PetController_create", "", "CREATE"),
    ("POST", "/payments", "confirmPayment", "Confirm a payment", "CONFIRM"),
    ("HEAD", "/files/{f}", "", "", "CHECK"),
    ("GET", "/user/logout", "logoutUser", "", "FETCH"),
    ("POST", "/nodes/{id}/reboot", "ComputeNode_Reboot", "Restarts a node", "REBOOT"),
    ("POST", "/ips/{id}/release", "", "", "REMOVE"),
    ("POST", "/post/feature", "featurePost", "Feature Post", "CREATE"),
    ("POST", "/mails/{id}/resend", "", "", "SEND"),
    ("POST", "/unSuspendHolder", "post-unSuspendHolder", "", "ACTIVATE"),
    ("POST", "/users/{id}/unban", "", "", "ALLOW"),
    ("PUT", "/interest_reinvest", "switch_interest_reinvest", "Set the reinvestment toggle", "UPDATE"),
    ("POST", "/reviews/{id}/events", "pulls/submit-review", "Submit a review", "SUBMIT"),
    ("POST", "/balancers/{id}/droplets", "loadBalancers_add_droplets", "", "CREATE"),
    ("POST", "/attributes", "Attribute_CreateConfig", "", "CREATE"),
    ("POST", "/player/next", "skip-track", "Skip a track", "EXECUTE"),
    ("DELETE", "/locks/{id}", "issues/unlock", "Unlock an issue", "CLEAR"),
)
def test_verb_matches_the_operation(method: str, path: str, name: str, summary: str, verb: str) -> None:
    assert choose_verb(operation(method, path, name, summary), CATALOG).verb == verb


def test_collections_are_lists_and_words_give_more_confidence_than_the_method_alone() -> None:
    assert choose_verb(operation("GET", "/pet", "getPet", returns_list=True), CATALOG).verb == "LIST"
    assert choose_verb(operation("POST", "/phones/{id}/verify", "verifyPhone"), CATALOG).confidence == 0.6
    said = choose_verb(operation("POST", "/rooms", "bookRoom"), CATALOG)
    alone = choose_verb(operation("POST", "/rooms"), CATALOG)
    assert said.confidence > 0.9
    assert alone.confidence < 0.5
    assert alone.why == "by POST alone"


@pytest.mark.parametrize(
    ("method", "name", "verb"),
    [("GET", "cancelOrder", "FETCH"), ("DELETE", "getOrder", "REMOVE"), ("PATCH", "verifyOrder", "MODIFY")],
)
def test_words_that_contradict_the_method_lose_and_lower_the_confidence(method: str, name: str, verb: str) -> None:
    choice = choose_verb(operation(method, "/orders/{id}", name), CATALOG)
    assert (choice.verb, choice.refused, choice.confidence) == (verb, name.removesuffix("Order"), 0.4)
    assert "contradicts" in choice.why


@pytest.mark.requirement("API-14.1-1")
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    st.text(max_size=40),
    st.text(max_size=60),
)
def test_no_verb_is_ever_invented(method: str, name: str, summary: str) -> None:
    choice = choose_verb(operation(method, f"/{name}", name, summary), CATALOG)
    assert {choice.verb, *choice.others} <= CATALOG.names
    assert 0 <= choice.confidence <= 1
