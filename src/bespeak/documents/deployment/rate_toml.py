"""`[limits.rate]` of a bespeak.toml: how often agents, principals and addresses may call."""

from __future__ import annotations

from typing import Final

from bespeak.contract.rate import Rate, RateLimits, parse_rate
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.table import Table

_ADVICE: Final = 'Write it like "100/s", "600/min" or "100/s burst 200".'


def read_rate_limits(limits: Table) -> RateLimits:
    """The limits under `rate` in the table `limits`; what is not given has none."""
    block = limits.table("rate")
    if block is None:
        return RateLimits()
    endpoints = block.table("endpoints")
    found = RateLimits(
        agent=_read(block, "agent"),
        principal=_read(block, "principal"),
        address=_read(block, "address"),
        endpoints=_read_endpoints(endpoints) if endpoints else {},
    )
    block.finish()
    return found


def _read_endpoints(block: Table) -> dict[tuple[str, str], Rate]:
    """`"BOOK /room" = "10/min"`: a method and a path, then the rate of each agent there."""
    read = {key: _read(block, name) for name, key in block.endpoints("Y881")}
    return {key: rate for key, rate in read.items() if rate is not None}


def _read(block: Table, key: str) -> Rate | None:
    text = block.text(key)
    if text is None:
        return None
    rate = parse_rate(text)
    if isinstance(rate, str):
        block.findings.error("Y881", f"{brief(text)} is no rate: {rate}", block.pointer(key), _ADVICE)
        return None
    return rate
