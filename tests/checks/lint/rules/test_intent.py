""""""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.lint.agis_text import advice, document, endpoint, of_endpoint
from tests.checks.lint.conftest import ROOM
from tests.checks.lint.contexts import CONTEXT as CONTEXTS_CONTEXT

from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.rules import intent as consistency
from bespeak.checks.lint.subject import Context, Declared
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import Diagnostic, declared_in
from bespeak.text.diagnostics.page import page_of

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
    found = {finding.rule for finding in check_text(text, "room.toml", CONTEXTS_CONTEXT).findings} - {"D118"}
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


CONTEXT = Context(catalog=load_bundled())


def check(method: str, intent: str, path: str = "/reservation") -> list[Diagnostic]:
    endpoint = replace(ROOM, method=method, path=path, semantic=replace(ROOM.semantic, intent=intent))
    return list(consistency.check_consistency(Declared(endpoint, "/endpoints/0", {}), CONTEXT))


@pytest.mark.requirement("AGIS-6.3-1", "AGIS-6.3-2")
@pytest.mark.parametrize(
    ("method", "intent", "verb"),
    [
        ("BOOK", "Returns a list of available restaurants", '"Returns"'),
        ("FIND", "Creates a new reservation in the system", '"Creates"'),
        ("CANCEL", "Retrieves cancellation policy", '"Retrieves"'),
    ],
)
def test_the_violations_of_the_draft_are_errors_that_name_the_verb(method: str, intent: str, verb: str) -> None:
    (finding,) = check(method, intent)
    assert (finding.rule, finding.severity, finding.pointer) == ("S450", "error", "/endpoint/semantic/intent")
    assert method in finding.message
    assert verb in finding.message


@pytest.mark.requirement("AGIS-6.3-1")
@pytest.mark.parametrize(
    ("method", "intent"),
    [
        ("BOOK", "Books a restaurant reservation on behalf of the requesting agent"),
        ("FIND", "Finds restaurants matching the agent criteria"),
        ("TRIAGE", "Assesses and prioritizes a patient for care"),
        ("ADMIT", "Admits a patient to a care facility"),
        ("TRANSFER", "Transfers funds between accounts on behalf of the agent"),
        ("RECONCILE", "Reconciles account records against transaction ledger"),
        ("CANCEL", "Submits a cancellation request for a booking"),
        ("book", "Reserve a room for the guest."),
    ],
)
def test_an_intent_that_says_what_the_method_promises_is_right(method: str, intent: str) -> None:
    assert check(method, intent) == []


@pytest.mark.parametrize(
    ("method", "intent", "path", "verbs", "sentence"),
    [
        ("BOOK", "Returns a list of available restaurants", "/reservation", {"FIND", "LIST"}, "Books a reservation"),
        ("FIND", "Creates a new reservation in the system", "/restaurants", {"CREATE"}, "Finds restaurants"),
        ("CANCEL", "Retrieves cancellation policy", "/booking/{id}", {"RETRIEVE", "FETCH"}, "Cancels a booking"),
    ],
)
def test_the_advice_names_verbs_for_the_intent_and_an_intent_for_the_verb(
    method: str, intent: str, path: str, verbs: set[str], sentence: str
) -> None:
    (finding,) = check(method, intent, path)
    named = set(re.findall(r"[A-Z]{3,}", finding.help))
    assert verbs <= named <= CONTEXT.catalog.names
    assert sentence in finding.help


def test_the_suggested_verb_and_the_suggested_sentence_are_right() -> None:
    for method, intent in (("BOOK", "Returns every table"), ("FIND", "Deletes a guest"), ("NOTIFY", "Removes a guest")):
        (finding,) = check(method, intent)
        written = re.match("Write ([A-Z]+)", finding.help)
        sentence = re.search('"(.*)"', finding.help)
        assert written is not None
        assert sentence is not None
        assert check(written[1], intent) == []
        assert check(method, sentence[1]) == []


@pytest.mark.requirement("AGIS-9.1-4")
@pytest.mark.parametrize(("near", "shown"), [(0.61, True), (None, False)])
def test_cosine_is_shown_with_the_judgement_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, near: float | None, shown: bool
) -> None:
    monkeypatch.setattr(consistency, "cosine", lambda method, intent: near)
    (finding,) = check("CANCEL", "Retrieves cancellation policy")
    assert finding.message.endswith("; cosine 0.61 (information only)") is shown


def test_an_operation_next_to_the_methods_is_a_warning() -> None:
    (finding,) = check("UPDATE", "Creates a reservation for the guest")
    assert (finding.rule, finding.severity) == ("S451", "warning")


def test_an_intent_without_a_verb_is_only_remarked_upon() -> None:
    (finding,) = check("BOOK", "The restaurant of the guest")
    assert (finding.rule, finding.severity) == ("S452", "info")
    assert "Begin with a verb" in finding.help


def test_a_verb_that_says_nothing_is_named() -> None:
    (finding,) = check("RESERVE", "Put a book aside until it is fetched")
    assert finding.rule == "S452"
    assert "more precise verb than put" in finding.help


def test_unknown_method_is_skipped() -> None:
    assert check("FLOOBLE", "Books a table") == []


@pytest.mark.parametrize(("method", "intent"), [("BOOK", ""), ("BOOK", "  "), ("", "Books a table"), ("B_K", "Books")])
def test_missing_or_invalid_method_is_left_to_other_passes(method: str, intent: str) -> None:
    assert check(method, intent) == []


RULES = [rule for rule in declared_in(consistency).values() if rule.id >= "S450"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_examples_of_a_rule_show_it(rule: Any) -> None:
    def entry(text: str) -> list[str]:
        data = yaml.safe_load(text)
        return [finding.rule for finding in check(data["method"], data["semantic"]["intent"], data["path"])]

    assert entry(page_of(rule).bad) == [rule.id]
    assert entry(page_of(rule).good) == []


@given(st.text(max_size=40), st.text(max_size=2000))
def test_any_text_is_judged_in_few_words(method: str, intent: str) -> None:
    for finding in check(method, intent):
        assert len(finding.message) + len(finding.help) < 600
