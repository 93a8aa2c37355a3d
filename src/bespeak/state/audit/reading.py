"""Records and checkpoints as stored, and the parts of a record that can be read without verification."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.state.audit.compact import Compact, parse_compact
from bespeak.state.audit.record import Place
from bespeak.text.reading.json_data import decode_json


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
    """Return the place that a payload claims; None if it claims no place."""
    try:
        return _decode_place(compact.payload)
    except (ValueError, RecursionError):
        return None


def place_of(jws: str) -> Place | None:
    """Return the place that a record claims, without verifying its signature."""
    compact = parse_compact(jws)
    return None if compact is None else place_in(compact)


def payload_of(jws: str) -> dict[str, Any] | None:
    """Return the payload of a record, without verifying its signature."""
    compact = parse_compact(jws)
    if compact is None:
        return None
    try:
        payload = decode_json(compact.payload)
    except (ValueError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None
