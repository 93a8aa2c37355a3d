"""Names of MCP tools: declared, by the rule of AGIS C.2, or from the whole path; never twice."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.faces.mcp.tools import endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import default_tool_name, tool_names


def named(*endpoints: Endpoint) -> list[str]:
    return tool_names(endpoints)


@pytest.mark.requirement("AGIS-C.2-1")
@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("BOOK", "/reservation", "book_reservation"),
        ("BOOK", "/patient-record/{id}", "book_patient_record"),
        ("FIND", "/{id}", "find_id"),
        ("FIND", "/", "find"),
    ],
)
def test_a_tool_is_named_by_method_and_first_segment(method: str, path: str, name: str) -> None:
    assert default_tool_name(method, path) == name


@pytest.mark.requirement("AGIS-C.2-1")
def test_a_declared_name_is_used_as_it_is() -> None:
    assert named(endpoint("BOOK", "/reservation", tool="make_reservation")) == ["make_reservation"]


def test_a_declared_name_wins_over_a_default_name_of_an_earlier_endpoint() -> None:
    room, hall = named(endpoint("BOOK", "/room"), endpoint("BOOK", "/hall", tool="book_room"))
    assert hall == "book_room"
    assert room != "book_room"


def test_the_earlier_endpoint_keeps_a_name_and_the_later_one_names_its_whole_path() -> None:
    first, second = endpoint("FIND", "/rooms"), endpoint("FIND", "/rooms/{room_id}/beds")
    assert named(first, second) == ["find_rooms", "find_rooms_by_room_id__beds"]


def test_an_endpoint_that_is_added_later_renames_no_other() -> None:
    before = [endpoint("FIND", "/rooms"), endpoint("FIND", "/rooms/{id}")]
    added = endpoint("FIND", "/rooms/{id}/beds")
    assert named(*before, added)[:2] == named(*before)


@pytest.mark.parametrize("declared", ["has space", "x" * 65, "löschen", ""])
def test_a_declared_name_that_models_cannot_use_is_not_used(declared: str) -> None:
    assert named(endpoint("BOOK", "/room", tool=declared)) == ["book_room"]


@given(st.lists(st.tuples(st.sampled_from(["FIND", "BOOK"]), st.text("ab-é{}/_", max_size=12))))
def test_names_are_unique_and_usable_by_models(pairs: list[tuple[str, str]]) -> None:
    names = tool_names([endpoint(method, f"/{path}") for method, path in pairs])
    assert len(set(names)) == len(pairs)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
