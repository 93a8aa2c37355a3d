"""Entities that agents register: what is stored of each, and the chain of its owners."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.state.store.commands.records import Record

KIND: Final = "entity"
LIVE: Final = "live"
MOST_DATA: Final = 64 * 1024
"""Maximum bytes of the data of an entity."""
MOST_OWNED: Final = 10_000
"""Entities of one owner."""


class Handover(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of ownership."""

    transfer_id: str
    from_principal: str
    to_principal: str
    by: str
    """Agent that asked for it."""
    at: float
    reason: str | None = None


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of an entity."""

    entity_type: str
    data: Any
    owners: tuple[Handover, ...] = ()
    """All changes of ownership, the first one first."""

    def text(self) -> str:
        """Return the content as JSON."""
        return msgspec.json.encode(self).decode()


_decode = msgspec.json.Decoder(Entity).decode


def entity_of(record: Record) -> Entity:
    """Read the content of a record."""
    return _decode(record.data)
