"""What to write instead."""

from __future__ import annotations

import pytest

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.consistency import MOST, fitting_sentence, fitting_verbs, judge, third_person


@pytest.mark.parametrize(
    ("intent", "verb"),
    [
        ("Returns a list of available restaurants", "LIST"),
        ("Returns a list of available restaurants", "FIND"),
        ("Creates a new reservation in the system", "CREATE"),
        ("Retrieves cancellation policy", "RETRIEVE"),
        ("Sends a message to the driver", "SEND"),
        ("Makes a hotel reservation", "RESERVE"),
    ],
)
def test_synonymous_verb_of_the_catalog_is_suggested(intent: str, verb: str) -> None:
    found = fitting_verbs(intent, load_bundled().verbs)
    assert verb in found
    assert len(found) <= MOST


def test_every_suggested_verb_fits() -> None:
    for intent in ("Deletes a saved card", "Turns on the heating", "Computes the tax", "Updates an address"):
        assert {judge(verb, intent).verdict for verb in fitting_verbs(intent, load_bundled().verbs)} == {"consistent"}


def test_unknown_word_has_no_suggestion() -> None:
    assert fitting_verbs("", ["FIND"]) == ()
    assert fitting_verbs("Deletes a card", ["FIND"]) == ()


@pytest.mark.parametrize(
    ("method", "path", "sentence"),
    [
        ("BOOK", "/reservation", "Books a reservation on behalf of the requesting agent"),
        ("FIND", "/restaurants", "Finds restaurants on behalf of the requesting agent"),
        ("RETRY", "/order/{id}", "Retries an order on behalf of the requesting agent"),
        ("BORROW", "/borrow/{id}", "Borrows a resource on behalf of the requesting agent"),
        ("BOOKING", "/bookTable", "Books a table on behalf of the requesting agent"),
        ("DISPATCH", "/", "Dispatches a resource on behalf of the requesting agent"),
    ],
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
