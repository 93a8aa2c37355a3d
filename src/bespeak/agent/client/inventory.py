"""Short list of a server's endpoints: the reply to DISCOVER /methods in all its forms (AGTP-API 5.8)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.errors import RemoteProtocolError

_LISTS: Final = ("endpoints", "items", "methods")
"""Members that may hold the list if a server replies with an object: the reference implementation sends its whole
manifest to an anonymous caller, and an object with `items` to others.
"""


class InventoryEntry(msgspec.Struct, frozen=True):
    """Endpoint without its contract, which is in the manifest."""

    method: str
    path: str
    description: str


def parse_inventory(value: Any) -> list[InventoryEntry]:
    """Parse the reply to DISCOVER /methods. Raises RemoteProtocolError if it is not a list of endpoints."""
    listed = value
    if isinstance(value, dict):
        listed = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    if not isinstance(listed, list):
        raise RemoteProtocolError(f"The reply to DISCOVER /methods must be a list; got {type(value).__name__}.")
    return [
        InventoryEntry(method, str(item.get("path") or "/"), str(item.get("description") or ""))
        for item in listed
        if isinstance(item, dict) and isinstance(method := item.get("method") or item.get("name"), str)
    ]
