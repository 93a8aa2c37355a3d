"""The audit trail as a verification reads it: from a store, or from an exported file of JSON lines."""

from __future__ import annotations

import secrets
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, Protocol

import msgspec

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.record import DIGEST_SIZE, FIRST, KeptCheckpoint, KeptRecord, encode_header, place_of, roll
from bespeak.state.store.commands.audit import CountAuditAgents, ReadAudit, ReadCheckpoint, ScanAudit, ScanCheckpoints
from bespeak.state.store.store import Members, Sealed, Store
from bespeak.text.reading.json_data import decode_json

if TYPE_CHECKING:
    from bespeak.state.identity.key_files import SigningKey

_PAGE: Final = 1000
FORM: Final = "bespeak-audit/1"
_LONGEST_LINE: Final = 4 * 1024 * 1024
_encode = msgspec.json.Encoder().encode


class Trail(Protocol):
    """Records and checkpoints as they were written. Read checkpoints first: the records they bind then exist."""

    def checkpoints(self) -> AsyncIterator[KeptCheckpoint]: ...
    def records(self) -> AsyncIterator[KeptRecord]: ...
    async def find(self, audit_id: str) -> KeptRecord | None: ...
    # Even one that was written after `checkpoints` ended.
    async def find_checkpoint(self, checkpoint_id: str) -> KeptCheckpoint | None: ...
    async def agents(self) -> int: ...  # number of agents with records


class StoreTrail:
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


async def export_lines(store: Store) -> AsyncIterator[bytes]:
    """Yield the lines of an export in which all references resolve: checkpoints first, so that their records exist."""
    trail = StoreTrail(store)
    yield _encode({"form": FORM}) + b"\n"
    checkpoints, position, written = 0, 0, set[str]()
    named: set[str] = set()
    grew = True
    while grew:
        grew = False
        async for checkpoint in trail.checkpoints(checkpoints):
            checkpoints, grew = checkpoint.position, True
            written.add(checkpoint.checkpoint_id)
            yield _line("checkpoint", checkpoint)
        async for record in trail.records(position):
            position = record.position
            place = place_of(record.jws)
            if place is not None and place.checkpoint_id:
                named.add(place.checkpoint_id)
            yield _line("record", record)
        named -= written
        if not named:
            return


def _line(kind: str, row: KeptRecord | KeptCheckpoint) -> bytes:
    return _encode({"type": kind, **msgspec.structs.asdict(row)}) + b"\n"


