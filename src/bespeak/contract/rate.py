"""Rate limits: a number of calls per time unit, and a burst."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SECONDS: Final[Mapping[str, int]] = {"s": 1, "min": 60, "h": 3600, "day": 86400}
"""Time units of a rate, in seconds."""

MOST: Final = 1_000_000
"""Largest number in a rate: beyond it the interval between calls is lost to rounding."""

_RATE: Final = re.compile(r"\s*([0-9]{1,9})\s*/\s*([a-z]{1,8})(?:\s+burst\s+([0-9]{1,9}))?\s*")


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` calls for each `unit` of time, `burst` of them at once after a pause."""

    count: int
    unit: str
    burst: int

    @property
    def interval(self) -> int:
        """Nanoseconds between two calls at the steady rate, rounded up so that the limit is never exceeded."""
        return -(-SECONDS[self.unit] * 1_000_000_000 // self.count)

    def __str__(self) -> str:
        return f"{self.count}/{self.unit}" + (f" burst {self.burst}" if self.burst != self.count else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """The limits of a service (core 10.1); None for no limit."""

    agent: Rate | None = None
    """Limit for each agent; callers without an Agent-ID count by address."""
    principal: Rate | None = None
    """Limit for all agents of one principal together."""
    address: Rate | None = None
    """Limit for all connections of one host."""
    endpoints: Mapping[tuple[str, str], Rate] = field(default_factory=dict)
    """Limit for each agent at one endpoint, within its limit for the whole service."""

    def __bool__(self) -> bool:
        return bool(self.agent or self.principal or self.address or self.endpoints)


def parse_rate(text: str) -> Rate | str:
    """Parse a rate, `100/s` or `600/min burst 50`, or return what is wrong with it."""
    found = _RATE.fullmatch(text)
    if found is None:
        return "it is not of the form COUNT/UNIT or COUNT/UNIT burst COUNT"
    unit = found[2]
    if unit not in SECONDS:
        return f"{unit!r} is none of the times {', '.join(SECONDS)}"
    count, burst = int(found[1]), int(found[3] or found[1])
    if not (1 <= count <= MOST and 1 <= burst <= MOST):
        return f"its numbers go from 1 to {MOST}"
    return Rate(count, unit, burst)
