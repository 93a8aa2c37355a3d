"""The content of an entity is read as it was written, with all its owners."""

from __future__ import annotations

import msgspec

from bespeak.extensions.entities.methods import Entity, Handover


def test_an_entity_is_read_as_it_was_written() -> None:
    entity = Entity("contract", {"a": [1]}, (Handover("tr-1", "ann", "bob", "agent", 5.0, "sold"),))
    assert msgspec.json.decode(entity.text(), type=Entity) == entity
