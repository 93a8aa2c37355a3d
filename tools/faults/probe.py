"""A client beside the load that checks the responses of a server while its store is unavailable, and afterwards."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

from tools.faults.ledger import Ledger
from tools.faults.load import LONGEST, send

from bespeak.agent.client.agtp_transport import Pool

_WITHOUT_STATE = 3.0
"""Seconds for a response that needs no store, on a busy machine."""
_RECOVERY = 60.0
_PAUSE = 0.01
_LOOKS = 4


class Probe:
    """Sends requests and records unexpected responses as faults."""

    def __init__(self, ledger: Ledger, port: int, host: str = "127.0.0.1") -> None:
        self._ledger = ledger
        self._pool = Pool(host, port, size=4, read_timeout=LONGEST)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.close()

    async def refused_within(self, seconds: float, patience: float = _RECOVERY) -> bool:
        """Return True if new requests are refused in time, each quickly; until then there may still be space in the
        store.
        """
        end = time.monotonic() + patience
        while True:
            begun = time.monotonic()
            status = await send(self._pool, self._ledger, self._ledger.new())
            if time.monotonic() - begun > seconds:
                self._ledger.faults.append(f"an answer ({status}) took more than {seconds:g} seconds without a store")
            if status == 503 or time.monotonic() > end:
                return status == 503

    async def expect_refusals(self, seconds: float) -> None:
        """Expect quick 503s for requests that need the store, and normal service for the others."""
        if not await self.refused_within(seconds):
            self._ledger.faults.append("requests were not refused although the store was unavailable")
            return
        for _ in range(_LOOKS):
            await self.expect_service_without_state()
            if not await self.refused_within(seconds, patience=0.0):
                self._ledger.faults.append("a request was acknowledged although the store was unavailable")

    async def expect_service_without_state(self) -> None:
        """Expect service for requests that need no store."""
        begun = time.monotonic()
        try:
            response = await self._pool.request("DISCOVER", "/methods")
            found = f"answered {response.status}"
        except OSError as error:
            found = f"not answered: {error}"
        took = time.monotonic() - begun
        if found != "answered 200" or took > _WITHOUT_STATE:
            self._ledger.faults.append(f"a request that needs no store was {found}, after {took:.1f} seconds")

    async def expect_service(self, seconds: float, within: float) -> None:
        """Expect that new requests are acknowledged for some time, each `within` so many seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.monotonic()
            status = await send(self._pool, self._ledger, self._ledger.new())
            took = time.monotonic() - begun
            if status not in (200, 202) or took > within:
                self._ledger.faults.append(f"a machine that was not harmed answered {status} after {took:.1f} seconds")
            await asyncio.sleep(_PAUSE)

    async def expect_recovery(self) -> None:
        """Expect the server to recover by itself once the store is back."""
        order, end = self._ledger.new(), time.monotonic() + _RECOVERY
        while await send(self._pool, self._ledger, order) not in (200, 202):
            if time.monotonic() > end:
                self._ledger.faults.append("the store is back, but the server has not recovered")
                return
            await asyncio.sleep(_PAUSE)
