from __future__ import annotations

import pytest

from bespeak.contract.grammar.syntax import (
    foreign_parameter,
    hyphenated,
    is_name,
    is_parameter,
    meant_parameter,
    odd_character,
    parameter_name,
)


def test_a_name_is_lower_case_words_with_single_hyphens() -> None:
    assert [is_name(segment) for segment in ("room", "order-history", "v2")] == [True] * 3
    assert [is_name(segment) for segment in ("", "Room", "a--b", "-a", "a_b", "caf\u00e9")] == [False] * 6


@pytest.mark.parametrize("segment", ["patientRecord", "patient_record", "PatientRecord", "Patient-Record"])
def test_words_are_joined_by_hyphens(segment: str) -> None:
    assert hyphenated(segment) in ("patient-record", "patient--record")


def test_the_first_odd_character_is_named() -> None:
    assert odd_character("a b.c") == "a space"
    assert odd_character("caf\u00e9") == "'\u00e9'"
    assert "not between words" in odd_character("-a")


@pytest.mark.parametrize(
    ("segment", "exact", "foreign", "meant"),
    [
        ("{room_id}", "room_id", "", ""),
        (":room_id", "", "room_id", "room_id"),
        ("<int:room_id>", "", "room_id", "room_id"),
        ("{{room_id}}", "", "", "room_id"),
        ("{room-id}", "", "", "room_id"),
        ("[room_id]", "", "", "room_id"),
        ("room-{id}", "", "", ""),
    ],
)
def test_the_notation_of_a_parameter_is_recognised(segment: str, exact: str, foreign: str, meant: str) -> None:
    assert is_parameter(segment)
    assert (parameter_name(segment), foreign_parameter(segment)) == (exact, foreign)
    assert exact or meant_parameter(segment) == meant


def test_a_literal_is_not_a_parameter() -> None:
    assert not is_parameter("room")
