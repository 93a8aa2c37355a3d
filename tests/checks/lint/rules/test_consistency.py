from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.lint.conftest import ROOM

from bespeak.checks.lint.rules import intent as consistency
from bespeak.checks.lint.subject import Context, Declared
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import Diagnostic, declared_in

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

    assert entry(rule.bad) == [rule.id]
    assert entry(rule.good) == []


@given(st.text(max_size=40), st.text(max_size=2000))
def test_any_text_is_judged_in_few_words(method: str, intent: str) -> None:
    for finding in check(method, intent):
        assert len(finding.message) + len(finding.help) < 600
