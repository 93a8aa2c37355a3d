"""Token buckets: rate limits per caller within bounded memory, optionally shared with other processes.

With several processes, each takes from its own buckets and synchronises with the store a few times a second. No
request waits for the store. Between two exchanges every process admits what its own bucket holds, so at most
`processes * (burst + rate * EXCHANGE_PERIOD)` calls pass at once. The excess is a debt: all processes refuse until
it is made up for, so the rate holds over a longer time. While the store is unavailable, each process counts on its
own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from itertools import islice
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.limits import Rate, RateLimits
from bespeak.documents.rules import NO_EFFECT
from bespeak.errors import StoreError
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.state.store.commands.workers import BucketUse, TakeTokens
from bespeak.state.store.store import Conflict, Store
from bespeak.text.diagnostics.diagnostic import Diagnostic

MOST_BUCKETS: Final = 65_536  # maximum number of callers with their own bucket; others share one until there is room

_CROWD: Final = "*"
_LOOKED_AT: Final = 16  # old buckets a new caller examines for a full one: no request pays for a sweep
_IPV6_HOST_BITS: Final = 64


@dataclass(slots=True, eq=False)
class Taken:
    since: int
    count: int = 1


class Buckets:
    """One bucket for each key, all with the same rate."""

    # A bucket is stored as the time at which it will be full. A full bucket carries no information and may be dropped;
    # any other is never dropped, however many new callers arrive.

    __slots__ = ("_capacity", "_clock", "_full_at", "_interval", "_most", "rate", "taken")

    def __init__(self, rate: Rate, clock: Callable[[], int], most: int = MOST_BUCKETS) -> None:
        self.rate = rate
        self.taken: dict[str, Taken] | None = None  # tokens to report to other processes; None if this one counts alone
        self._interval = rate.interval
        self._capacity = rate.burst * rate.interval
        self._clock = clock
        self._most = most
        self._full_at: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, key: str) -> int:
        """Take one token. Return 0 on success, else the nanoseconds until there is one; a refusal costs nothing."""
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
        """Return and reset what was taken since the last call: by key, the nanoseconds of refilling it, and its age."""
        now = self._clock()
        taken_by_key = {
            key: (taken.count * self._interval, now - taken.since) for key, taken in (self.taken or {}).items()
        }
        self.taken = {}
        return taken_by_key

    def learn(self, key: str, wait: int) -> None:
        """Update a bucket from the store: it is full after `wait` nanoseconds, counting all processes."""
        since = (self.taken or {}).get(key)
        full_at = self._clock() + wait + (since.count * self._interval if since else 0)
        if full_at > self._full_at.get(key, 0) and (key in self._full_at or len(self._full_at) < self._most):
            self._full_at[key] = full_at

    def _admit(self, key: str, now: int) -> tuple[str, int]:
        """Return the bucket of a new caller: its own if there is room, else the shared one."""
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
        """Return all sets of buckets, by names that are the same in every process."""
        found = {"address": self.address, "agent": self.agent, "principal": self.principal}
        named = {name: buckets for name, buckets in found.items() if buckets is not None}
        return named | {f"{method} {path}": buckets for (method, path), buckets in self.endpoints.items()}


def caller(principal: Principal, address: str) -> str:
    """Return the key of a call's bucket: the agent, or its network, because omitting the id must not help."""
    return principal.agent_id or network(address)


@lru_cache(4096)
def network(address: str) -> str:
    """Return the part of an address that one subscriber has: for IPv6 the first half, as the rest is freely chosen."""
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
    known = {endpoint.key for endpoint in endpoints}
    return [
        NO_EFFECT.found(
            f"limits.rate.endpoints names {method} {path}, but there is no such endpoint",
            advice="Write the method and the path as the endpoint declares them, {parameters} included.",
        )
        for method, path in limits.endpoints
        if (method, path) not in known
    ]


EXCHANGE_PERIOD: Final = 0.2  # seconds between two exchanges
_LONGEST_SILENCE: Final = 60.0  # minimum seconds between two log entries about an unavailable store
_MOST: Final = 512  # maximum number of buckets per transaction, so that others do not wait long for it
_SECOND: Final = 1_000_000_000
_logger = logging.getLogger(__name__)


class RateExchange:
    def __init__(self, rates: Rates, store: Store) -> None:
        self._named = rates.named()
        self._store = store
        self._task: asyncio.Task[None] | None = None
        for buckets in self._named.values():
            buckets.taken = {}

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="rate-exchange")

    async def close(self) -> None:
        if self._task is not None:
            await cancel_tasks(self._task)
            self._task = None
            await self._attempt()

    async def exchange(self) -> None:
        """Send what this process took and receive the totals. Raises StoreError if the store is unavailable."""
        sources: dict[str, tuple[Buckets, str]] = {}
        uses: list[BucketUse] = []
        for scope, buckets in self._named.items():
            for key, (cost, elapsed) in buckets.tell().items():
                name = f"{scope}:{key}"
                sources[name] = (buckets, key)
                uses.append(BucketUse(name, cost / _SECOND, elapsed / _SECOND))
        waiting = iter(uses)
        while batch := tuple(islice(waiting, _MOST)):
            outcome = await self._store.do(TakeTokens(batch))
            assert not isinstance(outcome, Conflict), "nothing is refused here"
            for name, seconds in outcome[0].items():
                buckets, key = sources[name]
                buckets.learn(key, int(seconds * _SECOND))

    async def _run(self) -> None:
        silent_until = 0.0
        clock = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(EXCHANGE_PERIOD)
            failed = await self._attempt()
            if failed is not None and clock() >= silent_until:
                silent_until = clock() + _LONGEST_SILENCE
                _logger.warning("rate limits are counted per process while the store is unavailable: %s", failed)

    async def _attempt(self) -> StoreError | None:
        try:
            await self.exchange()
        except StoreError as error:
            # It may have been counted. Sending it again could count it twice; a lenient limit is preferable.
            return error
        return None
