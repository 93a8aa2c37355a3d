from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.lint.agis_text import advice, document, endpoint, of_endpoint
from tests.checks.lint.conftest import ROOM
from tests.checks.lint.contexts import CONTEXT as CONTEXTS_CONTEXT
from tests.checks.lint.endpoint_files import ENDPOINT

from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.rules import intent as consistency
from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import Diagnostic, declared_in
from bespeak.text.diagnostics.report import page_of

RIGHT = (
    "Books a restaurant reservation on behalf of the requesting agent",
    "Books a table, e.g. for two guests, at No. 5 Main Road.",
    "Books a room at St. Mary in the U.S. for 2026-12-01",
    "Books a room with plan v1.2 and waits...",
)
VAGUE = (
    *("The request is processed", "Success", "Returns 200", "returns a 200 OK response.", "Everything works", "OK"),
    *("Done.", "The operation completes successfully", "An API call was executed without errors", "201 Created"),
    *("A successful response is returned", "No errors occur", "The system is updated"),
)
VERIFIABLE = (
    "A confirmed reservation record exists in the system with status CONFIRMED",
    "A ranked list of matching restaurants is returned",
    "Funds are debited from source and credited to destination",
    "Discrepancies are identified and a reconciliation report is returned",
    "Patient record shows admitted status with assigned unit",
    "The request has status ACCEPTED",
    "The result of the reservation is returned with its number",
    *("The task is completed", "No reservation exists any more", "The user is logged out"),
    "The system holds the new address of the guest",
)
PLACEHOLDERS = ("TBD", "lorem ipsum dolor", "<intent>", "N/A", "Your intent here.")


@pytest.mark.requirement("AGIS-6.1-1", "AGIS-6.1-4", "AGIS-6.1-5")
@rows(
    "semantic, expected",
    *(({"intent": text}, []) for text in RIGHT),
    *(({"outcome": text}, ["S423"]) for text in (*VAGUE, *PLACEHOLDERS)),
    *(({"outcome": text}, []) for text in VERIFIABLE),
    ({"outcome": "A reservation exists. It can be changed."}, ["S421"]),
    ({"outcome": "books a room for the guest."}, ["S428"]),  # the intent once more
)
def test_outcome_can_be_verified_and_each_text_is_one_sentence(semantic: dict[str, str], expected: list[str]) -> None:
    assert of_endpoint(semantic=semantic) == expected


@pytest.mark.requirement("AGIS-6.1-1")
@rows(
    "intent, rule",
    ("Books a room for the guest. Sends a letter to the hotel.", "S420"),
    ("Books", "S420"),
    *((text, "S427") for text in PLACEHOLDERS),
)
def test_intent_is_one_sentence_and_not_a_placeholder(intent: str, rule: str) -> None:
    assert rule in of_endpoint(semantic={"intent": intent})


@pytest.mark.requirement("API-7.1-9", "API-7.1-11", "API-7.1-13")
@rows(
    "intent, outcome, rule",
    ("Reserve a room for the guest.", "A reservation exists.", None),
    ("Reserve a room for the guest. Send a letter to the hotel.", "A reservation exists.", "S420"),
    ("Delete the invoice of a customer.", "A reservation exists.", "S450"),
    ("Reserve a room for the guest.", "Reserve a room for the guest.", "S428"),
)
def test_the_texts_of_an_endpoint_file_are_judged_too(intent: str, outcome: str, rule: str | None) -> None:
    text = ENDPOINT.replace('"Books a room for the guest."', json.dumps(intent))
    text = text.replace('"A reservation exists."', json.dumps(outcome))
    found = {finding.rule for finding in check_text(text, "room.toml", CONTEXTS_CONTEXT).findings} - {"D118"}
    assert found == ({rule} if rule else set())


@pytest.mark.requirement("AGIS-6.1-2")
def test_an_intent_is_about_the_goal() -> None:
    found = advice("S422", document(endpoint(semantic={"intent": "Inserts a record into the reservations table"})))
    assert found.severity == "error"
    assert "inserts a record into the reservations table" in found.message


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_can_be_looked_at(intent: str, outcome: str) -> None:
    of_endpoint(semantic={"intent": intent, "outcome": outcome})


CONTEXT = LintContext(catalog=load_bundled())


def check(method: str, intent: str, path: str = "/reservation") -> list[Diagnostic]:
    endpoint = replace(ROOM, method=method, path=path, semantic=replace(ROOM.semantic, intent=intent))
    return list(consistency.check_consistency(Declared(endpoint, "/endpoints/0", {}), CONTEXT))


@pytest.mark.requirement("AGIS-6.3-1", "AGIS-6.3-2")
@rows(
    "method, intent, verb",
    ("BOOK", "Returns a list of available restaurants", '"Returns"'),
    ("FIND", "Creates a new reservation in the system", '"Creates"'),
    ("CANCEL", "Retrieves cancellation policy", '"Retrieves"'),
)
def test_the_violations_of_the_draft_are_errors_that_name_the_verb(method: str, intent: str, verb: str) -> None:
    (finding,) = check(method, intent)
    assert (finding.rule, finding.severity, finding.pointer) == ("S450", "error", "/endpoint/semantic/intent")
    assert method in finding.message
    assert verb in finding.message


@pytest.mark.requirement("AGIS-6.3-1")
@rows(
    "method, intent",
    ("BOOK", "Books a restaurant reservation on behalf of the requesting agent"),
    ("FIND", "Finds restaurants matching the agent criteria"),
    ("TRIAGE", "Assesses and prioritizes a patient for care"),
    ("ADMIT", "Admits a patient to a care facility"),
    ("TRANSFER", "Transfers funds between accounts on behalf of the agent"),
    ("RECONCILE", "Reconciles account records against transaction ledger"),
    ("CANCEL", "Submits a cancellation request for a booking"),
    ("book", "Reserve a room for the guest."),
)
def test_an_intent_that_says_what_the_method_promises_is_right(method: str, intent: str) -> None:
    assert check(method, intent) == []


@rows(
    "method, intent, path, verbs, sentence",
    ("BOOK", "Returns a list of available restaurants", "/reservation", {"FIND", "LIST"}, "Books a reservation"),
    ("FIND", "Creates a new reservation in the system", "/restaurants", {"CREATE"}, "Finds restaurants"),
    ("CANCEL", "Retrieves cancellation policy", "/booking/{id}", {"RETRIEVE", "FETCH"}, "Cancels a booking"),
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


def test_near_missing_and_empty_verbs_of_an_intent_are_remarked_and_unknown_methods_skipped() -> None:
    (finding,) = check("UPDATE", "Creates a reservation for the guest")
    assert (finding.rule, finding.severity) == ("S451", "warning")
    (finding,) = check("BOOK", "The restaurant of the guest")
    assert (finding.rule, finding.severity) == ("S452", "info")
    assert "Begin with a verb" in finding.help
    (finding,) = check("RESERVE", "Put a book aside until it is fetched")
    assert finding.rule == "S452"
    assert "more precise verb than put" in finding.help
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
