"""Verbs with a particle."""

from __future__ import annotations

import pytest

from bespeak.text.language.verb_form import two_word_verb


@pytest.mark.parametrize(
    ("verb", "text", "expected"),
    [
        ("look", "looks up a flight", "find"),
        ("settle", "settles which depot ships it", "determine"),
        ("take", "takes a page out of a file", None),
        ("call", "calls off the meeting", "cancel"),
        ("turn", "turns the device off", "disable"),
        ("turn", "turns text into speech", "convert"),
        ("turn", "turns the page", None),
        ("log", "logs the customer out of all devices", "logout"),
        ("sign", "signs a customer up for the newsletter", "register"),
        ("log", "logs a visit", None),
        ("return", "returns settings to their default values", "restore"),
        ("return", "returns results to the caller", None),
        ("book", "books up", None),
        ("look", "looks", None),
    ],
)
def test_a_verb_and_its_particle_mean_one_verb(verb: str, text: str, expected: str | None) -> None:
    assert two_word_verb(verb, text.split(), 0) == expected
