"""Invariant: however bytes are split, both readers return the same events, raise nothing, and buffer no more than their
limits.

`python tools/fuzz/wire.py --seconds 60` mutates conversations at random and checks the invariant on each. If one
breaks it, the exit code is 1 and the bytes are printed.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from typing import Any

from campaign import campaign

from bespeak.protocol.exchange.messages import Connection
from bespeak.protocol.translation import RequestReader
from bespeak.protocol.wire.connection import MessageReader, ResponseReader
from bespeak.protocol.wire.messages import CLOSED, Limits, Malformed, Pause

LIMITS = Limits(line=64, head=256, headers=6, body=48)

SEEDS = (
    b"AGTP/1.0 DISCOVER /\r\n\r\n",
    b"AGTP/1.0 QUERY\nAgent-ID: a\nContent-Length: 3\n\nabc",
    b'AGTP/1.0 BOOK /room?x=1\r\nContent-Length: 12\r\nAuthority-Scope: booking:room\r\n\r\n{"a": "b"}\r\n',
    b"AGTP/1.0 200 OK\r\nServer-ID: s\r\nContent-Length: 2\r\n\r\n{}",
    b"AGTP/1.0 204 No Content\r\nContent-Length: 0\r\n\r\n",
)
TOKENS = (
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"\n\n", b" ", b":", b"#", b"?", b"\x00", b"\xff", b"\xc3\xa4", b"-1",
    b"AGTP/1.0 ", b"AGTP/1.1 ", b"Content-Length: ", b"Content-Length: 1000000000000\r\n", b"Transfer-Encoding: x\r\n",
    b"1" * 17, b"Agent-ID: b\r\n", b" folded\r\n", b"x" * 70, b"A: b\r\n" * 7,
)  # fmt: skip


def mutate(rng: random.Random) -> bytes:
    """Return a few messages, pipelined and damaged."""
    data = bytearray(b"".join(rng.choices(SEEDS, k=rng.randint(1, 4))))
    for _ in range(rng.randint(0, 6)):
        at = rng.randint(0, len(data))
        match rng.randrange(4):
            case 0:
                data[at:at] = rng.choice(TOKENS)
            case 1:
                del data[at : at + rng.randint(1, 12)]
            case 2:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case _:
                data[at:at] = data[at : at + rng.randint(1, 40)]
    return bytes(data)


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    """Split the bytes at random."""
    pieces = []
    while data:
        size = rng.choice((1, 2, 3, 7, 40, 300))
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def read(reader: MessageReader[Any, object], pieces: list[bytes]) -> list[object]:
    """Return every event of the stream and of its end, up to the first error."""
    events: list[object] = []
    for piece in [*pieces, None]:
        if piece is None:
            reader.receive_eof()
        else:
            reader.receive_data(piece)
        while not isinstance(event := reader.next_event(), Pause):
            events.append(event)
            if isinstance(event, Malformed):
                return events
        bound = LIMITS.head + LIMITS.body + len(piece or b"")
        if reader.buffered > bound:
            raise AssertionError(f"{reader.buffered} bytes buffered, {bound} allowed")
    return [*events, CLOSED]


def check(data: bytes, rng: random.Random) -> None:
    """Raise if the invariant does not hold for this stream."""
    pieces = cut(data, rng)
    for role in (partial(RequestReader, connection=Connection()), ResponseReader):
        whole = read(role(LIMITS), [data] if data else [])
        if read(role(LIMITS), pieces) != whole:
            raise AssertionError(f"{role} depends on the cut {[len(piece) for piece in pieces]}")


def trial(source: random.Random, noted: list[object]) -> None:
    """Try one stream, split in many ways."""
    data = mutate(source)
    noted.append(data)
    check(data, source)


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
