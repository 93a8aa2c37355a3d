from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.lint.agis_text import advice, document, endpoint, of_endpoint
from tests.checks.lint.contexts import CONTEXT

from bespeak.checks.lint.document import check_text

RIGHT = [
    "Books a restaurant reservation on behalf of the requesting agent",
    "Books a table, e.g. for two guests, at No. 5 Main Road.",
    "Books a room at St. Mary in the U.S. for 2026-12-01",
    "Books a room with plan v1.2 and waits...",
]


@pytest.mark.requirement("AGIS-6.1-1")
@pytest.mark.parametrize("intent", RIGHT)
def test_an_intent_of_one_sentence_is_right(intent: str) -> None:
    assert of_endpoint(semantic={"intent": intent}) == []


@pytest.mark.requirement("AGIS-6.1-1")
@pytest.mark.parametrize("intent", ["Books a room for the guest. Sends a letter to the hotel.", "Books"])
def test_an_intent_is_one_sentence(intent: str) -> None:
    assert "S420" in of_endpoint(semantic={"intent": intent})


@pytest.mark.requirement("API-7.1-9", "API-7.1-11", "API-7.1-13")
@pytest.mark.parametrize(
    ("intent", "outcome", "rule"),
    [
        ("Reserve a room for the guest.", "A reservation exists.", None),
        ("Reserve a room for the guest. Send a letter to the hotel.", "A reservation exists.", "S420"),
        ("Delete the invoice of a customer.", "A reservation exists.", "S450"),
        ("Reserve a room for the guest.", "Reserve a room for the guest.", "S428"),
    ],
)
def test_the_texts_of_an_endpoint_file_are_judged_too(intent: str, outcome: str, rule: str | None) -> None:
    text = f"""[endpoint]
method = "BOOK"
path = "/room"
description = "Books a room."
[endpoint.semantic]
intent = {json.dumps(intent)}
outcome = {json.dumps(outcome)}
actor = "agent"
confidence = 0.9
impact = "irreversible"
is_idempotent = false
[endpoint.errors]
list = []
[endpoint.handler]
type = "registered_function"
function = "rooms.book"
"""
    found = {finding.rule for finding in check_text(text, "room.toml", CONTEXT).findings} - {"D118"}
    assert found == ({rule} if rule else set())


@pytest.mark.requirement("AGIS-6.1-4")
def test_an_outcome_is_one_sentence() -> None:
    assert of_endpoint(semantic={"outcome": "A reservation exists. It can be changed."}) == ["S421"]


@pytest.mark.requirement("AGIS-6.1-2")
def test_an_intent_is_about_the_goal() -> None:
    found = advice("S422", document(endpoint(semantic={"intent": "Inserts a record into the reservations table"})))
    assert found.severity == "error"
    assert "inserts a record into the reservations table" in found.message


@pytest.mark.requirement("AGIS-6.1-5")
@pytest.mark.parametrize(
    "outcome",
    [
        "The request is processed",
        "Success",
        "Returns 200",
        "returns a 200 OK response.",
        "Everything works",
        "OK",
        "Done.",
        "The operation completes successfully",
        "An API call was executed without errors",
        "A successful response is returned",
        "No errors occur",
        "The system is updated",
        "201 Created",
    ],
)
def test_an_outcome_that_is_true_of_any_call_is_refused(outcome: str) -> None:
    assert of_endpoint(semantic={"outcome": outcome}) == ["S423"]


@pytest.mark.requirement("AGIS-6.1-5")
@pytest.mark.parametrize(
    "outcome",
    [
        "A confirmed reservation record exists in the system with status CONFIRMED",
        "A ranked list of matching restaurants is returned",
        "Funds are debited from source and credited to destination",
        "Discrepancies are identified and a reconciliation report is returned",
        "Patient record shows admitted status with assigned unit",
        "The request has status ACCEPTED",
        "The result of the reservation is returned with its number",
        "The task is completed",
        "No reservation exists any more",
        "The user is logged out",
        "The system holds the new address of the guest",
    ],
)
def test_an_outcome_that_can_be_checked_is_right(outcome: str) -> None:
    assert of_endpoint(semantic={"outcome": outcome}) == []


@pytest.mark.parametrize("text", ["TBD", "lorem ipsum dolor", "<intent>", "N/A", "Your intent here."])
def test_placeholder_text_is_reported(text: str) -> None:
    assert "S427" in of_endpoint(semantic={"intent": text})
    assert of_endpoint(semantic={"outcome": text}) == ["S423"]


def test_the_outcome_is_not_the_intent_once_more() -> None:
    assert of_endpoint(semantic={"outcome": "books a room for the guest."}) == ["S428"]


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_looked_at(intent: str, outcome: str) -> None:
    of_endpoint(semantic={"intent": intent, "outcome": outcome})
