"""Names in an OpenAPI document."""

from __future__ import annotations

import pytest

from bespeak.documents.projections.openapi.schemas import component_name, type_name, unique_in


@pytest.mark.parametrize(
    ("text", "name"), [("Guest", "Guest"), ("a.b-c_d", "a.b-c_d"), ("Wäsche /", "W_sche"), ("日本", "schema")]
)
def test_a_component_has_a_name_that_openapi_allows(text: str, name: str) -> None:
    assert component_name(text) == name


def test_the_type_of_an_operation_is_its_id_in_capitals() -> None:
    assert type_name("book_room_by_room_id__bed") == "BookRoomByRoomIdBed"


def test_a_name_that_is_taken_gets_a_number() -> None:
    assert unique_in({}, "A") == "A"
    assert unique_in({"A": 1, "A2": 1}, "A") == "A3"
