"""Light verbs and their objects."""

from __future__ import annotations

import pytest

from bespeak.text.language.phrases import meant_verb


@pytest.mark.parametrize(
    ("verb", "text", "expected"),
    [
        ("make", "makes a hotel reservation for two", ("reserve", 3)),
        ("submit", "submits a cancellation request", ("cancel", 2)),
        ("initiate", "initiates the refund of an order", ("refund", 2)),
        ("request", "requests details about a parcel", ("get", 1)),
        ("give", "gives back the list", None),
        ("take", "takes some items", None),
        ("submit", "submits a request", None),
        ("create", "creates a payment", None),
        ("make", "makes", None),
    ],
)
def test_object_of_a_light_verb_gives_the_verb(verb: str, text: str, expected: tuple[str, int] | None) -> None:
    assert meant_verb(verb, text.split(), 0) == expected
