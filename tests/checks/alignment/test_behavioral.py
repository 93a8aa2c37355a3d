"""Behavior of capabilities: media types, schemas and history."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.alignment.terms import capability

from bespeak.checks.alignment.signals import History, behavioral


def fits(given_input: str, taken: str) -> float | None:
    return behavioral(capability("a:1", "one", (given_input,)), capability("b:1", "other", (taken,)))


@pytest.mark.parametrize(
    ("sent", "taken", "least", "most"),
    [
        ("text/plain", "text/plain; charset=utf-8", 1.0, 1.0),
        ("text/plain", "text/*", 0.9, 1.0),
        ("text/plain", "*/*", 0.9, 1.0),
        ("application/fhir+json", "application/json", 0.5, 0.8),
        ("text/plain", "text/html", 0.1, 0.5),
        ("image/png", "text/plain", 0.0, 0.0),
    ],
)
def test_media_types_are_compatible_in_the_direction_of_the_call(
    sent: str, taken: str, least: float, most: float
) -> None:
    value = fits(sent, taken)
    assert value is not None
    assert least <= value <= most


def schema(required: list[str], **types: str) -> str:
    properties = {name: {"type": kind} for name, kind in types.items()}
    return json.dumps({"type": "object", "properties": properties, "required": required})


def test_schema_fits_if_what_is_required_is_given_with_its_type() -> None:
    wanted = schema(["patient_id"], patient_id="string", note="string")
    assert fits(schema([], patientId="string"), wanted) == 1.0
    assert fits(schema([], patientId="integer"), wanted) == 0.0
    assert fits(schema([], other="string"), wanted) == 0.0
    assert fits(json.dumps({"type": "array"}), wanted) == 0.0


def test_output_must_be_what_callers_of_the_source_read() -> None:
    source = capability("a:1", "one", outputs=("text/*",))
    assert behavioral(source, capability("b:1", "other", outputs=("text/plain",))) == 0.95
    assert behavioral(source, capability("b:1", "other", outputs=("image/png",))) == 0.0


def test_without_declarations_there_is_no_opinion() -> None:
    assert behavioral(capability("a:1", "one"), capability("b:1", "other", ("text/plain",))) is None


def test_history_is_smoothed_and_grows_reliable() -> None:
    assert History(0, 0).rate == 0.5
    assert History(1, 0).rate < History(20, 0).rate < 1.0
    assert History(1, 0).reliability < 0.2
    assert History(20, 0).reliability > 0.7


@given(st.text(), st.text())
def test_any_declaration_has_a_value_between_0_and_1(one: str, other: str) -> None:
    value = fits(one, other)
    assert value is not None
    assert 0 <= value <= 1
