"""Signed checkpoints, written regularly: how far each stream had come, so that cutting off its end is detected."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from bespeak.errors import StoreError
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.instant import write_milliseconds
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.audit import record as records
from bespeak.state.audit.trail import ChainSealer, StreamHead
from bespeak.state.identity.key_files import SigningKey, TrustedKeys, check_signature
from bespeak.state.store.commands.audit import AppendCheckpoint, AuditExtent, LastCheckpoint, ScanAudit
from bespeak.state.store.store import Command, Conflict, Store, level_of

CHECKPOINT: Final = "checkpoint+jwt"  # type in the header, so that a record cannot pass as a checkpoint
VERSION: Final = "1"
BEGINS: Final = "begins"
ENDS: Final = "ends"
MOST_STREAMS: Final = 1000  # limit of streams in one checkpoint; more become several checkpoints
_logger = logging.getLogger(__name__)
EVERY: Final = 1000
SECONDS: Final = 60.0
_PAGE: Final = 1000
_SLACK: Final = 2048  # positions to read again: other writers may commit a smaller one after a larger one


class BoundStream(msgspec.Struct, frozen=True):
    stream: str
    count: int
    digest: str


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a checkpoint: the streams that have grown since the previous ones."""

    checkpoint_version: str
    server_id: str
    issued_at: str
    previous_checkpoint_id: str
    position: int  # position up to which records were read
    streams: tuple[BoundStream, ...]
    signing: str = ""
    """`begins` if signing was switched on here, so that its streams may be unsigned up to here; `ends` if it was
    switched off, so that unsigned streams may follow.
    """


class SignedCheckpoint(msgspec.Struct, frozen=True):
    checkpoint_id: str
    jws: str


_CONTENT: Final = msgspec.json.Decoder(Checkpoint)


def make_checkpoint(
    key: SigningKey,
    heads: Iterable[StreamHead],
    *,
    server_id: str,
    issued_at: float,
    previous: str,
    position: int,
    signing: str = "",
) -> SignedCheckpoint:
    """Sign a checkpoint over stream heads; `issued_at` is in seconds since 1970."""
    checkpoint = Checkpoint(
        VERSION,
        server_id,
        write_milliseconds(issued_at),
        previous,
        position,
        tuple(BoundStream(head.stream, head.count, head.digest.hex()) for head in heads),
        signing,
    )
    content = records.encode_header(key.header(CHECKPOINT)) + encode64(msgspec.json.encode(checkpoint))
    jws = key.sign(content).decode()
    return SignedCheckpoint(records.jws_id(jws), jws)


def read_checkpoint(jws: str) -> Checkpoint | None:
    """Parse a checkpoint without verifying its signature; return None if it is not valid."""
    compact = records.parse_compact(jws)
    if compact is None or compact.header.get("typ") != CHECKPOINT:
        return None
    read = compact.read_payload(_CONTENT)
    return None if isinstance(read, Fault) else read


