"""How two verbs fit."""

from __future__ import annotations

import pytest

from bespeak.text.language.operation_class import class_fit, fit, operation_classes


def test_a_verb_fits_itself_and_not_its_opposite() -> None:
    assert fit("book", "book") == 1
    assert fit("book", "cancel") == 0


@pytest.mark.parametrize(
    ("method", "verb"), [("find", "return"), ("book", "reserve"), ("remove", "delete"), ("run", "create")]
)
def test_verbs_of_a_fitting_class_fit(method: str, verb: str) -> None:
    score = fit(method, verb)
    assert score is not None
    assert score > 0.5


@pytest.mark.parametrize(("method", "verb"), [("book", "return"), ("find", "create"), ("cancel", "retrieve")])
def test_verbs_of_contradicting_classes_do_not_fit(method: str, verb: str) -> None:
    score = fit(method, verb)
    assert score is not None
    assert score < 0.3


@pytest.mark.parametrize(
    ("method", "verb"), [("book", "take"), ("find", "provide"), ("execute", "update"), ("find", "qwrtzx")]
)
def test_vague_verb_gives_no_score(method: str, verb: str) -> None:
    assert fit(method, verb) is None


def test_an_analysis_may_produce_its_result() -> None:
    score = fit("summarize", "produce")
    assert score is not None
    assert score >= 0.5


def test_fit_of_classes_is_between_zero_and_one() -> None:
    verbs = [operation_classes(verb) for verb in ("find", "book", "delete", "send", "pause", "merge", "assess")]
    assert all(0 <= class_fit(one, other) <= 1 for one in verbs for other in verbs if one and other)
