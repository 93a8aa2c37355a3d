"""The sealer of a process: gives records their place in their agent's chain and in the process's stream.

Nothing depends on the end of a stream. When a transaction fails, its records may or may not have been written, so the
stream is abandoned and another one begins.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from bespeak.protocol.exchange.header_values import encode64
from bespeak.state.audit.record import DIGEST_SIZE, FIRST, encode_header, roll
from bespeak.state.store.store import Members, Sealed

if TYPE_CHECKING:
    from bespeak.state.identity.key_files import SigningKey  # loads cryptography, which an unsigned trail does without

Signing = Literal["each", "checkpoints"]
RECORD: Final = "JWT"
MOST_HEADS: Final = 50_000  # limit of agents whose chain head is in memory; others are read from the store
_EMPTY: Final = bytes(DIGEST_SIZE)
_MOST_CLOSED: Final = 64
_encode = msgspec.json.Encoder().encode


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
        """Let the next record name a written checkpoint."""
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
            self._closed = (*self._closed, kept)[-_MOST_CLOSED:]
        self._anchored = self._kept_anchor
        self._open_stream()

    def _open_stream(self) -> None:
        self._stream = self._new_stream()
        self._sequence = 0
        self._kept_at_call = 0
        self._digest = _EMPTY
        self._kept_anchor = self._anchored
        self._view = (*self._closed, StreamHead(self._stream, 0, _EMPTY))
