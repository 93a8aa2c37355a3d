"""Envelopes are found in messages, with a validation inside or beside them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from tests.extensions.semantics.envelope.payloads import odd
from tests.extensions.semantics.ontology.figures import FIGURE_5, FIGURE_8, FIGURE_9

from bespeak.contract.core_ontology import DEFAULT
from bespeak.extensions.semantics.envelope.reader import ClaimedValidation, EnvelopeReader, parse
from bespeak.extensions.semantics.envelope.writer import (
    find_payload,
    read_message,
    read_nlip,
)

READER = EnvelopeReader()
REJECTED = ClaimedValidation("reject", "termBinding sense conflicts with domain")


def test_envelope_is_a_member_or_the_message_and_other_validations_beside_it_are_ignored() -> None:
    carried = find_payload(FIGURE_8)
    assert (carried.payload, carried.path) == (FIGURE_8["semantic"], "/semantic")
    assert find_payload(FIGURE_5).payload is FIGURE_5
    assert find_payload([1]).payload == [1]
    others: list[Any] = [7, {}, {"status": 7}]
    for other in others:
        assert read_message({"semantic": FIGURE_5, "validation": other}, READER).validation is None
    wrong = read_message({"semantic": FIGURE_5, "validation": {"status": "reject", "reason": 7}}, READER)
    assert wrong.validation == ClaimedValidation("reject", "")
    assert read_message(None, READER).violations


def test_validation_is_read_inside_and_beside_the_envelope() -> None:
    inside = FIGURE_9
    envelope = {name: value for name, value in FIGURE_9["semantic"].items() if name != "validation"}
    beside = {"semantic": envelope, "validation": FIGURE_9["semantic"]["validation"]}
    assert read_message(inside, READER).validation == REJECTED
    assert read_message(beside, READER).validation == REJECTED
    assert read_message(beside, READER).profile == read_message(inside, READER).profile


ENVELOPE = {
    # The draft abbreviates the address of the context.
    "@context": [DEFAULT.context, {"cs": "https://ex.org/cs#"}],
    "type": "ioa:SemanticProfile",
    "ontologyId": "https://ex.org/core",
    "ontologyVersion": "1.0",
    "capabilityRefs": ["cs:TechTrans"],
    "intentRef": "cs:TranslateDoc",
    "alignmentRef": "https://ex.org/al",
}
FIGURE_11: dict[str, Any] = {
    "MessageType": "Request",
    "Format": "text",
    "Subformat": "en",
    "Content": "Translate the attached note into English.",
    "Submessages": [
        {"Label": "src-doc", "Format": "binary", "Subformat": "application/pdf", "Content": "<pdf>"},
        {"Label": "semprofile", "Format": "structured", "Subformat": "json", "Content": ENVELOPE},
    ],
}


def test_figure_11_is_read() -> None:
    message = read_nlip(FIGURE_11)
    assert message.content == "Translate the attached note into English."
    assert [part.label for part in message.parts] == ["src-doc", "semprofile"]
    assert message.envelope == ENVELOPE
    profile = parse(message.envelope).profile
    assert profile.alignment_refs == ("https://ex.org/al",)
    assert find_payload(FIGURE_11).payload == ENVELOPE


def test_small_letters_and_json_as_text_are_read_and_too_many_parts_are_not() -> None:
    part = {"label": "semprofile", "format": "structured", "subformat": "JSON", "content": json.dumps(ENVELOPE)}
    message = read_nlip({"format": "text", "content": "x", "submessages": [part]})
    assert message.envelope == ENVELOPE
    assert read_nlip({"format": "text", "content": "x", "submessages": [{}] * 101}) is None


def test_envelope_without_its_label_is_found_if_it_is_the_only_one() -> None:
    part = {"format": "structured", "subformat": "json", "content": ENVELOPE}
    one = read_nlip({"format": "text", "content": "x", "submessages": [part]})
    two = read_nlip({"format": "text", "content": "x", "submessages": [part, part]})
    assert one.envelope == ENVELOPE
    assert two.envelope is None


@given(odd)
def test_any_value_is_a_message_or_none(value: Any) -> None:
    for one in (value, {"format": value, "content": value, "submessages": [value, {"content": value}]}):
        message = read_nlip(one)
        assert message is None or message.content == one["content"]
