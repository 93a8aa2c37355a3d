"""A guess has a text, a reason, a confidence and an alternative."""

from __future__ import annotations

from bespeak.documents.adoption.guess import RISKS, Guess, LeftOut


def test_a_comment_has_the_confidence_the_reason_and_the_alternative() -> None:
    guess = Guess(at="/method", text="CREATE", why="by POST alone", confidence=0.4, otherwise="SUBMIT")
    assert guess.comment == "review (0.4): CREATE: by POST alone; else SUBMIT"


def test_comment_without_an_alternative_omits_it() -> None:
    assert Guess(at="", text="a", why="b", confidence=0.95).comment == "review (0.9): a: b"


def test_highest_risk_comes_first() -> None:
    assert RISKS == ("high", "medium", "low")
    assert LeftOut("GET /x", "because").why == "because"
