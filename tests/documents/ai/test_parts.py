"""Capabilities in parts: each in exactly one, none too large, none unreachable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.documents.ai.document import MOST_CAPABILITIES, MOST_PARTS, EncodedCapability, Part, divide, fits, size_of


def leaves(parts: list[Part]) -> Iterator[Part]:
    for part in parts:
        yield from part.parts or (part,)


def entries(**groups: int) -> list[EncodedCapability]:
    return [
        EncodedCapability(group, f"{group}{number}".encode())
        for group, count in groups.items()
        for number in range(count)
    ]


def test_a_group_is_a_part_and_a_large_one_several() -> None:
    parts = divide(entries(rooms=250, stays=3), room=60_000)
    assert [(part.name, len(part.entries)) for part in parts] == [
        ("rooms", 100),
        ("rooms-2", 100),
        ("rooms-3", 50),
        ("stays", 3),
    ]


def test_taken_group_name_is_not_used_again() -> None:
    parts = divide(entries(rooms=150, **{"rooms-2": 1}), room=60_000)
    assert [part.name for part in parts] == ["rooms", "rooms-3", "rooms-2"]


def test_small_neighbours_share_a_part_if_there_are_too_many() -> None:
    parts = divide([EncodedCapability(f"g{number:03}", b"x") for number in range(500)], room=60_000)
    assert [part.name for part in parts] == [
        "g000-to-g099",
        "g100-to-g199",
        "g200-to-g299",
        "g300-to-g399",
        "g400-to-g499",
    ]


def test_neighbours_that_share_a_part_do_not_take_the_name_of_a_third() -> None:
    large = {f"g{number:02}": 60 for number in range(MOST_PARTS - 2)}
    parts = divide(entries(a=1, **{"a-b": 1, "a-to-a-b": 100}, **large), room=60_000)
    assert [part.name for part in parts][:3] == ["a-to-a-b", "a-to-a-b-2", "g00"]


def test_too_many_parts_are_nested_in_index_parts() -> None:
    parts = divide([EncodedCapability(f"g{number}", b"x" * 100) for number in range(2_000)], room=1_100)
    assert len(parts) == 3
    assert all(part.parts and len(part.parts) <= MOST_PARTS and not part.entries for part in parts)


@pytest.mark.parametrize(("count", "room", "fitting"), [(100, 1000, True), (101, 1000, False), (100, 399, False)])
def test_capabilities_and_bytes_of_one_document_are_limited(count: int, room: int, fitting: bool) -> None:
    assert fits([EncodedCapability("g", b"abc")] * count, room) is fitting


@given(st.lists(st.tuples(st.sampled_from("abcdef") | st.text("ab-2", max_size=4), st.integers(1, 300)), max_size=400))
def test_every_entry_is_in_exactly_one_part_and_names_are_unique(given: list[tuple[str, int]]) -> None:
    listed = [
        EncodedCapability(group, f"{number}:".encode() + b"x" * size) for number, (group, size) in enumerate(given)
    ]
    parts = divide(listed, room=1000)
    found = [entry for part in leaves(parts) for entry in part.entries]
    assert sorted(entry.encoded for entry in found) == sorted(entry.encoded for entry in listed)
    assert all(len(part.entries) <= MOST_CAPABILITIES and size_of(part.entries) <= 1000 for part in leaves(parts))
    names = [part.name for part in leaves(parts)] + [part.name for part in parts if part.parts]
    assert len(set(names)) == len(names)
    assert len(parts) <= MOST_PARTS
