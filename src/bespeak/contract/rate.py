"""Rate limits: a number of calls per time unit, and a burst."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bespeak.contract.rules import RATE_LIMIT
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.setting import setting
from bespeak.text.reading.table import Table

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


def parse_rate(text: str) -> Rate | str:
    """Parse `100/s` or `600/min burst 50`; return what is wrong with any other text."""
    found = _RATE.fullmatch(text)
    if found is None:
        return "it is not of the form COUNT/UNIT or COUNT/UNIT burst COUNT"
    unit = found[2]
    if unit not in SECONDS:
        return f"{unit!r} is not one of the units {', '.join(SECONDS)}"
    count, burst = int(found[1]), int(found[3] or found[1])
    if not (1 <= count <= MOST and 1 <= burst <= MOST):
        return f"its numbers must be 1 to {MOST}"
    return Rate(count, unit, burst)


def _read_rate(block: Table, key: str) -> Rate | None:
    text = block.text(key)
    rate = None if text is None else parse_rate(text)
    if isinstance(rate, str):
        advice = 'Write it like "100/s", "600/min" or "100/s burst 200".'
        block.findings.error(RATE_LIMIT, f"{brief(text)} is not a valid rate: {rate}", block.pointer(key), advice)
        return None
    return rate


def _read_endpoints(block: Table, key: str) -> dict[tuple[str, str], Rate] | None:
    inner = block.table(key)
    if inner is None:
        return None
    read = {endpoint: _read_rate(inner, name) for name, endpoint in inner.endpoints(RATE_LIMIT)}
    return {endpoint: rate for endpoint, rate in read.items() if rate is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """How often one caller may call (core 10.1): `100/s`, `600/min burst 50`."""

    agent: Rate | None = setting(None, "Each agent. Callers without an Agent-ID count by address.", read=_read_rate)
    principal: Rate | None = setting(None, "All agents of one principal together.", read=_read_rate)
    address: Rate | None = setting(None, "All connections of one host.", read=_read_rate, security=True)
    endpoints: Mapping[tuple[str, str], Rate] = setting(
        {},
        '`"METHOD /path" = RATE`: each agent at this endpoint, within its limit for the whole service.',
        kind="map",
        read=_read_endpoints,
    )

    def __bool__(self) -> bool:
        return bool(self.agent or self.principal or self.address or self.endpoints)
