"""Limits of calls: what one may cost, how many may be made, and durations as agents write them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from bespeak.contract.rules import RATE_LIMIT
from bespeak.protocol.exchange.header_values import ONE_CALL, UNITS, format_amount, format_budget, parse_amount
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.settings import setting
from bespeak.text.reading.table import Table


@dataclass(frozen=True, slots=True)
class Cost:
    """Amounts by unit, in the order of declaration."""

    amounts: Mapping[str, Decimal]

    def to_json(self) -> dict[str, int | str]:
        """Write the block of a manifest: whole numbers as numbers, others as text, so that no reader rounds them."""
        return {
            unit: format_amount(unit, amount) if UNITS[unit] else int(amount) for unit, amount in self.amounts.items()
        }

    def __str__(self) -> str:
        """Write the value of the header Cost-Estimate."""
        return format_budget(self.amounts)


def read_cost(declared: Mapping[str, object]) -> tuple[Cost | None, list[Fault]]:
    """Read a declared cost, `{"tokens": 500, "USD": "0.02"}`, and its faults; None if nothing is declared."""
    amounts: dict[str, Decimal] = {}
    faults: list[Fault] = []
    for unit, value in declared.items():
        amount = _read(unit, value)
        if isinstance(amount, str):
            faults.append(Fault(amount, unit))
        else:
            amounts[unit] = amount
    return Cost(amounts) if amounts and not faults else None, faults


def _read(unit: str, value: object) -> Decimal | str:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return f"the cost in {brief(unit)} must be a number; got {brief(value)}"
    # The shortest text of the float is what its author wrote: 0.02, not 0.0200000000000000004.
    amount = parse_amount(unit, value if isinstance(value, str) else _digits(value))
    if isinstance(amount, Decimal) and unit == "calls" and amount < ONE_CALL:
        return "the cost in 'calls' must be at least 1"
    return amount


def _digits(value: float | Decimal) -> str:
    try:
        return str(value)
    except ValueError:  # an integer with more digits than Python converts
        return "a number with too many digits"


SECONDS: Final[Mapping[str, int]] = {"s": 1, "min": 60, "h": 3600, "day": 86400}  # time units of a rate, in seconds
MOST: Final = 1_000_000  # largest number in a rate: beyond it the interval between calls is lost to rounding
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Handlers that yield: how long and how large a stream may be, and an answer that is not streamed."""

    seconds: float = setting(
        300.0,
        "Seconds from the call to the end of its last item, the time of a slow reader included.",
        kind="seconds",
        read=Table.positive,
        security=True,
    )
    max_item: int = setting(262_144, "Bytes of one item.", kind="count", security=True)
    max_items: int = setting(
        1000, "Items of an answer that is not streamed; with more, the caller must ask for a stream.", security=True
    )
    max_bytes: int = setting(
        1_048_576,
        "Bytes of an answer that is not streamed; with more, the caller must ask for a stream.",
        security=True,
    )


_UNITS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_SHORT: Final = re.compile(r"([0-9]{1,9})([smhd])")
# ISO 8601 4.4.3.2, without months and years, whose length depends on where they begin.
_ISO: Final = re.compile(
    r"P(?:(?P<w>[0-9]{1,9})W|(?:(?P<d>[0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:(?P<h>[0-9]{1,9})H)?(?:(?P<m>[0-9]{1,9})M)?(?:(?P<s>[0-9]{1,9})S)?)?)"
)


def read_duration(text: str) -> int | None:
    """Parse a duration into seconds; return None if it is not valid or not positive."""
    short = _SHORT.fullmatch(text)
    if short is not None:
        return int(short[1]) * _UNITS[short[2]] or None
    parts = _ISO.fullmatch(text)
    if parts is None:
        return None
    named = {unit: int(number) for unit, number in parts.groupdict().items() if number is not None}
    return sum(number * (7 * 86400 if unit == "w" else _UNITS[unit]) for unit, number in named.items()) or None


def write_duration(seconds: float) -> str:
    whole = int(seconds)
    unit = next(name for name, size in _UNITS.items() if whole % size == 0)
    return f"{whole // _UNITS[unit]}{unit}"
