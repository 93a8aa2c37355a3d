"""The load generator for machines without a C compiler: the arguments and the result line of loader.c, in Python.

It is as slow as the Python servers it measures, so a fast server looks slower than it is.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import deque
from functools import partial
from pathlib import Path
from typing import cast

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked\r\n", re.IGNORECASE)


class Tally:
    """Counts over all connections."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.errors = 0
        self.waits: list[float] = []
        self.fault = ""
        self.over = asyncio.Event()

    def stop(self, fault: str = "") -> None:
        """End the run; only the first error is reported."""
        self.fault = self.fault or fault
        self.over.set()


def message_length(data: bytes, start: int) -> int:
    """Return the length of the message at `start`, which has a length or is chunked; 0 if it is incomplete."""
    end = data.find(b"\r\n\r\n", start)
    if end < 0:
        return 0
    found = _LENGTH.search(data, start, end + 2)
    if found is not None:
        whole = end + 4 + int(found[1]) - start
        return whole if start + whole <= len(data) else 0
    if _CHUNKED.search(data, start, end + 2) is None:
        raise ValueError("a message without Content-Length")
    at, span = end + 4, 1
    while span:
        line = data.find(b"\r\n", at)
        if line < 0:
            return 0
        span = int(data[at:line], 16)
        at = line + 2 + span + 2
    return at - start if at <= len(data) else 0


def split_requests(data: bytes) -> list[bytes]:
    """Split a request file into its requests."""
    requests, start = [], 0
    while start < len(data):
        length = message_length(data, start)
        if not length:
            raise ValueError("the request file ends inside a request")
        requests.append(data[start : start + length])
        start += length
    return requests


class LoadConnection(asyncio.Protocol):
    """A connection with a constant number of requests in flight."""

    def __init__(self, tally: Tally, requests: list[bytes], first: int, depth: int) -> None:
        self._tally = tally
        self._requests = requests
        self._next = first
        self._depth = depth
        self._due: deque[float] = deque()
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def order(self, count: int) -> None:
        """Send the next requests in one write."""
        total = len(self._requests)
        batch = [self._requests[(self._next + index) % total] for index in range(count)]
        self._next = (self._next + count) % total
        self._due.extend([time.perf_counter()] * count)
        self._transport.write(b"".join(batch))

    def begin(self) -> None:
        """Send the first requests."""
        self.order(self._depth)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        now, start, answered = time.perf_counter(), 0, 0
        tally = self._tally
        while self._due and (length := message_length(buffer, start)):
            if buffer[start : start + 16].split(b" ")[1] != b"200":
                if not tally.errors:
                    print("loader: the first reply that is not 200:", buffer[start : start + 600], file=sys.stderr)
                tally.errors += 1
            tally.waits.append(now - self._due.popleft())
            start += length
            answered += 1
        self._buffer = buffer[start:]
        if len(tally.waits) >= tally.limit:
            tally.stop()
        elif answered:
            self.order(answered)

    def connection_lost(self, exc: Exception | None) -> None:
        self._tally.stop("the server closed a connection")


async def load(port: int, requests: list[bytes], *, connections: int, depth: int, seconds: float, limit: float) -> int:
    """Run the load and print the result line."""
    loop = asyncio.get_running_loop()
    tally = Tally(limit)
    opened: list[LoadConnection] = []
    for index in range(connections):
        make = partial(LoadConnection, tally, requests, index * len(requests) // connections, depth)
        _, connection = await loop.create_connection(make, "127.0.0.1", port)
        opened.append(connection)
    start = time.perf_counter()
    for connection in opened:
        connection.begin()
    loop.call_later(seconds, tally.stop)
    await tally.over.wait()
    elapsed = time.perf_counter() - start
    if tally.fault:
        print(f"loader: {tally.fault}", file=sys.stderr)
        return 1
    waits = sorted(tally.waits) or [0.0]
    result = {
        "loader": "python",
        "requests": len(tally.waits),
        "errors": tally.errors,
        "seconds": round(elapsed, 3),
        "rps": round(len(tally.waits) / elapsed, 1),
        "p50_us": round(waits[len(waits) // 2] * 1e6),
        "p99_us": round(waits[len(waits) * 99 // 100] * 1e6),
    }
    print(json.dumps(result))
    return 0


def main() -> int:
    """Read the arguments of loader.c and run."""
    if len(sys.argv) not in (6, 7):
        print("usage: loader.py PORT REQUESTS CONNECTIONS DEPTH SECONDS [LIMIT]", file=sys.stderr)
        return 2
    port, path, connections, depth, seconds = sys.argv[1:6]
    limit = float(sys.argv[6]) if len(sys.argv) == 7 else float("inf")
    requests = split_requests(Path(path).read_bytes())
    run = load(int(port), requests, connections=int(connections), depth=int(depth), seconds=float(seconds), limit=limit)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(run)
    return uvloop.run(run)


if __name__ == "__main__":
    sys.exit(main())
