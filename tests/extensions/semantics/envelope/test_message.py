"""Envelopes are found in messages."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from tests.extensions.semantics.envelope.payloads import odd
from tests.extensions.semantics.ontology.figures import FIGURE_5, FIGURE_8, FIGURE_9

from bespeak.contract.core_ontology import DEFAULT
from bespeak.extensions.semantics.envelope.reader import ClaimedValidation, parse
from bespeak.extensions.semantics.envelope.writer import find_payload, open_message


def test_envelope_is_a_member_or_the_message() -> None:
    carried = find_payload(FIGURE_8)
    assert (carried.payload, carried.path) == (FIGURE_8["semantic"], "/semantic")
    assert find_payload(FIGURE_5).payload is FIGURE_5
    assert find_payload([1]).payload == [1]


def test_validation_is_read_inside_the_envelope() -> None:
    rejected = ClaimedValidation("reject", "termBinding sense conflicts with domain")
    assert parse(find_payload(FIGURE_9).payload).validation == rejected


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


def in_parts(*parts: object) -> Any:
    """Find the payload in the parts of a message."""
    message = {"format": "text", "content": "x", "submessages": [*parts]}
    found = find_payload(message).payload
    return "nothing" if found is message else found


def test_figure_11_is_read() -> None:
    carried = find_payload(FIGURE_11)
    assert (carried.payload, carried.path) == (ENVELOPE, "")
    profile = parse(carried.payload).profile
    assert profile is not None
    assert profile.alignment_refs == ("https://ex.org/al",)


def test_small_letters_and_json_as_text_are_read_and_too_many_parts_are_not() -> None:
    part = {"label": "semprofile", "format": "structured", "subformat": "JSON", "content": json.dumps(ENVELOPE)}
    assert in_parts(part) == ENVELOPE
    assert in_parts(part, *[{}] * 99) == ENVELOPE
    assert in_parts(part, *[{}] * 100) == "nothing"


def test_envelope_without_its_label_is_found_if_it_is_the_only_one() -> None:
    part = {"format": "structured", "subformat": "json", "content": ENVELOPE}
    assert in_parts(part) == ENVELOPE
    assert in_parts(part, part) == "nothing"
    assert in_parts({**part, "label": "semprofile"}, part) == ENVELOPE


@given(odd)
def test_any_value_can_be_a_label_or_the_content_of_a_part(value: Any) -> None:
    envelope = {"Label": "semprofile", "Format": "structured", "Subformat": "json", "Content": ENVELOPE}
    parts = [envelope, {"Label": value, "Content": value}]
    opened = open_message({"Format": "text", "Content": value, "Submessages": parts}, {"required": ["x"]})
    assert opened is None or opened.envelope == ENVELOPE


@given(odd)
def test_any_value_can_be_searched(value: Any) -> None:
    for one in (value, {"format": value, "content": value, "submessages": [value, {"content": value}]}):
        assert find_payload(one).path in ("", "/semantic")
