"""Records are sealed in commit order: one transaction of a process at a time, and each only at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Final, Self

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.command import Seal, Sealed, Sealer
from bespeak.state.store.postgres_address import Connection, is_outage

_HEADS: Final = """
SELECT a.agent_id, h.audit_id FROM unnest($1::text[]) AS a(agent_id) LEFT JOIN LATERAL (
    SELECT audit_id FROM audit WHERE audit.agent_id = a.agent_id ORDER BY position DESC LIMIT 1
) AS h ON true
"""


class Sealing:
    """The sealer and its lock. A transaction that seals holds the lock from its first record until its commit.

    The lock comes last, after the rows: whoever waits for a row that another machine has locked must not keep everybody
    else waiting. Only a group that seals in its first statement waits for rows under the lock, for `LANE_MILLISECONDS`
    at most, and then its units run by themselves.
    """

    def __init__(self) -> None:
        self.sealer: Sealer | None = None
        self._turn = asyncio.Lock()
        self._outages = 0
        """Number of transactions that lost the database while they held the lock."""
        self._last: str | None = None
        """Latest record sealed under the current lock."""
        self._doubt: str | None = None
        """Record whose commit is uncertain."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the lock. Sealed records are kept at its end, or discarded after an exception.

        The wait has no limit of its own. Few can wait, and whoever holds the lock is waiting for the database: if that
        is lost, so are those behind it.
        """
        outages = self._outages
        await self._turn.acquire()
        try:
            if self._outages != outages:
                raise StoreUnavailableError("The database was lost while a change waited for its turn.")
            yield
        except BaseException as error:
            if is_outage(error) or not isinstance(error, Exception):
                self._outages += 1
                self._doubt, self._last = self._last or self._doubt, None
            else:
                self.discard()
            raise
        else:
            if self._last is not None:
                self._attached().keep()
                self._last = None
        finally:
            self._turn.release()

    async def learn(self, connection: Connection, agents: Iterable[str]) -> None:
        """Fetch the chain heads that the sealer does not know."""
        sealer = self._attached()
        if self._doubt is not None:
            # After an outage: did the last transaction commit? The chain goes on from what is there.
            found = await connection.fetch("SELECT 1 FROM audit WHERE audit_id = $1 LIMIT 1", self._doubt)
            self._doubt = None
            if found:
                sealer.keep()
            else:
                sealer.discard()
        unknown = list({agent for agent in agents if not sealer.knows(agent)})
        if unknown:
            for agent_id, audit_id in await connection.fetch(_HEADS, unknown):
                sealer.learn(agent_id, audit_id)

    def seal(self, step: Seal) -> Sealed:
        """Seal a record whose agent's chain head is known."""
        if not self._turn.locked():
            raise StoreError("a record can be sealed only in its turn")
        sealed = self._attached().seal(step.agent_id, step.payload)
        self._last = sealed.audit_id
        return sealed

    async def learn_and_seal(self, connection: Connection, step: Seal) -> Sealed:
        """Fetch the chain head and seal one record."""
        await self.learn(connection, (step.agent_id,))
        return self.seal(step)

    def _attached(self) -> Sealer:
        if self.sealer is None:
            raise StoreError("no sealer is attached to the store, so nothing can be sealed")
        return self.sealer

    def discard(self) -> None:
        """Discard the records sealed under the current lock."""
        if self._last is not None:
            self._attached().discard()
            self._last = None


class LateTurn:
    """The turn of one transaction: taken when it seals its first record, held until the end of the block."""

    def __init__(self, sealing: Sealing) -> None:
        self._sealing = sealing
        self._held = AsyncExitStack()
        self._is_held = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._held.__aexit__(kind, error, trace)

    async def take(self) -> None:
        """Wait for the turn."""
        if not self._is_held:
            await self._held.enter_async_context(self._sealing.turn())
            self._is_held = True

    async def seal(self, connection: Connection, step: Seal) -> Sealed:
        """Seal one record."""
        await self.take()
        return await self._sealing.learn_and_seal(connection, step)

    def discard(self) -> None:
        """Discard the records that were sealed: their transaction was rolled back."""
        if self._is_held:
            self._sealing.discard()
