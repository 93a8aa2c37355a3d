"""A PUT that adds to a history may not be repeated."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.catalog.document import load_bundled
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.impact_guess import adds_record
from bespeak.documents.adoption.judgement import judge_all


def put(path: str = "/documents/{id}", **fields: Any) -> Candidate:
    return Candidate(method="PUT", path=path, **fields)


@pytest.mark.parametrize(
    "candidate",
    [
        put(successes=frozenset({"201"})),
        put("/documents/{id}/versions"),
        put("/documents/{id}/revisions/"),
        put("/orders/{id}/historyEvents"),
        put("/issues/{id}/comments"),
        put(summary="Creates a new version of the document"),
        put(summary="Update a page", description="Saves the text and adds a revision."),
        put(summary="Append an event"),
    ],
)
def test_put_that_adds_a_record_is_not_idempotent(candidate: Candidate) -> None:
    assert adds_record(candidate)
    (judged,) = judge_all([candidate], load_bundled())
    assert judged.semantic.is_idempotent is False
    (guess,) = [guess for guess in judged.guesses if guess.at == "/semantic/is_idempotent"]
    assert guess.why == adds_record(candidate)


@pytest.mark.parametrize(
    "candidate",
    [
        put(),
        put(successes=frozenset({"200", "201"})),
        put(successes=frozenset({"204"})),
        put("/issues/{id}/comments/{comment}"),
        put("/versions/{id}/title"),
        put(summary="Replaces the version of a document"),
        put(summary="Update an event"),
    ],
)
def test_other_put_is_idempotent(candidate: Candidate) -> None:
    assert adds_record(candidate) == ""
    (judged,) = judge_all([candidate], load_bundled())
    assert judged.semantic.is_idempotent is True


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "GET", None])
def test_only_put_is_judged(method: str | None) -> None:
    assert adds_record(Candidate(method=method, path="/documents/{id}/versions")) == ""