class FileTrail:
    """The trail in an exported file. The index of ids is in a temporary database, not in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._index = sqlite3.connect("")  # a file without a name, which goes away with the connection
        self._index.execute("CREATE TABLE lines (id TEXT NOT NULL, agent_id TEXT, line INTEGER NOT NULL)")
        self._index.execute("CREATE INDEX by_id ON lines (id)")
        try:
            with path.open("rb") as file:
                self._read_form(file)
                self._index.executemany(
                    "INSERT INTO lines VALUES (?, ?, ?)",
                    (
                        (row.audit_id, row.agent_id, row.position)
                        if isinstance(row, KeptRecord)
                        else (row.checkpoint_id, None, row.position)
                        for row in self._rows(file)
                    ),
                )
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error

    def close(self) -> None:
        self._index.close()

    async def checkpoints(self) -> AsyncIterator[KeptCheckpoint]:
        for row in self._reread():
            if isinstance(row, KeptCheckpoint):
                yield row

    async def records(self) -> AsyncIterator[KeptRecord]:
        for row in self._reread():
            if isinstance(row, KeptRecord):
                yield row

    async def find(self, audit_id: str) -> KeptRecord | None:
        sql = "SELECT agent_id, line FROM lines WHERE id = ? AND agent_id IS NOT NULL ORDER BY line LIMIT 1"
        found = self._index.execute(sql, (audit_id,)).fetchone()
        return KeptRecord(found[1], "", 0, found[0], audit_id, "") if found is not None else None

    async def find_checkpoint(self, checkpoint_id: str) -> KeptCheckpoint | None:
        sql = "SELECT line FROM lines WHERE id = ? AND agent_id IS NULL LIMIT 1"
        found = self._index.execute(sql, (checkpoint_id,)).fetchone()
        return KeptCheckpoint(found[0], checkpoint_id, "") if found is not None else None

    async def agents(self) -> int:
        count: int = self._index.execute("SELECT COUNT(DISTINCT agent_id) FROM lines").fetchone()[0]
        return count

    def _reread(self) -> Iterator[KeptRecord | KeptCheckpoint]:
        with self._path.open("rb") as file:
            self._read_form(file)
            yield from self._rows(file)

    def _read_form(self, file: BinaryIO) -> None:
        try:
            form = decode_json(file.readline(_LONGEST_LINE))
        except (ValueError, RecursionError):
            form = None
        if not isinstance(form, dict) or form.get("form") != FORM:
            raise ConfigError(f"{self._path} is not an export of an audit trail: its first line does not say {FORM}")

    def _rows(self, file: BinaryIO) -> Iterator[KeptRecord | KeptCheckpoint]:
        """Yield the rows with the line number as position: the order of the file counts."""
        number = 1
        while line := file.readline(_LONGEST_LINE + 1):
            number += 1
            try:
                if len(line) > _LONGEST_LINE:
                    raise ValueError("it is too long")
                found = decode_json(line)
                kind = _KINDS.get(str(found.get("type"))) if isinstance(found, dict) else None
                if kind is None:
                    raise ValueError("it is neither a record nor a checkpoint")
                yield msgspec.convert({**found, "position": number}, kind)
            except (ValueError, RecursionError) as error:
                raise ConfigError(f"line {number} of {self._path} is not a valid line of an export: {error}") from error


_KINDS: Final = {"record": KeptRecord, "checkpoint": KeptCheckpoint}


Signing = Literal["each", "checkpoints"]
RECORD: Final = "JWT"
MOST_HEADS: Final = 50_000  # limit of agents whose chain head is in memory; others are read from the store
_EMPTY: Final = bytes(DIGEST_SIZE)


class StreamHead(msgspec.Struct, frozen=True):
    stream: str
    count: int
    digest: bytes


class ChainSealer:
    """The `store.Sealer` of a process. One thread calls it; `heads` may be called from any."""

    def __init__(
        self,
        key: SigningKey | None = None,
        *,
        signing: Signing = "each",
        most_heads: int = MOST_HEADS,
        new_stream: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._key = key
        self._signing = "none" if key is None else signing
        self._most_heads = most_heads
        self._new_stream = new_stream
        self._unsigned = encode_header({"alg": "none", "typ": RECORD})
        self._signed = encode_header(key.header(RECORD)) if key is not None else self._unsigned
        self._heads: OrderedDict[str, str] = OrderedDict()
        self._touched: set[str] = set()
        self._closed: tuple[StreamHead, ...] = ()
        self._anchor = ""  # checkpoint that the next record names
        self._anchored = ""
        self._kept_at_call = 0
        self._every = 0
        self._call: Callable[[], None] | None = None
        self._stream = ""
        self._sequence = 0
        self._digest = _EMPTY
        self._kept_anchor = ""
        self._view: tuple[StreamHead, ...] = ()
        self._open_stream()

    @property
    def stream(self) -> str:
        return self._stream

    def heads(self) -> tuple[StreamHead, ...]:
        """Return the committed heads of this process's streams; the last one is still growing."""
        return self._view

    def call_every(self, records: int, call: Callable[[], None]) -> None:
        """Call a function every so many committed records, from the writing thread."""
        self._every, self._call = records, call

    def anchor(self, checkpoint_id: str) -> None:
        self._anchor = checkpoint_id

    def knows(self, agent_id: str) -> bool:
        return agent_id in self._heads

    def learn(self, agent_id: str, audit_id: str | None) -> None:
        self._heads[agent_id] = audit_id or FIRST
        self._touched.add(agent_id)

    def seal(self, agent_id: str, payload: Members) -> Sealed:
        sequence = self._sequence + 1
        place = (
            f'{{"stream":"{self._stream}","sequence":{sequence},"stream_digest":"{self._digest.hex()}",'
            f'"previous_audit_id":"{self._heads[agent_id]}"'
        )
        if sequence == 1:
            place += f',"signing":"{self._signing}"'
        anchor = self._anchor
        if anchor != self._anchored:
            place += f',"checkpoint_id":"{anchor}"'
        body = _encode(payload)
        content = encode64(place.encode() + (b"," + body[1:] if len(body) > len(b"{}") else b"}"))
        # In a stream without signatures the first record has one all the same: nobody else can begin a stream.
        if self._signing == "each" or (sequence == 1 and self._key is not None):
            assert self._key is not None
            token = self._key.sign(self._signed + content)
        else:
            token = self._unsigned + content + b"."
        digest = sha256(token).digest()
        audit_id = digest.hex()
        self._sequence = sequence
        self._digest = roll(self._digest, digest)
        self._anchored = anchor
        self._heads[agent_id] = audit_id
        self._heads.move_to_end(agent_id)
        self._touched.add(agent_id)
        return Sealed(audit_id, self._stream, sequence, agent_id, token.decode())

    def keep(self) -> None:
        if not self._touched:
            return
        self._touched.clear()
        # Not before now: what is not yet written could not be read from the store.
        while len(self._heads) > self._most_heads:
            self._heads.popitem(last=False)
        self._kept_anchor = self._anchored
        self._view = (*self._closed, StreamHead(self._stream, self._sequence, self._digest))
        if self._call is not None and self._sequence - self._kept_at_call >= self._every:
            self._kept_at_call = self._sequence
            self._call()

    def discard(self) -> None:
        """Begin another stream: everything sealed since the last call of `keep` may be lost."""
        if not self._touched:
            return
        for agent_id in self._touched:
            self._heads.pop(agent_id, None)
        self._touched.clear()
        kept = self._view[-1]
        if self._sequence == kept.count:
            return
        if kept.count:
            self._closed = (*self._closed, kept)[-64:]
        self._anchored = self._kept_anchor
        self._open_stream()

    def _open_stream(self) -> None:
        self._stream = self._new_stream()
        self._sequence = 0
        self._kept_at_call = 0
        self._digest = _EMPTY
        self._kept_anchor = self._anchored
        self._view = (*self._closed, StreamHead(self._stream, 0, _EMPTY))
