"""What calls have cost so far: how long the latest ones of each endpoint took, and how large they were."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from bespeak.protocol import status
from bespeak.runtime.exchange import Exchange

_KEPT: Final = 256
"""Calls of each endpoint that are remembered."""
_NEAR: Final = 4
"""Factor by which the sizes of two inputs may differ to be compared."""
_ENOUGH: Final = 8
"""Calls of about the same size that are preferred to calls of any size."""

MOST_KEYS: Final = 10_000
"""Endpoints that are remembered: agents choose the paths of those that they propose."""


class Sample(NamedTuple):
    """One call that succeeded."""

    size: int
    """Bytes of the body."""
    seconds: float
    agent_id: str | None = None


class CostHistory:
    """A subscriber of exchanges. It remembers the calls of this process only."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, str], deque[Sample]] = {}

    def __call__(self, exchange: Exchange) -> None:
        """Take in a call that was carried out."""
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
