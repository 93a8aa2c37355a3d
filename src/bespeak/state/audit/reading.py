"""Records and checkpoints as stored, and the parts of a record that can be read without verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.protocol.fault import Fault
from bespeak.state.audit.compact import parse_compact
from bespeak.state.audit.record import Place

if TYPE_CHECKING:
    from bespeak.state.identity.jws import Jws


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


_PLACE: Final = msgspec.json.Decoder(Place)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Any])


def place_in(jws: Jws) -> Place | None:
    """Return the place that a payload claims; None if it claims no place."""
    place = jws.read_payload(_PLACE)
    return None if isinstance(place, Fault) else place


def place_of(jws: str) -> Place | None:
    """Return the place that a record claims, without verifying its signature."""
    compact = parse_compact(jws)
    return None if compact is None else place_in(compact)


def payload_of(jws: str) -> dict[str, Any] | None:
    """Return the payload of a record, without verifying its signature."""
    compact = parse_compact(jws)
    if compact is None:
        return None
    payload = compact.read_payload(_MEMBERS)
    return None if isinstance(payload, Fault) else payload
