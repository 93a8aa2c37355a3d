"""Token buckets shared by several processes, each stored as the time at which it is full again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from bespeak.state.store.command import Command, Statement, Steps

_CHUNKS: Final = (64, 8, 1)
"""Numbers of buckets in one statement: few sizes, so that a database prepares few statements."""


class BucketUse(msgspec.Struct, frozen=True):
    """Tokens that a process has taken from one bucket since its last report."""

    name: str
    cost: float
    """Seconds in which the bucket refills what was taken."""
    elapsed: float = 0.0
    """Seconds since the first token was taken; the refill of that time is not owed."""


class TakeTokens(Command, frozen=True):
    """Take used tokens from buckets, each named once.

    Nothing is refused: processes take first and report later, and an overdraft is owed.
    """

    uses: tuple[BucketUse, ...]

    def steps(self) -> Steps:
        """Return a dict from name to the seconds until the bucket is full; 0 or less if it is full."""
        found: dict[str, float] = {}
        # In one order everywhere, so that two processes never wait for each other's rows.
        uses = sorted(self.uses, key=lambda use: use.name)
        while uses:
            size = next(chunk for chunk in _CHUNKS if chunk <= len(uses))
            found.update((yield _take(uses[:size])))
            del uses[:size]
        return found


def _take(uses: Sequence[BucketUse]) -> Statement:
    row = "(CAST(? AS TEXT), CAST(? AS DOUBLE PRECISION), CAST(? AS DOUBLE PRECISION))"
    return Statement(
        f"WITH used (name, cost, elapsed) AS (VALUES {', '.join([row] * len(uses))}) "
        "INSERT INTO buckets (name, expires) SELECT name, {now} - elapsed + cost FROM used WHERE true "
        "ON CONFLICT (name) DO UPDATE SET expires = (SELECT CASE WHEN buckets.expires + used.cost > excluded.expires "
        "THEN buckets.expires + used.cost ELSE excluded.expires END FROM used WHERE used.name = buckets.name) "
        "RETURNING name, expires - {now}",
        tuple(value for use in uses for value in (use.name, use.cost, use.elapsed)),
    )
