"""Signed checkpoints: how far each stream had come, so that cutting off its end is detected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from bespeak.protocol.exchange.base64url import encode64
from bespeak.protocol.exchange.instant import write_milliseconds
from bespeak.protocol.fault import Fault
from bespeak.state.audit.compact import jws_id, parse_compact
from bespeak.state.audit.record import encode_header
from bespeak.state.audit.sealer import StreamHead
from bespeak.state.audit.signing_key import SigningKey

CHECKPOINT: Final = "checkpoint+jwt"
"""Type in the header, so that a record cannot pass as a checkpoint."""
VERSION: Final = "1"
BEGINS: Final = "begins"
ENDS: Final = "ends"
MOST_STREAMS: Final = 1000
"""Limit of streams in one checkpoint; more become several checkpoints."""


class BoundStream(msgspec.Struct, frozen=True):
    """A stream at the time of a checkpoint."""

    stream: str
    count: int
    digest: str


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a checkpoint: the streams that have grown since the previous ones."""

    checkpoint_version: str
    server_id: str
    issued_at: str
    previous_checkpoint_id: str
    position: int
    """Position up to which records were read."""
    streams: tuple[BoundStream, ...]
    signing: str = ""
    """`begins` if signing was switched on here, so that its streams may be unsigned up to here; `ends` if it was
    switched off, so that unsigned streams may follow.
    """


class SignedCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint as stored."""

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
    content = encode_header(key.header(CHECKPOINT)) + encode64(msgspec.json.encode(checkpoint))
    jws = key.sign(content).decode()
    return SignedCheckpoint(jws_id(jws), jws)


def read_checkpoint(jws: str) -> Checkpoint | None:
    """Parse a checkpoint without verifying its signature; return None if it is not valid."""
    compact = parse_compact(jws)
    if compact is None or compact.header.get("typ") != CHECKPOINT:
        return None
    read = compact.read_payload(_CONTENT)
    return None if isinstance(read, Fault) else read
