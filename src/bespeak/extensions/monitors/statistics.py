"""Statistics of the calls of this process: how many run and fail, how long they take, and how large they are."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Final, NamedTuple

from bespeak.protocol import status
from bespeak.runtime.exchange import Exchange

_KEPT: Final = 256  # calls of each endpoint that are remembered
_MOST_KEYS: Final = 1000  # endpoints that are remembered: callers of ROUTE choose paths of other services
WINDOW: Final = 300.0  # seconds for which a call counts

Key = tuple[str, str]


class Summary(NamedTuple):
    calls: int = 0
    failed: int = 0
    seconds: float = 0.0  # sum of the times they took

    def __add__(self, other: tuple[object, ...]) -> Summary:
        assert isinstance(other, Summary)
        return Summary(self.calls + other.calls, self.failed + other.failed, self.seconds + other.seconds)


class _ObservedCall(NamedTuple):
    at: float
    seconds: float
    failed: bool


class CallStatistics:
    """A subscriber of exchanges."""

    def __init__(self) -> None:
        self._seen: dict[Key, deque[_ObservedCall]] = {}
        self._running: Counter[Key] = Counter()

    def __call__(self, exchange: Exchange) -> None:
        route = exchange.call.route
        if route is not None and exchange.seconds is not None and not exchange.replayed:
            self.note(route.endpoint.key, exchange.seconds, exchange.response.status)

    def note(self, key: Key, seconds: float, code: int) -> None:
        """Take in a call of an endpoint. A refusal is not a failure of the endpoint; an error of the server is."""
        failed = code >= status.SERVER_ERROR or code == status.TIMEOUT
        # The endpoint that was called last stands at the end.
        seen = self._seen.pop(key, None) or deque(maxlen=_KEPT)
        self._seen[key] = seen
        seen.append(_ObservedCall(time.monotonic(), seconds, failed))
        if len(self._seen) > _MOST_KEYS:
            del self._seen[next(iter(self._seen))]

    @contextmanager
    def running(self, key: Key) -> Iterator[None]:
        self._running[key] += 1
        try:
            yield
        finally:
            self._running[key] -= 1
            if not self._running[key]:
                del self._running[key]

    def count_running(self, key: Key) -> int:
        """Return the number of calls that were handed to an endpoint here and have not ended."""
        return self._running[key]

    def find_latency(self, key: Key) -> float | None:
        """Return the median of the recent times of an endpoint; None if it was not called."""
        times = [one.seconds for one in self._recent(key)]
        return median(times) if times else None

    def summarize(self, key: Key) -> Summary:
        recent = self._recent(key)
        return Summary(len(recent), sum(one.failed for one in recent), sum(one.seconds for one in recent))

    def _recent(self, key: Key) -> list[_ObservedCall]:
        since = time.monotonic() - WINDOW
        return [one for one in self._seen.get(key, ()) if one.at >= since]


_NEAR: Final = 4  # factor by which the sizes of two inputs may differ to be compared
_ENOUGH: Final = 8  # calls of about the same size that are preferred to calls of any size
MOST_KEYS: Final = 10_000  # endpoints that are remembered: agents choose the paths of those that they propose


class Sample(NamedTuple):
    size: int  # bytes of the body
    seconds: float
    agent_id: str | None = None


class CostHistory:
    """A subscriber of exchanges. It remembers the calls of this process only."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, str], deque[Sample]] = {}

    def __call__(self, exchange: Exchange) -> None:
        route = exchange.call.route
        if route is None or exchange.seconds is None or exchange.replayed:
            return
        if status.is_success(exchange.response.status):
            # The endpoint that was called last stands at the end.
            kept = self._samples.pop(route.endpoint.key, None) or deque(maxlen=_KEPT)
            self._samples[route.endpoint.key] = kept
            if len(self._samples) > MOST_KEYS:
                del self._samples[next(iter(self._samples))]
            call = exchange.call
            kept.append(Sample(len(call.request.body), exchange.seconds, call.agent_id))

    def find_own(self, key: tuple[str, str], agent_id: str) -> list[float]:
        """Return the seconds of an agent's own calls of an endpoint."""
        return [one.seconds for one in self._samples.get(key, ()) if one.agent_id == agent_id]

    def find(self, key: tuple[str, str], size: int) -> Sequence[Sample]:
        """Return earlier calls of an endpoint: those with an input of about this size, if there are enough."""
        known = self._samples.get(key, ())
        near = [one for one in known if size <= _NEAR * (one.size + 64) and one.size <= _NEAR * (size + 64)]
        return near if len(near) >= _ENOUGH else list(known)
