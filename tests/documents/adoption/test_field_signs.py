"""Fields of an input that say that a call changes something."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.documents.adoption.evidence import change_signs, program_field

TEXT: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("expression", ""),
        ("code", ""),
        ("script", "Anything"),
        ("command", ""),
        ("python_code", ""),
        ("sql", "Read-only"),
        ("query", "The SQL query to run"),
        ("fn", "JavaScript function to evaluate"),
        ("input", "Code to be executed"),
    ],
)
def test_program_may_do_anything(name: str, description: str) -> None:
    assert program_field({name: {**TEXT, "description": description}}, "Only reads.", reads=False) == name


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("code", "ISO 3166 country code"),
        ("language_code", ""),
        ("expression", "cron expression"),
        ("query", "Words to search for"),
        ("statement", "Number of the bank statement"),
    ],
)
def test_ordinary_value_is_not_a_program(name: str, description: str) -> None:
    assert program_field({name: {**TEXT, "description": description}}, "", reads=False) == ""


def test_only_a_query_language_is_believed_to_read_if_text_and_hint_say_so() -> None:
    for name, found in (("sql", ""), ("script", "script")):
        assert program_field({name: TEXT}, "Runs it in read-only mode", reads=False, read_only=True) == found
    assert program_field({"sql": TEXT}, "Runs it in read-only mode", reads=False) == "sql"
    assert program_field({"sql": TEXT}, "Runs it", reads=False, read_only=True) == "sql"


def test_choice_of_an_action_is_a_sign() -> None:
    field = {"action": {"enum": ["get", "delete"]}}
    assert list(change_signs(field, reads=False)) == ["its field 'action' may be 'delete'"]
    # The filter of a GET names actions of others.
    assert list(change_signs(field, reads=True)) == []
    performed = {"action": {"enum": ["get", "delete"], "description": "The action to perform"}}
    assert list(change_signs(performed, reads=True)) == ["its field 'action' may be 'delete'"]


def test_choice_among_things_is_not_a_sign() -> None:
    assert list(change_signs({"method": {"enum": ["labels", "members"]}}, reads=False)) == []


def test_text_of_a_field_is_a_sign() -> None:
    field = {"purge": {"type": "boolean", "description": "If true, the note is deleted after reading."}}
    assert list(change_signs(field, reads=False)) == ["its field 'purge' says 'is deleted'"]
