"""Records are sealed in the order in which they are committed: one transaction of a process at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from bespeak.errors import StoreError
from bespeak.state.store.command import Seal, Sealed, Sealer
from bespeak.state.store.postgres_address import COMMAND_SECONDS, Connection, is_outage

_HEADS: Final = """
SELECT a.agent_id, h.audit_id FROM unnest($1::text[]) AS a(agent_id) LEFT JOIN LATERAL (
    SELECT audit_id FROM audit WHERE audit.agent_id = a.agent_id ORDER BY position DESC LIMIT 1
) AS h ON true
"""


class Sealing:
    """The sealer, and whose turn it is. Whoever seals holds the turn from before its first row until its commit.

    The turn comes before any row: were it the other way round in one place, two could wait for each other, and the
    database would see only half of the circle.
    """

    def __init__(self) -> None:
        self.sealer: Sealer | None = None
        self._turn = asyncio.Lock()
        self._last: str | None = None
        """The latest record that was sealed in this turn."""
        self._doubt: str | None = None
        """A record of which is not known whether it was committed."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the turn. What was sealed is kept at its end, or taken back after an exception."""
        async with asyncio.timeout(COMMAND_SECONDS):
            await self._turn.acquire()
        try:
            yield
        except BaseException as error:
            if is_outage(error) or not isinstance(error, Exception):
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
        """Fetch the heads of the chains that the sealer does not know."""
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
        """Give a record its place; its agent's head is known."""
        if not self._turn.locked():
            raise StoreError("a record is sealed in a unit that does not end with AppendAudit")
        sealed = self._attached().seal(step.agent_id, step.payload)
        self._last = sealed.audit_id
        return sealed

    async def learn_and_seal(self, connection: Connection, step: Seal) -> Sealed:
        """Both, for one record."""
        await self.learn(connection, (step.agent_id,))
        return self.seal(step)

    def _attached(self) -> Sealer:
        if self.sealer is None:
            raise StoreError("no sealer is attached to the store, so nothing can be sealed")
        return self.sealer

    def discard(self) -> None:
        """Take back what was sealed in this turn."""
        if self._last is not None:
            self._attached().discard()
            self._last = None
