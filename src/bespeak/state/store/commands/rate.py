"""Token buckets that several processes share: each is kept as the moment at which it is full again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from bespeak.state.store.command import Command, Statement, Steps

_CHUNKS: Final = (64, 8, 1)
"""How many buckets one statement takes from: few sizes, so that a database prepares few statements."""


class BucketUse(msgspec.Struct, frozen=True):
    """What a process has taken from one bucket since it last said so."""

    name: str
    cost: float
    """Seconds in which the bucket refills what was taken."""
    elapsed: float = 0.0
    """Seconds since the first of it was taken: what has refilled in the meantime is not owed."""


class TakeTokens(Command, frozen=True):
    """Take what was used from buckets, each named once; by the seconds until each is full again.

    Nothing is refused: processes take first and tell then, and what was too much is owed.
    """

    uses: tuple[BucketUse, ...]

    def steps(self) -> Steps:
        """A dict from name to seconds; a bucket that is full has none or less."""
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
