"""Token buckets: how often each caller may call, counted within bounded memory, here and perhaps elsewhere too."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.rate import Rate, RateLimits
from bespeak.documents.deployment.rules import NO_EFFECT
from bespeak.protocol.exchange.principal import Principal
from bespeak.text.diagnostics.diagnostic import Diagnostic

MOST_BUCKETS: Final = 65_536
"""How many callers one limit keeps apart; those beyond share one bucket until there is room again."""

_CROWD: Final = "*"
_LOOKED_AT: Final = 16
"""How many old buckets a newcomer looks at for one that is full again: few, so that no request pays for a sweep."""

_IPV6_HOST_BITS: Final = 64


class Taken:
    """What was taken from one bucket since others were told."""

    __slots__ = ("count", "since")

    def __init__(self, since: int) -> None:
        self.since = since
        self.count = 1


class Buckets:
    """One bucket for each key, all of the same rate.

    A bucket is kept as the moment at which it is full again. One that is full says nothing, so that dropping it changes
    nothing; one that is not is never dropped, however many strangers come.
    """

    __slots__ = ("_capacity", "_clock", "_full_at", "_interval", "_most", "rate", "taken")

    def __init__(self, rate: Rate, clock: Callable[[], int], most: int = MOST_BUCKETS) -> None:
        self.rate = rate
        self.taken: dict[str, Taken] | None = None
        """What other processes are to be told of; None where this one counts alone."""
        self._interval = rate.interval
        self._capacity = rate.burst * rate.interval
        self._clock = clock
        self._most = most
        self._full_at: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: str) -> int:
        """Take one token. 0 when there was one, else the nanoseconds until there is; a refusal costs nothing."""
        now = self._clock()
        full_at = self._full_at.get(key)
        if full_at is None:
            key, full_at = self._admit(key, now)
        after = max(full_at, now) + self._interval
        wait = after - now - self._capacity
        if wait > 0:
            return wait
        self._full_at[key] = after
        if self.taken is not None:
            taken = self.taken.get(key)
            if taken is None:
                self.taken[key] = Taken(now)
            else:
                taken.count += 1
        return 0

    def tell(self) -> dict[str, tuple[int, int]]:
        """What was taken since the last time: by key, its cost in nanoseconds of refilling, and since when."""
        now = self._clock()
        told = {key: (taken.count * self._interval, now - taken.since) for key, taken in (self.taken or {}).items()}
        self.taken = {}
        return told

    def learn(self, key: str, wait: int) -> None:
        """A bucket is full again after so many nanoseconds, as all processes together see it."""
        since = (self.taken or {}).get(key)
        full_at = self._clock() + wait + (since.count * self._interval if since else 0)
        if full_at > self._full_at.get(key, 0) and (key in self._full_at or len(self._full_at) < self._most):
            self._full_at[key] = full_at

    def _admit(self, key: str, now: int) -> tuple[str, int]:
        """A bucket for a newcomer: its own where there is room, else the one that the crowd shares."""
        known = self._full_at
        for _ in range(min(_LOOKED_AT, len(known))):
            oldest = next(iter(known))
            if known[oldest] <= now:
                del known[oldest]
            else:
                known.move_to_end(oldest)
        if len(known) < self._most:
            return key, now
        return _CROWD, known.get(_CROWD, now)


class Rates:
    """The buckets of a service, one set for each limit it has."""

    __slots__ = ("address", "agent", "endpoints", "principal")

    def __init__(
        self, limits: RateLimits, clock: Callable[[], int] = time.monotonic_ns, most: int = MOST_BUCKETS
    ) -> None:
        def made(rate: Rate | None) -> Buckets | None:
            return Buckets(rate, clock, most) if rate else None

        self.address = made(limits.address)
        self.agent = made(limits.agent)
        self.principal = made(limits.principal)
        self.endpoints = {key: Buckets(rate, clock, most) for key, rate in limits.endpoints.items()}

    def named(self) -> dict[str, Buckets]:
        """Every set of buckets by a name that is the same in all processes."""
        found = {"address": self.address, "agent": self.agent, "principal": self.principal}
        named = {name: buckets for name, buckets in found.items() if buckets is not None}
        return named | {f"{method} {path}": buckets for (method, path), buckets in self.endpoints.items()}


def caller(principal: Principal, address: str) -> str:
    """Whose bucket a call is taken from: the agent's, or its network's, for leaving an id away must not help."""
    return principal.agent_id or network(address)


@lru_cache(4096)
def network(address: str) -> str:
    """The part of an address that one subscriber has: of IPv6 the first half, for the other half is free to choose."""
    try:
        host = ip_address(address.partition("%")[0])
    except ValueError:
        return f"@{address}"
    if not isinstance(host, IPv6Address):
        return f"@{host}"
    if host.ipv4_mapped is not None:
        return f"@{host.ipv4_mapped}"
    return f"@{IPv6Address(int(host) >> _IPV6_HOST_BITS << _IPV6_HOST_BITS)}/{_IPV6_HOST_BITS}"


def unused_limits(limits: RateLimits, endpoints: Iterable[Endpoint]) -> list[Diagnostic]:
    """A warning for each limit of an endpoint that is not there."""
    known = {endpoint.key for endpoint in endpoints}
    return [
        NO_EFFECT.found(
            f"limits.rate.endpoints bounds {method} {path}, and no such endpoint is served",
            advice="Write the method and the path as the endpoint has them, {parameters} included.",
        )
        for method, path in limits.endpoints
        if (method, path) not in known
    ]
