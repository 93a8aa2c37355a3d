"""The impact of a call is guessed conservatively."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import CAPABILITIES
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.judgement import judge_all
from bespeak.documents.adoption.verb_choice import ImpactGuess, adds_record, choose_verb, guess_impact

CATALOG = load_bundled()


def guessed(method: str, path: str, name: str = "", summary: str = "", *, can_be_read: bool = False) -> ImpactGuess:
    candidate = Candidate(method=method, path=path, name=name, summary=summary, has_readable_state=can_be_read)
    return guess_impact(candidate, choose_verb(candidate, CATALOG), CATALOG)


@rows(
    "method, path, name, can_be_read, impact, idempotent",
    ("GET", "/pets", "listPets", False, "informational", True),
    ("HEAD", "/pets", "", False, "informational", True),
    ("DELETE", "/pets/{id}", "", True, "irreversible", True),
    ("POST", "/pets", "createPet", True, "irreversible", False),
    ("POST", "/pets/search", "", False, "informational", True),
    ("POST", "/pets/{id}/archive", "", False, "reversible", False),
    ("POST", "/x", "", False, "irreversible", False),
    ("PUT", "/pets/{id}", "updatePet", True, "reversible", True),
    ("PUT", "/pets/{id}", "updatePet", False, "reversible", True),
    ("PATCH", "/pets/{id}", "", True, "reversible", False),
    ("GET", "/orders/{id}/cancel", "cancelOrder", False, "irreversible", False),
    ("POST", "/mail/test", "testMail", False, "irreversible", False),
    ("POST", "/invoices/{id}/mark_lost", "", True, "irreversible", False),
    ("PUT", "/pulls/{id}/merge", "mergePull", True, "irreversible", True),
    ("PATCH", "/notes/{id}/seen", "markSeen", True, "reversible", False),
    ("POST", "/issues/{id}/unlock", "", False, "reversible", False),
    ("POST", "/users/{id}/ban", "", False, "reversible", False),
    ("POST", "/sessions/logout", "logoutUser", False, "irreversible", False),
    ("GET", "/jobs/{id}", "triggerJob", False, "irreversible", False),
)
def test_an_impact_follows_from_method_and_words(  # noqa: PLR0917 - a row of a table
    method: str, path: str, name: str, can_be_read: bool, impact: str, idempotent: bool
) -> None:
    found = guessed(method, path, name, can_be_read=can_be_read)
    assert (found.impact, found.is_idempotent) == (impact, idempotent)


def test_irreversible_calls_and_reading_posts_are_a_high_risk_and_every_guess_has_a_reason() -> None:
    for found in (guessed("DELETE", "/x"), guessed("POST", "/x/search"), guessed("POST", "/x")):
        [risk] = [guess.risk for guess in found.guesses if guess.at == "/semantic/impact"]
        assert risk == "high"
    assert all(guess.why for guess in guessed("PUT", "/x").guesses)


@pytest.mark.parametrize(
    ("method", "path", "name"), [("POST", "/cart/checkout", "checkoutCart"), ("POST", "/x", "importX")]
)
def test_a_capability_does_not_contradict_the_impact(method: str, path: str, name: str) -> None:
    found = guessed(method, path, name)
    assert found.impact == "irreversible"
    assert found.capability in CAPABILITIES
    assert found.capability not in ("discovery", "retrieval", "analysis")


def put(path: str = "/documents/{id}", **fields: Any) -> Candidate:
    return Candidate(method="PUT", path=path, **fields)


@rows(
    "candidate",
    put(successes=frozenset({"201"})),
    put("/documents/{id}/versions"),
    put("/documents/{id}/revisions/"),
    put("/orders/{id}/historyEvents"),
    put("/issues/{id}/comments"),
    put(summary="Creates a new version of the document"),
    put(summary="Update a page", description="Saves the text and adds a revision."),
    put(summary="Append an event"),
)
def test_put_that_adds_a_record_is_not_idempotent(candidate: Candidate) -> None:
    assert adds_record(candidate)
    (judged,) = judge_all([candidate], load_bundled())
    assert judged.semantic.is_idempotent is False
    (guess,) = [guess for guess in judged.guesses if guess.at == "/semantic/is_idempotent"]
    assert guess.why == adds_record(candidate)


@rows(
    "candidate",
    put(),
    put(successes=frozenset({"200", "201"})),
    put(successes=frozenset({"204"})),
    put("/issues/{id}/comments/{comment}"),
    put("/versions/{id}/title"),
    put(summary="Replaces the version of a document"),
    put(summary="Update an event"),
)
def test_other_put_is_idempotent(candidate: Candidate) -> None:
    assert adds_record(candidate) == ""
    (judged,) = judge_all([candidate], load_bundled())
    assert judged.semantic.is_idempotent is True


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "GET", None])
def test_only_put_is_judged(method: str | None) -> None:
    assert adds_record(Candidate(method=method, path="/documents/{id}/versions")) == ""
