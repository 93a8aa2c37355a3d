"""Paths, inputs and methods that the conformance run takes from a manifest."""

from __future__ import annotations

from typing import Any

import pytest
from tests.app.conformance.conftest import closed, endpoint
from tests.cases import rows

from bespeak.app.conformance.subject import (
    FORMS,
    InputForm,
    concrete_path,
    is_safe,
    matches,
    method_names,
    missing_path,
    required_fields,
    valid_input,
)

ROOM = endpoint("FETCH", "/rooms/{room_id}", input_schema=closed({"room_id": {"enum": ["a b"]}}, "room_id"))
WRITE = endpoint("RESERVE", "/rooms", impact="irreversible", input_schema=closed({"id": {"type": "string"}}, "id"))


@rows(
    "template, path, expected",
    ("/rooms", "/rooms", True),
    ("/rooms/{id}", "/rooms/7", True),
    ("/rooms/{id}", "/rooms", False),
    ("/{name}", "/", False),
    ("/rooms{", "/rooms{", False),
)
def test_template_covers_paths_of_its_length(template: str, path: str, expected: bool) -> None:
    assert bool(matches(template, path)) is expected


def test_missing_path_is_covered_by_no_template() -> None:
    taken = [endpoint("QUERY", "/{a}"), endpoint("QUERY", "/{a}/{b}")]
    assert missing_path(taken) == "/zz-no-such-thing" * 3


def test_path_parameters_have_a_sample_and_nothing_valid_is_sent_that_could_change_something() -> None:
    assert concrete_path(ROOM) == "/rooms/a%20b"
    assert valid_input(ROOM) == {}
    assert required_fields(ROOM) == []
    assert valid_input(WRITE) is None
    assert is_safe(WRITE)
    assert not is_safe(endpoint("RESERVE", "/rooms", impact="reversible"))


@pytest.mark.parametrize("listed", [["A", "B"], [{"name": "A"}, {"method": "B"}, 7, {}, None]])
def test_methods_are_listed_by_name_or_as_objects(listed: list[Any]) -> None:
    assert method_names(listed) == ["A", "B"]


def test_only_an_object_is_put_into_the_envelope_and_the_form_of_the_drafts_is_first() -> None:
    wrapped = InputForm(wrapped=True)
    assert wrapped.write({"a": 1}) == {"parameters": {"a": 1}}
    assert (wrapped.write([]), wrapped.write(None), InputForm().write({"a": 1})) == ([], None, {"a": 1})
    assert FORMS[0] == InputForm(wrapped=False, media="application/vnd.agtp+json")
    assert len(set(FORMS)) == len(FORMS)
