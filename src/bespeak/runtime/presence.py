"""The presence of a process among those that share its store, for whoever checks the health of the server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.commands.records import RemoveRecord
from bespeak.state.store.commands.workers import RenewWorker
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

EVERY: Final = 5.0
SILENT: Final = 3 * EVERY
"""Seconds after which a process that has said nothing is in trouble."""
_KEPT: Final = 12 * EVERY
"""Seconds for which one that died is remembered."""


class Presence:
    """A task that renews the record of this process."""

    def __init__(self, store: Store, server_id: str) -> None:
        self._store = store
        self._server_id = server_id
        self._worker_id = f"worker-{secrets.token_hex(16)}"
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Say that the process is here, now and from time to time. Raises StoreError if that cannot be said now."""
        await self._renew()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="bespeak-presence")

    async def stop(self) -> None:
        """Say that the process leaves."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            with contextlib.suppress(StoreError):
                await self._store.do(RemoveRecord(self._worker_id))

    async def _renew(self) -> None:
        await self._store.do(RenewWorker(self._worker_id, self._server_id, _KEPT))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self._renew()
            except StoreError as error:
                _logger.info("could not renew the record of this process: %s", error)
