"""Reading /.well-known/ai documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.documents.ai.document import (
    MOST_CAPABILITIES,
    MOST_PARTS,
    AiDocument,
    EncodedCapability,
    Part,
    consume_ai,
    divide,
    fits,
    read_ai,
    size_of,
)
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import Location

FLIGHTS: dict[str, Any] = {
    "aiendpoint": "1.0",
    "service": {"name": "Flights", "description": "Finds flights.", "category": ["travel"], "language": ["en"]},
    "capabilities": [
        {
            "id": "search_flights",
            "description": "Search flights between two airports",
            "endpoint": "/api/flights",
            "method": "GET",
            "params": {"from": "string, required -- airport code"},
            "returns": "flights[] {id, price}",
        }
    ],
    "auth": {"type": "apikey", "header": "X-API-Key", "docs": "https://flights.example/auth"},
    "token_hints": {"compact_mode": True},
    "rate_limits": {"requests_per_minute": 60, "agent_tier_available": False},
    "meta": {"last_updated": "2026-11-15"},
}


def read(data: dict[str, Any]) -> tuple[AiDocument, list[str]]:
    tree = parse_json(json.dumps(data), "ai.json")
    root = Table(tree.data, "", Findings(tree.locate))
    return read_ai(root), [f"{finding.rule} {finding.pointer}" for finding in root.findings.found]


def test_a_complete_document_is_read_field_by_field() -> None:
    document, found = read(FLIGHTS)
    assert found == []
    assert (document.name, document.auth_type, document.requests_per_minute) == ("Flights", "apikey", 60)
    [capability] = document.capabilities
    assert (capability.id, capability.method, capability.at) == ("search_flights", "GET", "/capabilities/0")
    assert (document.token_hints, document.meta) == ({"compact_mode": True}, {"last_updated": "2026-11-15"})


@pytest.mark.parametrize("key", ["aiendpoint", "service", "capabilities"])
def test_a_missing_required_member_is_found(key: str) -> None:
    _, found = read({name: value for name, value in FLIGHTS.items() if name != key})
    assert found == ["D103 "]


@pytest.mark.parametrize("key", ["id", "description", "endpoint", "method"])
def test_a_capability_without_a_required_member_is_found(key: str) -> None:
    [capability] = FLIGHTS["capabilities"]
    entry = {name: value for name, value in capability.items() if name != key}
    _, found = read({**FLIGHTS, "capabilities": [entry]})
    assert found == ["D103 /capabilities/0"]


@rows(
    "change, expected",
    ({"capabilities": []}, "D104 /capabilities"),
    ({"capabilities": {}}, "D104 /capabilities"),
    ({"capabilities": [{**FLIGHTS["capabilities"][0], "method": "FETCH"}]}, "D106 /capabilities/0/method"),
    ({"service": "Flights"}, "D104 /service"),
    ({"auth": {"type": "api_key"}}, "D106 /auth/type"),
    ({"auth": {}}, "D103 /auth"),
    ({"auth": {"type": "none", "secret": "x"}}, "D105 /auth/secret"),
    ({"token_hints": {"compact_mode": "yes"}}, "D104 /token_hints/compact_mode"),
    ({"rate_limits": {"requests_per_minute": 0}}, "D104 /rate_limits/requests_per_minute"),
    ({"meta": {"github": "x"}}, "D105 /meta/github"),
)
def test_wrong_values_are_reported_with_their_location(change: dict[str, Any], expected: str) -> None:
    _, found = read({**FLIGHTS, **change})
    assert found == [expected]


def consume(data: dict[str, Any], most: int | None = 100) -> tuple[AiDocument | None, list[str]]:
    root = Table(data, "", Findings(lambda _: Location("ai"), tolerant=True))
    return consume_ai(root, most=most), [finding.rule for finding in root.findings.found]


def test_consumer_accepts_unknown_members_and_skips_unusable_capabilities() -> None:
    document, found = consume({**FLIGHTS, "aiendpoint": "9.0", "new": 1, "meta": {"webmcp": 1}})
    assert (document.name, len(document.capabilities), found) == ("Flights", 1, [])
    [entry] = FLIGHTS["capabilities"]
    document, found = consume({**FLIGHTS, "capabilities": [{**entry, "id": "Ä"}, entry, entry, 7]})
    assert [capability.id for capability in document.capabilities] == ["search_flights"]
    assert found.count("W106") == 2


@pytest.mark.requirement("AI-4.3-5")
@pytest.mark.parametrize("key", ["aiendpoint", "service", "capabilities"])
def test_missing_required_member_makes_a_document_unusable(key: str) -> None:
    document, _ = consume({name: value for name, value in FLIGHTS.items() if name != key})
    assert document is None


@pytest.mark.requirement("AI-6.5-2")
def test_long_texts_are_cut_by_consumers() -> None:
    [entry] = FLIGHTS["capabilities"]
    params = {f"p{n}": "x" * 9999 for n in range(500)}
    long = {**entry, "description": "d" * 999, "returns": "r" * 999, "params": params}
    service = {"name": "n" * 999, "description": "d" * 999, "category": ["c" * 999] * 500}
    document, _ = consume({**FLIGHTS, "service": service, "capabilities": [long]})
    [capability] = document.capabilities
    assert (len(document.name), len(document.description), len(document.category)) == (100, 300, 100)
    assert (len(capability.description), len(capability.returns or ""), len(capability.params)) == (200, 300, 100)
    assert max(map(len, capability.params.values())) == 500


def test_number_of_capabilities_is_limited_on_request() -> None:
    [entry] = FLIGHTS["capabilities"]
    many = {**FLIGHTS, "capabilities": [{**entry, "id": f"c{number}"} for number in range(150)]}
    for most, count in ((100, 100), (None, 150), (150, 150)):
        document, found = consume(many, most)
        assert len(document.capabilities) == count
        assert ("W107" in found) is (count < 150)


def leaves(parts: list[Part]) -> Iterator[Part]:
    for part in parts:
        yield from part.parts or (part,)


def entries(**groups: int) -> list[EncodedCapability]:
    named = ((group, number) for group, count in groups.items() for number in range(count))
    return [EncodedCapability(group, f"{group}{number}".encode()) for group, number in named]


def test_large_group_becomes_several_parts_with_names_of_their_own() -> None:
    parts = divide(entries(rooms=250, stays=3), room=60_000)
    sizes = {part.name: len(part.entries) for part in parts}
    assert sizes == {"rooms": 100, "rooms-2": 100, "rooms-3": 50, "stays": 3}
    parts = divide(entries(rooms=150, **{"rooms-2": 1}), room=60_000)
    assert [part.name for part in parts] == ["rooms", "rooms-3", "rooms-2"]


def test_too_many_parts_are_joined_without_name_clashes_or_nested_in_index_parts() -> None:
    parts = divide([EncodedCapability(f"g{number:03}", b"x") for number in range(500)], room=60_000)
    assert [part.name for part in parts] == [f"g{hundred}00-to-g{hundred}99" for hundred in range(5)]
    large = {f"g{number:02}": 60 for number in range(MOST_PARTS - 2)}
    parts = divide(entries(a=1, **{"a-b": 1, "a-to-a-b": 100}, **large), room=60_000)
    assert [part.name for part in parts][:3] == ["a-to-a-b", "a-to-a-b-2", "g00"]
    parts = divide([EncodedCapability(f"g{number}", b"x" * 100) for number in range(2_000)], room=1_100)
    assert len(parts) == 3
    assert all(part.parts and len(part.parts) <= MOST_PARTS and not part.entries for part in parts)


@pytest.mark.parametrize(("count", "room", "fitting"), [(100, 1000, True), (101, 1000, False), (100, 399, False)])
def test_capabilities_and_bytes_of_one_document_are_limited(count: int, room: int, fitting: bool) -> None:
    assert fits([EncodedCapability("g", b"abc")] * count, room) is fitting


@given(st.lists(st.tuples(st.sampled_from("abcdef") | st.text("ab-2", max_size=4), st.integers(1, 300)), max_size=400))
def test_every_entry_is_in_exactly_one_part_and_names_are_unique(given: list[tuple[str, int]]) -> None:
    listed = [EncodedCapability(group, f"{at}:".encode() + b"x" * size) for at, (group, size) in enumerate(given)]
    parts = divide(listed, room=1000)
    found = [entry for part in leaves(parts) for entry in part.entries]
    assert sorted(entry.encoded for entry in found) == sorted(entry.encoded for entry in listed)
    assert all(len(part.entries) <= MOST_CAPABILITIES and size_of(part.entries) <= 1000 for part in leaves(parts))
    names = [part.name for part in leaves(parts)] + [part.name for part in parts if part.parts]
    assert len(set(names)) == len(names)
    assert len(parts) <= MOST_PARTS