class _Last(msgspec.Struct, frozen=True):
    """The last checkpoint. One that cannot be trusted says nothing, so that everything is read again."""

    checkpoint_id: str
    position: int = 0
    signing: str = ""
    kid: str = ""


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
        self._trusted = trusted  # current and earlier keys: a checkpoint signed by any other key is ignored
        self._every = every
        self._seconds = seconds
        self._clock = clock
        self._bound: dict[str, StreamHead] = {}
        self._wanted = BEGINS
        self._position = 0
        self._followed = ""  # stream of this process when the streams of others were last read
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bind the records of earlier processes, then run periodically."""
        loop = asyncio.get_running_loop()
        last = await self._find_last()
        # A new key vouches at once for what the previous one has signed.
        await self.write(changing=True, always=last is None or self._changes(last) or self._key.kid != last.kid)

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

    async def end(self) -> None:
        """Record that signing ends here, unless it is recorded already. The records of other processes are bound."""
        self._wanted = ENDS
        last = await self._find_last()
        if last is None or self._changes(last):
            await self.write(changing=True, always=True)

    async def write(self, *, changing: bool = False, always: bool = False) -> list[str]:
        """Write checkpoints over every stream that has grown, one at least if `always`; return their ids.

        They record a change of signing if one is due and `changing`: only at the start of a process, because otherwise
        unsigned streams added meanwhile would be accepted.
        """
        bound = {stream: head.count for stream, head in self._bound.items()}
        own = {head.stream: head for head in self._sealer.heads() if head.count > bound.get(head.stream, 0)}
        waiting = sorted((await self._grown(own)).values(), key=lambda head: head.stream)
        parts = [waiting[start : start + MOST_STREAMS] for start in range(0, len(waiting), MOST_STREAMS)]
        change = ""
        written: list[str] = []
        for part in parts or ([[]] if always else []):
            # A batch that is divided records the same in all its parts.
            checkpoint_id, change = await self._append(part, change, deciding=changing and not written)
            written.append(checkpoint_id)
        return written

    async def _append(self, heads: Sequence[StreamHead], change: str, *, deciding: bool) -> tuple[str, str]:
        """Write a checkpoint; return its id and the change of signing that it records, found out if `deciding`."""
        made: list[SignedCheckpoint] = []
        recorded = change

        def then(results: Sequence[Any]) -> Sequence[Command]:
            nonlocal recorded
            last = None if results[0] is None else self._read(*results[0])
            recorded = self._change(last, change, deciding)
            checkpoint = make_checkpoint(
                self._key,
                heads,
                server_id=self._server_id,
                issued_at=self._clock(),
                previous=results[0][0] if results[0] is not None else records.FIRST,
                position=self._position,
                signing=recorded,
            )
            made[:] = [checkpoint]
            return [AppendCheckpoint(checkpoint.checkpoint_id, checkpoint.jws)]

        await self._store.do(LastCheckpoint(), then=then)
        for head in heads:
            self._bound.pop(head.stream, None)
            self._bound[head.stream] = head
        while len(self._bound) > 4096:
            del self._bound[next(iter(self._bound))]
        self._sealer.anchor(made[0].checkpoint_id)
        if recorded == BEGINS and heads:
            # Whoever replaced a signed trail by an unsigned one would have it accepted here, so the operator is told.
            before = sum(head.count for head in heads)
            _logger.warning("signing of the audit trail begins: %d earlier records are accepted unsigned", before)
        return made[0].checkpoint_id, recorded

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.write()
            except StoreError as error:
                _logger.log(level_of(error), "a checkpoint of the audit trail could not be written now: %s", error)

    async def _grown(self, own: dict[str, StreamHead]) -> dict[str, StreamHead]:
        """Return the streams that have grown: those of this process, of others, and abandoned ones."""
        extent = await self._store.read(AuditExtent())
        current = self._sealer.stream
        found = dict(own)
        if self._store.sole:
            # Only this process writes, and since then only to this stream.
            after = extent if current == self._followed else self._position
        else:
            after = max(self._position - _SLACK, 0)
        while after < extent:
            rows = await self._store.read(ScanAudit(after, _PAGE, other_than=current))
            for row in rows:
                self._follow(records.KeptRecord(*row), found)
            if len(rows) < _PAGE:
                break
            after = rows[-1][0]
        self._position = max(self._position, extent)
        self._followed = current
        return found

    def _follow(self, record: records.KeptRecord, found: dict[str, StreamHead]) -> None:
        head = found.get(record.stream) or self._bound.get(record.stream)
        try:
            if head is None:
                place = records.place_of(record.jws)
                digest = bytes.fromhex(place.stream_digest) if place is not None else b""
                head = StreamHead(record.stream, record.sequence - 1, digest)
            if record.sequence == head.count + 1 and len(head.digest) == records.DIGEST_SIZE:
                digest = records.roll(head.digest, bytes.fromhex(record.audit_id))
                found[record.stream] = StreamHead(record.stream, record.sequence, digest)
        except ValueError:
            return  # no record of ours; `bespeak audit verify` names it

    async def _find_last(self) -> _Last | None:
        done = await self._store.do(LastCheckpoint())
        assert not isinstance(done, Conflict)
        if done[0] is None:
            return None
        last = self._read(*done[0])
        self._position = last.position
        self._sealer.anchor(last.checkpoint_id)
        return last

    def _read(self, checkpoint_id: str, jws: str) -> _Last:
        compact, checkpoint = records.parse_compact(jws), read_checkpoint(jws)
        if compact is None or checkpoint is None or check_signature(compact, self._trusted) != "good":
            _logger.warning("the last checkpoint of the audit trail is not signed by a key of this server")
            return _Last(checkpoint_id)
        return _Last(checkpoint_id, checkpoint.position, checkpoint.signing, compact.key_id)

    def _change(self, last: _Last | None, change: str, deciding: bool) -> str:
        """Return what the next checkpoint records about signing. Its end stays recorded until it begins again."""
        ended = last is not None and last.signing == ENDS
        if deciding and self._wanted == BEGINS and (last is None or ended):
            return BEGINS
        return ENDS if ended or self._wanted == ENDS else change

    def _changes(self, last: _Last) -> bool:
        """Return True if the trail is signed and shall not be any more, or the reverse."""
        return (last.signing == ENDS) != (self._wanted == ENDS)
