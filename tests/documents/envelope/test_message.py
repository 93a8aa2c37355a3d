"""Envelopes are found in messages, with a validation inside or beside them."""

from __future__ import annotations

from typing import Any

from tests.documents.ontology.figures import FIGURE_5, FIGURE_8, FIGURE_9

from bespeak.documents.envelope.message import find_payload, read_message
from bespeak.documents.envelope.reader import EnvelopeReader, Validation

READER = EnvelopeReader()
REJECTED = Validation("reject", "termBinding sense conflicts with domain")


def test_envelope_is_a_member_or_the_message_itself() -> None:
    carried = find_payload(FIGURE_8)
    assert (carried.payload, carried.path) == (FIGURE_8["semantic"], "/semantic")
    assert find_payload(FIGURE_5).payload is FIGURE_5
    assert find_payload([1]).payload == [1]


def test_validation_is_read_inside_and_beside_the_envelope() -> None:
    inside = FIGURE_9
    envelope = {name: value for name, value in FIGURE_9["semantic"].items() if name != "validation"}
    beside = {"semantic": envelope, "validation": FIGURE_9["semantic"]["validation"]}
    assert read_message(inside, READER).validation == REJECTED
    assert read_message(beside, READER).validation == REJECTED
    assert read_message(beside, READER).profile == read_message(inside, READER).profile


def test_validation_of_another_kind_beside_an_envelope_is_ignored() -> None:
    others: list[Any] = [7, {}, {"status": 7}]
    for other in others:
        assert read_message({"semantic": FIGURE_5, "validation": other}, READER).validation is None
    wrong = read_message({"semantic": FIGURE_5, "validation": {"status": "reject", "reason": 7}}, READER)
    assert wrong.validation == Validation("reject", "")
    assert read_message(None, READER).violations
