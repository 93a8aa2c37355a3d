"""Records and checkpoints as they are kept, and what can be read out of a record without believing it."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.state.audit.compact import Compact, parse_compact
from bespeak.state.audit.record import Place


class KeptRecord(msgspec.Struct, frozen=True, gc=False):
    """A row of the trail, in the order of the table's columns."""

    position: int
    stream: str
    sequence: int
    agent_id: str
    audit_id: str
    jws: str


class KeptCheckpoint(msgspec.Struct, frozen=True, gc=False):
    """A row of the checkpoints."""

    position: int
    checkpoint_id: str
    jws: str


_decode_place: Final = msgspec.json.Decoder(Place).decode


def place_in(compact: Compact) -> Place | None:
    """Where the record says that it stands; None for a payload that says nothing of it."""
    try:
        return _decode_place(compact.payload)
    except (ValueError, RecursionError):
        return None


def place_of(jws: str) -> Place | None:
    """Where a record says that it stands, its signature not looked at."""
    compact = parse_compact(jws)
    return None if compact is None else place_in(compact)


def payload_of(jws: str) -> dict[str, Any] | None:
    """Everything a record says, its signature not looked at."""
    compact = parse_compact(jws)
    if compact is None:
        return None
    try:
        payload = msgspec.json.decode(compact.payload)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None
