"""The trail as a verification reads it: in a store, or in a file it was exported to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Final

from bespeak.state.audit.reading import KeptCheckpoint, KeptRecord
from bespeak.state.store.commands.audit import (
    CountAuditAgents,
    ReadAudit,
    ReadCheckpoint,
    ScanAudit,
    ScanCheckpoints,
)
from bespeak.state.store.store import Store

_PAGE: Final = 1000


class Trail(ABC):
    """Records and checkpoints in the order they were written. Read checkpoints first: then what they bind is there."""

    @abstractmethod
    def checkpoints(self) -> AsyncIterator[KeptCheckpoint]:
        """All checkpoints."""

    @abstractmethod
    def records(self) -> AsyncIterator[KeptRecord]:
        """All records."""

    @abstractmethod
    async def find(self, audit_id: str) -> KeptRecord | None:
        """The record of an Audit-ID."""

    @abstractmethod
    async def find_checkpoint(self, checkpoint_id: str) -> KeptCheckpoint | None:
        """The checkpoint of an id, also one that was written after `checkpoints` came to its end."""

    @abstractmethod
    async def agents(self) -> int:
        """How many agents have records."""


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
