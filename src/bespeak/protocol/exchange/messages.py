"""Request and Response: immutable and independent of any transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bespeak.protocol.exchange.headers import NO_HEADERS, HeaderBlock
from bespeak.protocol.wire.messages import Malformed

__all__ = ("Connection", "Malformed", "Request", "Response")


class Connection:
    """The state shared by the requests of one connection.

    `answered` counts the responses sent, so that the first one can introduce the server (Supported-Methods).
    """

    __slots__ = ("address", "agent_id", "answered", "certificate", "face", "peer", "secure")

    def __init__(
        self,
        *,
        face: str = "agtp",
        peer: str = "",
        address: str = "",
        secure: bool = False,
        certificate: bytes | None = None,
    ) -> None:
        self.face = face
        self.peer = peer
        """Host and port, for people."""
        self.address = address
        """Host alone, shared by all connections of one machine."""
        self.secure = secure
        self.certificate = certificate
        """Client certificate in DER, verified by TLS against the server's authorities."""
        self.answered = 0
        self.agent_id: str | None = None
        """Agent of the last request that identified one."""

    def seen_as(self, face: str) -> Connection:
        """Return the connection as another face presents it, which shares the port of this one."""
        if self.face == face:
            return self
        found = Connection(
            face=face, peer=self.peer, address=self.address, secure=self.secure, certificate=self.certificate
        )
        found.answered = 1  # documents introduce the server
        return found


class Request(msgspec.Struct, frozen=True, gc=False):
    """One call as received: not decoded, not trusted."""

    method: str
    path: str
    """Target up to the first `?`, with percent-encoding."""
    query: str
    headers: Mapping[str, str]
    """Headers with names in lower case, each at most once."""
    body: bytes
    connection: Connection
    reads: bool = False
    """True for a request that promises to change nothing, such as GET over HTTP."""
    prepared: Response | None = None
    """Answer of the face to a request that calls no endpoint. Only callers that may discover get it."""
    counted: bool = False
    """True if the face has counted the request against all rate limits, because it stores something first."""
    semantic: Any = None
    """What the call means, a `Meaning`, once it is understood; None if it does not say."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """One response. A transport adds framing (Content-Length) and nothing else."""

    status: int
    body: bytes = b""
    block: HeaderBlock = NO_HEADERS
    """Headers known before the request."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of this response alone."""
    code: str | None = None
    """The machine-readable name of a refusal; None for any other answer."""

    def header(self, name: str) -> str | None:
        """Return a header by name in any case."""
        wanted = name.lower()
        for pairs in (self.headers, self.block.pairs):
            for candidate, value in pairs:
                if candidate.lower() == wanted:
                    return value
        return None
