"""Pass 6: whether an intent says what its method promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.consistency import (
    MOST,
    VIOLATION_BELOW,
    WARNING_BELOW,
    fitting_sentence,
    fitting_verbs,
    judge,
    third_person,
)

FLOORS = {"seen.txt": (0.96, 0.006), "unseen.txt": (0.97, 0.006)}
"""Least accuracy, and largest share of fitting sentences that may be called a violation."""


def read_sentences(name: str) -> list[tuple[str, str, str]]:
    """Read the pairs of a method and an intent, each after the name of its section."""
    found, section = [], ""
    for line in (Path(__file__).parent / "sentences" / name).read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            method, _, intent = line.partition(" | ")
            found.append((section, method, intent))
    return found


def test_every_method_and_intent_gets_its_verdict() -> None:
    pairs = [*read_sentences("verdicts.txt"), ("unverifiable", "BOOK", ""), ("unverifiable", "BOOK", "   ")]
    judgements = [(verdict, judge(method, intent), method, intent) for verdict, method, intent in pairs]
    assert [one for one in judgements if one[1].verdict != one[0]] == []
    assert all((found.score is None) is (verdict == "unverifiable") for verdict, found, *_ in judgements)


def test_reason_names_the_class_of_the_method_and_the_contradicting_word_or_opposite() -> None:
    judgement = judge("BOOK", "Returns a list of available restaurants")
    assert judgement.reason == 'BOOK creates or commits something, but "Returns" reads something'
    assert (judgement.head, judgement.method_class) == ("return", "CREATE")
    assert judge("LOCK", "Unlocks the door").reason == '"Unlocks" is the opposite of what LOCK promises'


@rows(
    "method, intent, word",
    ("FIND", "This endpoint creates a new reservation", "creates"),
    ("SEARCH", "Finds a room and books it for the guest", "books"),
    ("BOOK", "Submits a cancellation request", "cancellation"),
)
def test_the_reason_quotes_the_deciding_word(method: str, intent: str, word: str) -> None:
    assert f'"{word}"' in judge(method, intent).reason


def test_reading_method_must_only_read_and_an_opposite_that_frames_another_verb_is_judged() -> None:
    assert judge("FIND", "Creates an order and returns it").verdict == "violation"
    assert judge("CREATE", "Creates an order and returns it").verdict == "consistent"
    assert judge("STOP", "Starts the execution of a plan").verdict == "violation"


@pytest.mark.parametrize(
    "text", ["x" * 1_000_000, "book and " * 100_000, "to " * 300_000, "(" * 1_000_000, "\x00" * 1000]
)
def test_long_text_is_judged(text: str) -> None:
    assert judge("BOOK", text).verdict in {"consistent", "unverifiable"}
    assert judge(text, "Books a room").verdict in {"consistent", "violation", "warning", "unverifiable"}


@given(st.text(max_size=30), st.text())
def test_every_text_gets_a_judgement_that_agrees_with_its_score(method: str, intent: str) -> None:
    judgement = judge(method, intent)
    if judgement.score is None:
        assert judgement.verdict == "unverifiable"
    else:
        expected = "violation" if judgement.score < VIOLATION_BELOW else "warning"
        assert judgement.verdict == (expected if judgement.score < WARNING_BELOW else "consistent")
        assert judgement.head


def test_hardly_any_verb_of_the_catalog_contradicts_its_own_description() -> None:
    """The descriptions say what a verb means without using it, so they are as hard as an intent can be."""
    verbs = load_bundled().verbs
    wrong = [name for name, entry in verbs.items() if judge(name, entry.description).verdict == "violation"]
    assert len(wrong) <= 0.015 * len(verbs), wrong


@pytest.mark.parametrize("name", ["seen.txt", "unseen.txt"])
def test_sentences_in_the_styles_of_public_apis_are_judged_as_a_person_does(name: str) -> None:
    pairs = [(kind == "fits", judge(method, intent), method, intent) for kind, method, intent in read_sentences(name)]
    wrong = [
        f"{found.verdict} ({found.reason}): {method} / {intent}"
        for fits, found, method, intent in pairs
        if fits is (found.verdict in {"violation", "warning"})
    ]
    errors = [line for line in wrong if line.startswith("violation")]
    right = sum(fits for fits, *_ in pairs)
    assert len(pairs) > 200
    accuracy, refused = FLOORS[name]
    assert len(wrong) <= (1 - accuracy) * len(pairs), "\n".join(wrong)
    assert len(errors) <= refused * right, "\n".join(errors)


@rows(
    "intent, verb",
    ("Returns a list of available restaurants", "LIST"),
    ("Returns a list of available restaurants", "FIND"),
    ("Creates a new reservation in the system", "CREATE"),
    ("Retrieves cancellation policy", "RETRIEVE"),
    ("Sends a message to the driver", "SEND"),
    ("Makes a hotel reservation", "RESERVE"),
)
def test_synonymous_verb_of_the_catalog_is_suggested(intent: str, verb: str) -> None:
    found = fitting_verbs(intent, load_bundled().verbs)
    assert verb in found
    assert len(found) <= MOST


def test_every_suggested_verb_fits_and_an_unknown_word_has_none() -> None:
    for intent in ("Deletes a saved card", "Turns on the heating", "Computes the tax", "Updates an address"):
        assert {judge(verb, intent).verdict for verb in fitting_verbs(intent, load_bundled().verbs)} == {"consistent"}
    assert fitting_verbs("", ["FIND"]) == ()
    assert fitting_verbs("Deletes a card", ["FIND"]) == ()


@rows(
    "method, path, sentence",
    ("BOOK", "/reservation", "Books a reservation on behalf of the requesting agent"),
    ("FIND", "/restaurants", "Finds restaurants on behalf of the requesting agent"),
    ("RETRY", "/order/{id}", "Retries an order on behalf of the requesting agent"),
    ("BORROW", "/borrow/{id}", "Borrows a resource on behalf of the requesting agent"),
    ("BOOKING", "/bookTable", "Books a table on behalf of the requesting agent"),
    ("BOOK", "/book-", "Books a resource on behalf of the requesting agent"),
    ("DISPATCH", "/", "Dispatches a resource on behalf of the requesting agent"),
)
def test_suggested_sentence_begins_with_the_verb_of_the_method(method: str, path: str, sentence: str) -> None:
    assert fitting_sentence(method, path) == sentence


def test_the_sentence_fits_every_verb_of_the_catalog() -> None:
    wrong = [
        name for name in load_bundled().verbs if judge(name, fitting_sentence(name, "/ticket")).verdict == "violation"
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("verb", "form"), [("book", "books"), ("retry", "retries"), ("fix", "fixes"), ("pay", "pays"), ("do", "does")]
)
def test_third_person_is_spelled_correctly(verb: str, form: str) -> None:
    assert third_person(verb) == form
