"""Program-friendly endpoint names: readable, unique, and independent of other endpoints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.service import echo, make_endpoint

from bespeak.checks.lint.rules.ai_discovery import _ID
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import LONGEST, capability_id, capability_ids, group_of, grouped


def endpoint(method: str, path: str, tool: str | None = None) -> Endpoint:
    made = make_endpoint(method, path, echo)
    return replace(made, semantic=replace(made.semantic, mcp_tool_name=tool))


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("BOOK", "/room", "book_room"),
        ("BOOK", "/", "book"),
        ("SCHEDULE", "/calendar-event", "schedule_calendar_event"),
        ("SCHEDULE", "/calendar/event", "schedule_calendar__event"),
        ("FETCH", "/reservation/{reservation_id}", "fetch_reservation_by_reservation_id"),
        ("FETCH", "/reservation/{reservationId}", "fetch_reservation_by_reservation_id"),
        ("LIST", "/rooms/{id}/beds", "list_rooms_by_id__beds"),
        ("FETCH", "/{id}", "fetch_by_id"),
    ],
)
def test_an_id_is_made_of_verb_and_path(method: str, path: str, found: str) -> None:
    assert capability_id(endpoint(method, path)) == found


@pytest.mark.parametrize(
    "path", ["/Room", "/room_type", "/sort/by/name", "/sort-by-name", "/räume", "/" + "long-" * 30 + "x"]
)
def test_path_of_other_words_gets_a_digest(path: str) -> None:
    found = capability_id(endpoint("FIND", path))
    assert found.startswith("find_")
    assert len(found.rpartition("_")[2]) == 8
    assert _ID.fullmatch(found)
    assert len(found) <= LONGEST


def test_tool_name_is_used_if_it_is_a_valid_id() -> None:
    ids = capability_ids([endpoint("BOOK", "/room", "make_booking"), endpoint("FIND", "/room", "Find-Room")])
    assert list(ids.values()) == ["make_booking", "find_room"]


def test_of_two_with_one_tool_name_the_first_keeps_it() -> None:
    first, second = endpoint("BOOK", "/room", "book"), endpoint("BOOK", "/table", "book")
    assert capability_ids([first])[first.key] == capability_ids([first, second])[first.key] == "book"
    assert capability_ids([first, second])[second.key].startswith("book_")


SEGMENTS = st.from_regex(r"[a-z0-9]{1,3}(-[a-z0-9]{1,3}){0,2}|\{[a-z_]{1,4}\}|[A-Za-z_.~%]{1,3}|by|id", fullmatch=True)
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


def shape(path: str) -> tuple[str, ...]:
    return tuple("{}" if part.startswith("{") else part for part in path.split("/"))


@pytest.mark.requirement("AI-3.3-3", "AI-3.3-4")
@given(st.lists(PATHS, unique_by=shape, max_size=12), st.data())
def test_ids_are_unique_and_no_endpoint_changes_the_id_of_another(paths: list[str], data: st.DataObject) -> None:
    endpoints = [endpoint("FIND", path) for path in paths]
    ids = capability_ids(endpoints)
    assert len(set(ids.values())) == len(paths)
    assert all(_ID.fullmatch(found) and len(found) <= LONGEST for found in ids.values())
    fewer = data.draw(st.permutations(endpoints))[: len(paths) // 2]
    assert capability_ids(fewer).items() <= ids.items()


def test_endpoints_are_grouped_by_namespace_or_first_segment() -> None:
    assert group_of(endpoint("FIND", "/{tenant}/Room_Types/x")) == "room-types"
    assert group_of(replace(endpoint("FIND", "/room"), namespace="Front Desk")) == "front-desk"
    assert group_of(endpoint("FIND", "/")) == "service"


def test_the_largest_group_comes_first() -> None:
    groups = grouped(make_endpoint("FIND", path, echo) for path in ("/beds", "/rooms", "/rooms/{id}", "/halls"))
    assert [(name, len(members)) for name, members in groups.items()] == [("rooms", 2), ("beds", 1), ("halls", 1)]
