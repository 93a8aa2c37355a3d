"""Writer of checkpoints in a running server: every so many records or seconds, at start and at stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from bespeak.errors import StoreError
from bespeak.state.audit.checkpoint import MOST_STREAMS, SignedCheckpoint, make_checkpoint, read_checkpoint
from bespeak.state.audit.compact import parse_compact
from bespeak.state.audit.reading import KeptRecord, place_of
from bespeak.state.audit.record import DIGEST_SIZE, FIRST, roll
from bespeak.state.audit.sealer import ChainSealer, StreamHead
from bespeak.state.audit.signature_status import judge
from bespeak.state.audit.signing_key import SigningKey
from bespeak.state.audit.trusted_keys import TrustedKeys
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.audit import AppendCheckpoint, AuditExtent, LastCheckpoint, ScanOtherStreams
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

EVERY: Final = 1000
SECONDS: Final = 60.0
_PAGE: Final = 1000
_SLACK: Final = 2048
"""Positions to read again: if there are other writers, a smaller position may be committed after a larger one."""
_MOST_STREAMS: Final = 4096


class Checkpointer:
    """Binds the streams of this process from memory, and those of others from the store."""

    def __init__(
        self,
        store: Store,
        sealer: ChainSealer,
        key: SigningKey,
        *,
        server_id: str,
        trusted: TrustedKeys,
        every: int = EVERY,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._key = key
        self._server_id = server_id
        self._trusted = trusted
        """Current and earlier keys: a checkpoint signed by any other key is ignored."""
        self._every = every
        self._seconds = seconds
        self._clock = clock
        self._bound: dict[str, StreamHead] = {}
        self._position = 0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bind the records of earlier processes, then run periodically."""
        loop = asyncio.get_running_loop()
        done = await self._store.do(LastCheckpoint())
        assert not isinstance(done, Conflict)
        if done[0] is not None:
            checkpoint_id, jws = done[0]
            self._position = self._position_of(jws)
            self._sealer.anchor(checkpoint_id)
        await self.write()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended; `stop` has written the last one
                loop.call_soon_threadsafe(self._wake.set)

        self._sealer.call_every(self._every, wake)
        self._task = loop.create_task(self._run())

    async def stop(self) -> None:
        """Bind the end of this process's streams. The store must still be open and idle."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        try:
            await self.write()
        except StoreError as error:
            _logger.warning("the last checkpoint could not be written, the next start does it: %s", error)

    async def write(self) -> list[str]:
        """Write a checkpoint over every stream that has grown; return the ids of the new checkpoints."""
        own = {head.stream: head for head in self._sealer.heads() if head.count > self._count(head.stream)}
        waiting = sorted((await self._grown(own)).values(), key=lambda head: head.stream)
        parts = (waiting[start : start + MOST_STREAMS] for start in range(0, len(waiting), MOST_STREAMS))
        return [await self._append(part) for part in parts]

    async def _append(self, heads: Sequence[StreamHead]) -> str:
        made: list[SignedCheckpoint] = []

        def then(results: Sequence[Any]) -> Sequence[Command]:
            checkpoint = make_checkpoint(
                self._key,
                heads,
                server_id=self._server_id,
                issued_at=self._clock(),
                previous=results[0][0] if results[0] is not None else FIRST,
                position=self._position,
            )
            made[:] = [checkpoint]
            return [AppendCheckpoint(checkpoint.checkpoint_id, checkpoint.jws)]

        await self._store.do(LastCheckpoint(), then=then)
        for head in heads:
            self._bound.pop(head.stream, None)
            self._bound[head.stream] = head
        while len(self._bound) > _MOST_STREAMS:
            del self._bound[next(iter(self._bound))]
        self._sealer.anchor(made[0].checkpoint_id)
        return made[0].checkpoint_id

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.write()
            except StoreError as error:
                _logger.warning("a checkpoint of the audit trail could not be written now: %s", error)

    def _count(self, stream: str) -> int:
        bound = self._bound.get(stream)
        return bound.count if bound is not None else 0

    async def _grown(self, own: dict[str, StreamHead]) -> dict[str, StreamHead]:
        """Return the streams that have grown: those of this process, of others, and abandoned ones."""
        extent = await self._store.read(AuditExtent())
        current = self._sealer.stream
        found = dict(own)
        after = self._position if self._store.sole else max(self._position - _SLACK, 0)
        while after < extent:
            rows = await self._store.read(ScanOtherStreams(after, current, _PAGE))
            for row in rows:
                self._follow(KeptRecord(*row), found)
            if len(rows) < _PAGE:
                break
            after = rows[-1][0]
        self._position = max(self._position, extent)
        return found

    def _follow(self, record: KeptRecord, found: dict[str, StreamHead]) -> None:
        head = found.get(record.stream) or self._bound.get(record.stream)
        try:
            if head is None:
                place = place_of(record.jws)
                digest = bytes.fromhex(place.stream_digest) if place is not None else b""
                head = StreamHead(record.stream, record.sequence - 1, digest)
            if record.sequence == head.count + 1 and len(head.digest) == DIGEST_SIZE:
                digest = roll(head.digest, bytes.fromhex(record.audit_id))
                found[record.stream] = StreamHead(record.stream, record.sequence, digest)
        except ValueError:
            return  # no record of ours; `bespeak audit verify` names it

    def _position_of(self, jws: str) -> int:
        """Return the position of the last checkpoint; 0 to start over if it cannot be trusted."""
        compact, checkpoint = parse_compact(jws), read_checkpoint(jws)
        if compact is None or checkpoint is None or judge(compact, self._trusted) != "good":
            _logger.warning("the last checkpoint of the audit trail is not signed by a key of this server")
            return 0
        return checkpoint.position
