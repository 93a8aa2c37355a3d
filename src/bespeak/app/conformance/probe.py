"""One exchange with the server under test: the request, the response, and access to its parts.

A request is sent exactly as given, on its own connection: a check sends what a well-behaved client cannot.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.errors import LocalProtocolError, RemoteProtocolError
from bespeak.protocol.wire.connection import ResponseReader
from bespeak.protocol.wire.messages import Malformed, ResponseMessage
from bespeak.text.diagnostics.diagnostic import printable
from bespeak.text.reading.json_data import decode_json

_CALLER: Final = re.compile(r"agent|identity|credential|caller|principal|canonical")
"""Words in the error code of a refusal that is about the caller: servers differ in their codes."""

_SHOWN: Final = 240  # limit of shown evidence; `bespeak call` shows the whole response
_CHUNK: Final = 65536


@dataclass(frozen=True)
class Exchanged:
    method: str
    target: str
    sent: bytes
    status: int
    reason: str
    headers: Mapping[str, str]  # headers with names in lower case
    body: bytes
    agent_id: str | None = None
    scope: str | None = None
    invented: bool = False  # True if the path is a template that was filled with made-up values

    def header(self, name: str) -> str | None:
        return self.headers.get(name.lower())

    @cached_property
    def json(self) -> Any:
        """Body as JSON, or None if it is not JSON."""
        try:
            return decode_json(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def field(self, name: str) -> Any:
        """Return a field of the body, at the top or inside `error`: the drafts do not say which (core 5.4)."""
        body = self.json
        error = body.get("error") if isinstance(body, dict) else None
        for place in (body, error, error.get("details") if isinstance(error, dict) else None):
            if isinstance(place, dict) and name in place:
                return place[name]
        return None

    def result(self, name: str) -> Any:
        """Return a field of an answer, at the top or in the envelope of a floor method."""
        found, body = self.field(name), self.json
        envelope = body.get("result") if isinstance(body, dict) else None
        return envelope.get(name) if found is None and isinstance(envelope, dict) else found

    @property
    def code(self) -> str:
        """Error code in lower case with hyphens; empty if the body has none."""
        error = self.json.get("error") if isinstance(self.json, dict) else None
        stated = (self.field("code"), self.field("error_code"), error)
        return next((text.lower().replace("_", "-") for text in stated if isinstance(text, str)), "")

    def names(self, text: str) -> bool:
        """Return True if the body contains a text as a whole word, in any case: `id` does not occur in `invalid`."""
        word = rf"(?<![A-Za-z0-9_]){re.escape(text)}(?![A-Za-z0-9_])"
        return re.search(word, self.body.decode(errors="replace"), re.IGNORECASE) is not None

    def requires(self, condition: str) -> bool:
        """Return True if the body states a condition such as `wildcards-required` in one of the usual fields."""
        return condition in (self.field("type"), self.field("reason"), self.field("condition"), self.code)

    @property
    def is_success(self) -> bool:
        """True if the request was carried out. A status from 260 on is an answer to a proposal, or a refusal."""
        return 200 <= self.status < 260

    @property
    def refuses_caller(self) -> bool:
        """True if the server refused our identity or authority, which may be before it looked at the request."""
        if self.status in (401, 403):
            return True
        if self.status == 262:
            return not self.requires("wildcards-required")
        return self.status in (400, 404, 405, 410, 503) and _CALLER.search(self.code) is not None

    def __str__(self) -> str:
        said = [f"{self.method} {self.target}"]
        if self.agent_id is not None:
            said.append(f"Agent-ID: {self.agent_id[:8]}…")
        if self.scope is not None:
            said.append(f"Authority-Scope: {self.scope}")
        if self.sent:
            said.append(_short(self.sent))
        return f"{' | '.join(said)} → {self.status} {self.reason} {_short(self.body)}".rstrip()


Send = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Exchanged]]
"""Function that sends method, target, headers and body unchanged and returns any response, including refusals."""


def _short(body: bytes) -> str:
    text = printable(" ".join(body.decode("utf-8", "replace").split()))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def direct_sender(host: str, port: int, *, tls: ssl.SSLContext | None, timeout: float) -> Send:
    """Return a sender for one server. A new connection per request suits servers that close after each reply."""

    async def send(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Exchanged:
        if not f"{method}{target}".isprintable() or " " in method + target:
            # Both may come from the server's own manifest.
            raise LocalProtocolError(f"{method[:40]!a} {target[:80]!a} cannot be sent on a request line.")
        lines = [f"AGTP/1.0 {method} {target}", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
        async with asyncio.timeout(timeout):
            reply = await _exchange(host, port, tls, head.encode() + body)
        caller = headers.get("Agent-ID"), headers.get("Authority-Scope")
        return Exchanged(method, target, body, reply.status, reply.reason, reply.headers, reply.body, *caller)

    return send


async def _exchange(host: str, port: int, tls: ssl.SSLContext | None, data: bytes) -> ResponseMessage:
    incoming, outgoing = await asyncio.open_connection(host, port, ssl=tls)
    try:
        outgoing.write(data)
        with suppress(ConnectionError):  # a server may refuse and close before it has read everything
            await outgoing.drain()
        reader = ResponseReader()
        while not isinstance(event := reader.next_event(), ResponseMessage):
            if isinstance(event, Malformed):
                raise RemoteProtocolError(event.message)
            received = await incoming.read(_CHUNK)
            if not received:
                raise RemoteProtocolError("the server closed the connection before the response was complete")
            reader.receive_data(received)
        return event
    finally:
        outgoing.close()
        with suppress(OSError):
            await outgoing.wait_closed()
