"""History of mappings for `bespeak semantic align` and `explain`, from the store of a service."""

from __future__ import annotations

import asyncio

from bespeak.app.cli.target_store import existing_place, use_store
from bespeak.checks.alignment.behavioral import Histories, History
from bespeak.state.store.commands.mapped_calls import ListMappedCalls, MappedCalls


def read_histories(place: str | None) -> Histories:
    """Return how calls through mappings have ended, in both directions together; nothing without a place."""
    if place is None:
        return {}
    rows: list[MappedCalls] = asyncio.run(use_store(existing_place(place), lambda store: store.read(ListMappedCalls())))
    found: dict[tuple[str, str], History] = {}
    for row in rows:
        # Terms that stand for each other do so whichever side has asked.
        for pair in ((row.source, row.target), (row.target, row.source)):
            known = found.get(pair, History(0, 0))
            found[pair] = History(known.succeeded + row.succeeded, known.failed + row.failed)
    return found
