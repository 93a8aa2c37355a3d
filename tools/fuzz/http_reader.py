"""Invariant: mutated HTTP requests are read alike however the bytes are split and whatever was read before.

Run `python tools/fuzz/http_reader.py --seconds 60`. It prints how many texts it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import random
import sys

from campaign import campaign

from bespeak.faces.http.reader import Asked, Heads, HttpRequestReader
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Pause

_REQUESTS = [
    b"GET /rooms/1:find?guests=2 HTTP/1.1\r\nHost: a\r\n\r\n",
    b'POST /room:book HTTP/1.1\r\nHost: a\r\nAgent-ID: b\r\nContent-Length: 15\r\n\r\n{"room_id":"1"}',
    b"POST /room HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n{ }\r\n0\r\nAgent-ID: c\r\n\r\n",
    b"POST /room HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
    b"POST /room HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    b"HEAD http://a/b HTTP/1.0\r\n\r\n",
]
_PIECES = [
    *(b"\r\n", b"\r\n\r\n", b"\n", b" ", b":", b"\x00", b"\xff", b"0", b"-1", b"9" * 30, b"%2F", b"?", b"#", b"\t"),
    *(b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: b\r\n", b"HTTP/1.1", b"GET ", b"A: b\r\n"),
]

_heads: Heads = {}
"""Cache of heads shared by all trials."""


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a few requests, some of them damaged."""
    data = b"".join(source.choice(_REQUESTS) for _ in range(source.randint(1, 4)))
    for _ in range(source.choice((0, 0, 1, 1, 2, 4))):
        at = source.randrange(len(data))
        data = data[:at] + source.choice(_PIECES) + data[at + source.choice((0, 0, 1, 5)) :]
    noted.append(data)
    whole = _read([data], {})
    cuts = sorted(source.randrange(len(data) + 1) for _ in range(source.randint(0, 6)))
    pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if start < end]
    noted.append(pieces)
    for heads in ({}, _heads):
        found = _read(pieces, heads)
        assert found == whole, f"{found} and not {whole}"


def _read(pieces: list[bytes], heads: Heads) -> tuple[list[Asked], int | None]:
    """Return the requests, and the status of the error after them. A request that closes the connection ends the
    reading.
    """
    found: list[Asked] = []
    reader = HttpRequestReader(DEFAULT_LIMITS, heads)
    for piece in pieces:
        reader.receive_data(piece)
        while not isinstance(event := reader.next_event(), Pause):
            if isinstance(event, Malformed):
                return found, event.status
            found.append(event)
            if not event.head.keep_alive:
                return found, None
    return found, None


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))
