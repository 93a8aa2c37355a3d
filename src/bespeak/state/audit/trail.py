"""The trail as a verification reads it: from a store or from an exported file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Final

from bespeak.state.audit.reading import KeptCheckpoint, KeptRecord
from bespeak.state.store.commands.audit import CountAuditAgents, ReadAudit, ReadCheckpoint, ScanAudit, ScanCheckpoints
from bespeak.state.store.store import Store

_PAGE: Final = 1000


class Trail(ABC):
    """Records and checkpoints in the order they were written. Read checkpoints first: the records they bind then
    exist.
    """

    @abstractmethod
    def checkpoints(self) -> AsyncIterator[KeptCheckpoint]:
        """Iterate over all checkpoints."""

    @abstractmethod
    def records(self) -> AsyncIterator[KeptRecord]:
        """Iterate over all records."""

    @abstractmethod
    async def find(self, audit_id: str) -> KeptRecord | None:
        """Return the record of an Audit-ID."""

    @abstractmethod
    async def find_checkpoint(self, checkpoint_id: str) -> KeptCheckpoint | None:
        """Return the checkpoint of an id, even if it was written after `checkpoints` ended."""

    @abstractmethod
    async def agents(self) -> int:
        """Return the number of agents with records."""


class StoreTrail(Trail):
    """The trail in a store, which may be written to meanwhile."""

    def __init__(self, store: Store, *, page: int = _PAGE) -> None:
        self._store = store
        self._page = page

    async def checkpoints(self, after: int = 0) -> AsyncIterator[KeptCheckpoint]:
        while rows := await self._store.read(ScanCheckpoints(after, self._page)):
            for row in rows:
                yield KeptCheckpoint(*row)
            after = rows[-1][0]

    async def records(self, after: int = 0) -> AsyncIterator[KeptRecord]:
        while rows := await self._store.read(ScanAudit(after, self._page)):
            for row in rows:
                yield KeptRecord(*row)
            after = rows[-1][0]

    async def find(self, audit_id: str) -> KeptRecord | None:
        row = await self._store.read(ReadAudit(audit_id))
        return KeptRecord(*row) if row is not None else None

    async def find_checkpoint(self, checkpoint_id: str) -> KeptCheckpoint | None:
        row = await self._store.read(ReadCheckpoint(checkpoint_id))
        return KeptCheckpoint(*row) if row is not None else None

    async def agents(self) -> int:
        count: int = await self._store.read(CountAuditAgents())
        return count
