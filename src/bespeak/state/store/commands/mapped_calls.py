"""History of mappings: how often calls that were understood through them succeeded and failed (IoA 7.2)."""

from __future__ import annotations

from typing import Final

import msgspec

from bespeak.state.store.command import Command, Statement, Steps

MOST_MAPPINGS: Final = 100_000
"""Mappings that are read at once, those with the most calls first."""


class MappedCalls(msgspec.Struct, frozen=True):
    """Calls through one mapping, in the direction in which it was used."""

    source: str
    target: str
    succeeded: int
    failed: int


class CountMappedCalls(Command, frozen=True):
    """Add calls to the history of mappings, each named once."""

    calls: tuple[MappedCalls, ...]

    def steps(self) -> Steps:
        """Return None."""
        # In one order everywhere, so that two processes never wait for each other's rows.
        for one in sorted(self.calls, key=lambda one: (one.source, one.target)):
            yield Statement(
                "INSERT INTO mapped_calls (source, target, succeeded, failed) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (source, target) DO UPDATE SET succeeded = mapped_calls.succeeded + excluded.succeeded, "
                "failed = mapped_calls.failed + excluded.failed",
                (one.source, one.target, one.succeeded, one.failed),
            )


class ListMappedCalls(Command, frozen=True):
    """List the history of mappings."""

    limit: int = MOST_MAPPINGS

    def steps(self) -> Steps:
        """Return MappedCalls."""
        rows = yield Statement(
            "SELECT source, target, succeeded, failed FROM mapped_calls "
            "ORDER BY succeeded + failed DESC, source, target LIMIT ?",
            (self.limit,),
        )
        return [MappedCalls(*row) for row in rows]
