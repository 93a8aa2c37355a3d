"""Exchanges as they happen: every one is counted, and as many are shown as a person can read."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import log2
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import gate_of
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Exchange

INTERVAL: Final = 0.25  # seconds between two reports to a watcher
MOST_SHOWN: Final = 20  # exchanges of one report; the others are counted
MOST_WATCHERS: Final = 8
_PRECISION: Final = 8  # buckets of durations between a power of two and the next one


class Wanted(msgspec.Struct, frozen=True):
    """What a watcher wants to see; an empty text stands for everything."""

    agent: str = ""
    method: str = ""
    path: str = ""
    status: str = ""  # a number, or its beginning: `4` for every status from 400 to 499
    gate: str = ""

    def admits(self, exchange: Exchange) -> bool:
        response = exchange.response
        return (
            (not self.method or exchange.method == self.method)
            and (not self.path or self.path in exchange.path)
            and (not self.status or str(response.status).startswith(self.status))
            and (not self.agent or (exchange.call.agent_id or "").startswith(self.agent))
            and (not self.gate or _gate(exchange) == self.gate)
        )


class Durations(Counter[int]):
    """A histogram of durations whose buckets grow by an eighth of a power of two: any quantile to within 5 %."""

    def add(self, seconds: float) -> None:
        self[round(_PRECISION * log2(max(1.0, seconds * 1_000_000)))] += 1

    def quantile(self, share: float) -> float | None:
        """Return a quantile in milliseconds; None without durations."""
        wanted = share * self.total()
        for bucket, count in sorted(self.items()):
            wanted -= count
            if wanted <= 0:
                return round(2 ** (bucket / _PRECISION) / 1000, 3)
        return None


class Watcher:
    """What one page watches: counts since the last report, and the exchanges to show of them."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._begin()

    def _begin(self) -> None:
        self._seen = 0
        self._shown: list[Exchange] = []
        self._at: list[float] = []
        self._counts: Counter[str] = Counter()
        self._durations = Durations()

    def see(self, exchange: Exchange) -> None:
        if not self._wanted.admits(exchange):
            return
        self._seen += 1
        self._counts[_outcome(exchange)] += 1
        if exchange.seconds is not None:
            self._durations.add(exchange.seconds)
        if len(self._shown) < MOST_SHOWN:
            self._shown.append(exchange)
            self._at.append(time.time())

    def report(self) -> dict[str, Any] | None:
        """Return what happened since the last report and begin anew; None if nothing did."""
        if not self._seen:
            return None
        report = {
            "seen": self._seen,
            "counts": {name: self._counts[name] for name in ("ok", "refused", "failed")},
            "ms": {"p50": self._durations.quantile(0.5), "p99": self._durations.quantile(0.99)},
            "shown": [_show(exchange, at) for exchange, at in zip(self._shown, self._at, strict=True)],
        }
        self._begin()
        return report


class Live:
    """The watchers of one server. Without any, exchanges cost nothing."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._watchers: list[Watcher] = []

    @property
    def is_full(self) -> bool:
        return len(self._watchers) >= MOST_WATCHERS

    def _see(self, exchange: Exchange) -> None:
        for watcher in self._watchers:
            watcher.see(exchange)

    @asynccontextmanager
    async def watch(self, wanted: Wanted) -> AsyncIterator[AsyncIterator[dict[str, Any] | None]]:
        """Watch for the duration of a block: yields a report, or None where nothing happened, at every interval."""
        watcher = Watcher(wanted)
        if not self._watchers:
            self._dispatcher.subscribe(self._see)
        self._watchers.append(watcher)
        try:
            yield _reports(watcher)
        finally:
            self._watchers.remove(watcher)
            if not self._watchers:
                self._dispatcher.unsubscribe(self._see)


async def _reports(watcher: Watcher) -> AsyncIterator[dict[str, Any] | None]:
    while True:
        await asyncio.sleep(INTERVAL)
        yield watcher.report()


def _outcome(exchange: Exchange) -> str:
    number = exchange.response.status
    return "failed" if number >= status.SERVER_ERROR else "ok" if status.is_success(number) else "refused"


def _gate(exchange: Exchange) -> str | None:
    """Return the gate that refused; a 262 says in its body which condition is not met."""
    code, body = exchange.response.code, exchange.response.body
    if code is None or exchange.response.status != status.AUTHORIZATION_REQUIRED:
        return None if code is None else gate_of(code)
    return gate_of(code, msgspec.json.decode(body, type=_Refusal).error.get("type"))


class _Refusal(msgspec.Struct):
    error: dict[str, Any] = {}


def _show(exchange: Exchange, at: float) -> dict[str, Any]:
    code = exchange.response.code
    return {
        **exchange.particulars,
        "at": round(at, 3),
        "ms": None if exchange.seconds is None else round(exchange.seconds * 1000, 3),
        "code": code,
        "gate": _gate(exchange),
        "face": exchange.call.request.connection.face,
        "replayed": exchange.replayed,
    }
