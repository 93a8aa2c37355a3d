"""DISCOVER /methods in the forms servers answer it."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.agent.client.reply import InventoryEntry, parse_inventory
from bespeak.errors import RemoteProtocolError

ENTRY = {"method": "BOOK", "path": "/room", "description": "Book a room."}
READ = [InventoryEntry("BOOK", "/room", "Book a room.")]


@pytest.mark.parametrize(
    "answer",
    [
        [ENTRY],
        {"items": [ENTRY], "item_count": 1},
        {"methods": [ENTRY]},
        {"agtp_version": "1.0", "endpoints": [{**ENTRY, "semantic": {}}], "methods": "x"},
        [ENTRY, 7, {"path": "/no-method"}],
    ],
)
def test_every_form_is_read(answer: Any) -> None:
    assert parse_inventory(answer) == READ


def test_a_method_without_a_path_is_at_the_root() -> None:
    assert parse_inventory([{"name": "QUERY"}]) == [InventoryEntry("QUERY", "/", "")]


@pytest.mark.parametrize("answer", [{}, {"items": 3}, "x", None, 7])
def test_anything_else_is_a_fault_of_the_peer(answer: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        parse_inventory(answer)
