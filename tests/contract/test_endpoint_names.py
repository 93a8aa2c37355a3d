"""Program-friendly endpoint names: readable, unique, and independent of other endpoints."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.faces.mcp.tools import endpoint as tools_endpoint
from tests.service import echo, make_endpoint

from bespeak.checks.lint.rules.manifest import _ID
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.endpoint_names import (
    LONGEST,
    capability_id,
    capability_ids,
    default_tool_name,
    describe_tool,
    group_of,
    grouped,
    tool_names,
)


def endpoint(method: str, path: str, tool: str | None = None) -> Endpoint:
    made = make_endpoint(method, path, echo)
    return replace(made, semantic=replace(made.semantic, mcp_tool_name=tool))


@rows(
    "method, path, found",
    ("BOOK", "/room", "book_room"),
    ("BOOK", "/", "book"),
    ("SCHEDULE", "/calendar-event", "schedule_calendar_event"),
    ("SCHEDULE", "/calendar/event", "schedule_calendar__event"),
    ("FETCH", "/reservation/{reservation_id}", "fetch_reservation_by_reservation_id"),
    ("FETCH", "/reservation/{reservationId}", "fetch_reservation_by_reservation_id"),
    ("LIST", "/rooms/{id}/beds", "list_rooms_by_id__beds"),
    ("FETCH", "/{id}", "fetch_by_id"),
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


def test_valid_tool_name_is_used_as_id_and_kept_by_the_first_of_two() -> None:
    ids = capability_ids([endpoint("BOOK", "/room", "make_booking"), endpoint("FIND", "/room", "Find-Room")])
    assert list(ids.values()) == ["make_booking", "find_room"]
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


def test_endpoints_are_grouped_by_namespace_or_first_segment_and_the_largest_group_is_first() -> None:
    assert group_of(endpoint("FIND", "/{tenant}/Room_Types/x")) == "room-types"
    assert group_of(replace(endpoint("FIND", "/room"), namespace="Front Desk")) == "front-desk"
    assert group_of(endpoint("FIND", "/")) == "service"
    groups = grouped(make_endpoint("FIND", path, echo) for path in ("/beds", "/rooms", "/rooms/{id}", "/halls"))
    assert [(name, len(members)) for name, members in groups.items()] == [("rooms", 2), ("beds", 1), ("halls", 1)]


def named(*endpoints: Endpoint) -> list[str]:
    return tool_names(endpoints)


@pytest.mark.requirement("AGIS-C.2-1")
@rows(
    "method, path, name",
    ("BOOK", "/reservation", "book_reservation"),
    ("BOOK", "/patient-record/{id}", "book_patient_record"),
    ("FIND", "/{id}", "find_id"),
    ("FIND", "/", "find"),
)
def test_a_tool_is_named_by_method_and_first_segment(method: str, path: str, name: str) -> None:
    assert default_tool_name(method, path) == name


@pytest.mark.requirement("AGIS-C.2-1")
def test_declared_name_is_used_as_it_is_and_wins_over_an_earlier_default_name() -> None:
    assert named(tools_endpoint("BOOK", "/reservation", tool="make_reservation")) == ["make_reservation"]
    room, hall = named(tools_endpoint("BOOK", "/room"), tools_endpoint("BOOK", "/hall", tool="book_room"))
    assert hall == "book_room"
    assert room != "book_room"


def test_later_endpoint_names_its_whole_path_and_renames_no_other() -> None:
    first, second = tools_endpoint("FIND", "/rooms"), tools_endpoint("FIND", "/rooms/{room_id}/beds")
    assert named(first, second) == ["find_rooms", "find_rooms_by_room_id__beds"]
    before = [tools_endpoint("FIND", "/rooms"), tools_endpoint("FIND", "/rooms/{id}")]
    added = tools_endpoint("FIND", "/rooms/{id}/beds")
    assert named(*before, added)[:2] == named(*before)


@pytest.mark.parametrize("declared", ["has space", "x" * 65, "löschen", ""])
def test_a_declared_name_that_models_cannot_use_is_not_used(declared: str) -> None:
    assert named(tools_endpoint("BOOK", "/room", tool=declared)) == ["book_room"]


@given(st.lists(st.tuples(st.sampled_from(["FIND", "BOOK"]), st.text("ab-é{}/_", max_size=12))))
def test_names_are_unique_and_usable_by_models(pairs: list[tuple[str, str]]) -> None:
    names = tool_names([tools_endpoint(method, f"/{path}") for method, path in pairs])
    assert len(set(names)) == len(pairs)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)


@pytest.mark.requirement("AGIS-C.2-2", "AGIS-6.2-17")
def test_a_description_is_the_intent_then_the_outcome_and_the_hints() -> None:
    hints = {"party_size": ["number of guests", "for N people"], "when": "next Tuesday"}
    assert describe_tool(tools_endpoint("FIND", "/rooms", parameter_hints=hints), {}).split("\n") == [
        "Find rooms.",
        "Outcome: The rooms are returned.",
        "Hints: party_size = ['number of guests', 'for N people']; when = ['next Tuesday']",
    ]


@pytest.mark.parametrize(
    ("confirm", "line"),
    [(None, "It cannot be undone, so a person confirms it before it runs."), (False, "It cannot be undone.")],
)
def test_a_description_says_what_cannot_be_undone(confirm: bool | None, line: str) -> None:
    assert describe_tool(tools_endpoint("FIND", "/rooms", impact="irreversible", confirm=confirm), {}).endswith(line)


def test_a_deprecated_endpoint_names_its_successor_by_method_and_path_if_it_is_not_a_tool() -> None:
    old = Deprecation(deprecated_in="1.1", successor_method="QUERY")
    assert describe_tool(tools_endpoint("FIND", "/rooms", deprecated=old), {}).endswith(
        "Deprecated since 1.1. Use QUERY /rooms instead."
    )
