"""Phrases without a verb."""

from __future__ import annotations

import pytest

from bespeak.text.language.phrases import nominal_verb


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("account creation", ("create", 1)),
        ("deletion of an order", ("delete", 0)),
        ("config update", ("update", 1)),
        ("details of an order", ("get", 0)),
        ("published articles", ("get", 1)),
        ("comment by id", ("get", 0)),
        ("batch operation for articles", None),
        ("organization", None),
        ("a user", None),
        ("frobs the status", None),
        ("", None),
    ],
)
def test_the_last_noun_of_the_first_phrase_decides(text: str, expected: tuple[str, int] | None) -> None:
    assert nominal_verb(text.split()) == expected
