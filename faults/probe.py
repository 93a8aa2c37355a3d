"""One careful client beside the load: what a server says while its store is away, and when it is back."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

from faults.ledger import Ledger
from faults.load import LONGEST, send

from bespeak.agent.client.agtp_client import Pool

_WITHOUT_STATE = 3.0
"""Seconds for an answer that needs no store, on a machine that is busy."""
_RECOVERY = 60.0
_PAUSE = 0.01
_LOOKS = 4


class Probe:
    """Asks, and notes as a fault what should have been otherwise."""

    def __init__(self, ledger: Ledger, port: int) -> None:
        self._ledger = ledger
        self._pool = Pool("127.0.0.1", port, size=4, read_timeout=LONGEST)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.close()

    async def refused_within(self, seconds: float, patience: float = _RECOVERY) -> bool:
        """Whether new requests begin to be refused, each soon; until then they may still find room in the store."""
        end = time.monotonic() + patience
        while True:
            begun = time.monotonic()
            status = await send(self._pool, self._ledger, self._ledger.new())
            if time.monotonic() - begun > seconds:
                self._ledger.faults.append(f"an answer ({status}) took more than {seconds:g} seconds without a store")
            if status == 503 or time.monotonic() > end:
                return status == 503

    async def expect_refusals(self, seconds: float) -> None:
        """While the store is away: 503 soon for what needs it, and everything else as always."""
        if not await self.refused_within(seconds):
            self._ledger.faults.append("requests were not refused although the store was away")
            return
        for _ in range(_LOOKS):
            await self.expect_service_without_state()
            if not await self.refused_within(seconds, patience=0.0):
                self._ledger.faults.append("a request was acknowledged although the store was away")

    async def expect_service_without_state(self) -> None:
        """What needs no store is served."""
        begun = time.monotonic()
        try:
            response = await self._pool.request("DISCOVER", "/methods")
            found = f"answered {response.status}"
        except OSError as error:
            found = f"not answered: {error}"
        took = time.monotonic() - begun
        if found != "answered 200" or took > _WITHOUT_STATE:
            self._ledger.faults.append(f"a request that needs no store was {found}, after {took:.1f} seconds")

    async def expect_recovery(self) -> None:
        """When the store is back, the server is too, by itself."""
        order, end = self._ledger.new(), time.monotonic() + _RECOVERY
        while await send(self._pool, self._ledger, order) not in (200, 202):
            if time.monotonic() > end:
                self._ledger.faults.append("the store is back, and the server is not")
                return
            await asyncio.sleep(_PAUSE)
