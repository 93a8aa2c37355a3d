"""The realistic ceiling: the whole contract of one endpoint, plainly written for this job alone.

It checks what a server of the contract has to check (headers, catalog, template, scopes, input and output schema) and
calls an async handler, but it has no limits, no timeouts, no manifest, no policy and no redirects. A general server
comes close to it at best. Usage: ceiling.py PORT
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast

import jsonschema_rs
import orjson
import uvloop

from contract import INPUT_SCHEMA, METHOD, OUTPUT_SCHEMA, PATH, SCOPE, book_room

CATALOG = frozenset(
    {
        "QUERY",
        "DISCOVER",
        "DESCRIBE",
        "SUMMARIZE",
        "PLAN",
        "PROPOSE",
        "EXECUTE",
        "DELEGATE",
        "ESCALATE",
        "CONFIRM",
        "SUSPEND",
        "NOTIFY",
        "FETCH",
        "BOOK",
        "CANCEL",
    }
)
HEAD_LIMIT = 65_536

_OK = b"AGTP/1.0 200 OK\r\nServer-ID: ceiling\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_REFUSED = (
    b"AGTP/1.0 %d Refused\r\nServer-ID: ceiling\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
)


@dataclass(frozen=True, slots=True)
class Compiled:
    """An endpoint with its template split into segments and its schemas compiled."""

    segments: tuple[str, ...]
    scopes: frozenset[str]
    accepts: Callable[[object], bool]
    returns: Callable[[object], bool]
    handler: Callable[..., Coroutine[Any, Any, dict[str, Any]]]

    def match(self, segments: list[str]) -> dict[str, str] | None:
        """Return the template parameters if the path matches, else None."""
        captured = {}
        for wanted, given in zip(self.segments, segments, strict=True):
            if wanted[:1] == "{":
                captured[wanted[1:-1]] = given
            elif wanted != given:
                return None
        return captured


def _validator(schema: dict[str, Any]) -> Callable[[object], bool]:
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True).is_valid


ENDPOINTS: dict[tuple[str, int], list[Compiled]] = {
    (METHOD, PATH.count("/")): [
        Compiled(
            tuple(PATH.split("/")),
            frozenset([SCOPE]),
            _validator(INPUT_SCHEMA),
            _validator(OUTPUT_SCHEMA),
            book_room,
        )
    ]
}
"""Endpoints by method and number of segments."""


def refuse(status: int, code: str) -> bytes:
    """Build a refusal."""
    body = orjson.dumps({"error": {"code": code}})
    return _REFUSED % (status, len(body), body)


def drive(coroutine: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run a coroutine that never waits, without a task."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: dict[str, Any] = done.value
        return result
    coroutine.close()
    raise RuntimeError("the handler of this server must not wait")


def answer(line: str, headers: dict[str, str], body: bytes) -> bytes:
    """Check a request in the order of the gates, then call the handler."""
    parts = line.split(" ")
    if len(parts) != 3 or parts[0] != "AGTP/1.0":
        return refuse(400, "invalid-request-line")
    method, path = parts[1], parts[2]
    if method not in CATALOG:
        return refuse(459, "method-violation")
    segments = path.split("/")
    for endpoint in ENDPOINTS.get((method, len(segments) - 1), ()):
        captured = endpoint.match(segments)
        if captured is not None:
            break
    else:
        return refuse(404, "endpoint-not-found")
    granted = {token.strip() for token in headers.get("authority-scope", "").split(",")}
    if not endpoint.scopes <= granted:
        return refuse(455, "scope-missing")
    try:
        payload = orjson.loads(body)
    except orjson.JSONDecodeError:
        return refuse(400, "invalid-json")
    if captured:
        payload = {**captured, **payload}
    if not endpoint.accepts(payload):
        return refuse(422, "input-invalid")
    result = drive(endpoint.handler(**payload))
    if not endpoint.returns(result):
        return refuse(500, "output-invalid")
    encoded = orjson.dumps(result)
    return _OK % (len(encoded), encoded)


class Connection(asyncio.Protocol):
    """A connection that parses requests in place in the buffer and answers all of a read in one write."""

    __slots__ = ("_buffer", "_transport")

    def __init__(self) -> None:
        self._buffer = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        replies = []
        start = 0
        while (end := buffer.find(b"\r\n\r\n", start)) >= 0:
            lines = buffer[start:end].decode("latin-1").split("\r\n")
            headers = {}
            for line in lines[1:]:
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            length = headers.get("content-length", "0")
            if not length.isdigit():
                self._transport.close()
                return
            stop = end + 4 + int(length)
            if stop > len(buffer):
                break
            replies.append(answer(lines[0], headers, buffer[end + 4 : stop]))
            start = stop
        self._buffer = buffer[start:]
        if len(self._buffer) > HEAD_LIMIT:
            self._transport.close()
        elif replies:
            self._transport.write(b"".join(replies))


async def serve(port: int) -> None:
    """Listen on loopback until the process ends."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
