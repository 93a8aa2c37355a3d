"""A guess has a text, a reason, a confidence and an alternative."""

from __future__ import annotations

import pytest

from bespeak.documents.adoption.guess import MARKER, RISKS, Guess, LeftOut, Risk


def test_a_comment_has_the_confidence_the_reason_and_the_alternative() -> None:
    guess = Guess(at="/method", text="CREATE", why="by POST alone", confidence=0.4, otherwise="SUBMIT")
    assert guess.comment == "review (0.4): CREATE: by POST alone; else SUBMIT"


@pytest.mark.parametrize(
    ("at", "risk", "confidence", "is_minor"),
    [
        ("/semantic/intent", "low", 0.9, True),
        ("/semantic/confidence", "low", 0.5, True),
        ("/semantic/outcome", "low", 0.5, False),
        ("/semantic/impact", "high", 0.9, False),
        ("/semantic/is_idempotent", "medium", 0.8, False),
    ],
)
def test_sure_guess_of_low_risk_is_minor(at: str, risk: Risk, confidence: float, is_minor: bool) -> None:
    assert Guess(at=at, text="a", why="b", confidence=confidence, risk=risk).is_minor is is_minor


def test_comment_is_recognised_by_its_marker() -> None:
    found = MARKER.fullmatch(f"# {Guess(at='', text='a', why='b', confidence=0.4).comment}")
    assert found is not None
    assert found.groups() == ("0.4", "a: b")


def test_comment_without_an_alternative_omits_it() -> None:
    assert Guess(at="", text="a", why="b", confidence=0.95).comment == "review (0.9): a: b"


def test_highest_risk_comes_first() -> None:
    assert RISKS == ("high", "medium", "low")
    assert LeftOut("GET /x", "because").why == "because"
