"""Renewal of a claim's lease while the handler of its request runs."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from bespeak.errors import StoreUnavailableError
from bespeak.runtime.idempotency import Claim
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.idempotency import RenewKey
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

_PAUSE: Final = 0.5
"""Seconds until a failed renewal is retried."""


class Renewal:
    """Renews the lease of a claim at half its time, until it is cancelled."""

    def __init__(self, store: Store, claim: Claim, lease: float) -> None:
        assert claim.fence is not None
        self._store = store
        self._command = RenewKey(claim.scope, claim.key, claim.fence, lease)
        self._seconds = lease / 2
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        held, pause = True, self._seconds
        while held:
            await asyncio.sleep(pause)
            try:
                done = await self._store.do(self._command)
                held, pause = not isinstance(done, Conflict) and done[0], self._seconds
            except StoreUnavailableError:
                pause = min(_PAUSE, self._seconds)  # soon, because the lease goes on
                _logger.info("could not renew the lease of a running request; retrying in %g s", pause)

    def cancel(self) -> None:
        """Stop renewing: the handler has ended."""
        self._task.cancel()
