"""Request and Response: frozen and free of any transport."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bespeak.protocol.exchange.headers import NO_HEADERS, HeaderBlock


class Connection:
    """What stays the same between the requests of one connection.

    `answered` counts the responses sent, so that the first one can introduce the server (Supported-Methods).
    """

    __slots__ = ("address", "answered", "certificate", "face", "peer", "secure")

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
        """The host alone, which all connections of one machine share."""
        self.secure = secure
        self.certificate = certificate
        """The client's certificate in DER, which TLS has verified against the authorities of this server."""
        self.answered = 0


class Request(msgspec.Struct, frozen=True, gc=False):
    """One call as it arrived: nothing decoded, nothing believed."""

    method: str
    path: str
    """The target up to the first `?`, percent-encoding untouched."""
    query: str
    headers: Mapping[str, str]
    """Names in lower case, each at most once."""
    body: bytes
    connection: Connection
    reads: bool = False
    """True for a request that promises to change nothing, a GET of HTTP."""


class Malformed(msgspec.Struct, frozen=True):
    """A message that could not be read; the transport closes after the answer, for the framing is lost."""

    status: int
    code: str
    message: str


class Response(msgspec.Struct, frozen=True, gc=False):
    """One answer. A transport adds framing (Content-Length) and nothing else."""

    status: int
    body: bytes = b""
    block: HeaderBlock = NO_HEADERS
    """Headers known before the request came."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of this answer alone."""
    code: str | None = None
    """The machine-readable name of a refusal; None for any other answer."""

    def header(self, name: str) -> str | None:
        """The value of a header, by name in any case."""
        wanted = name.lower()
        for pairs in (self.headers, self.block.pairs):
            for candidate, value in pairs:
                if candidate.lower() == wanted:
                    return value
        return None
