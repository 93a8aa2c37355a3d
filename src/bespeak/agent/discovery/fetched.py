"""Result of fetching a document from the web, with every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from bespeak.documents.ai.rules import ADDRESS_REFUSED, ROBOTS_DISALLOWED, UNREACHABLE, UNUSABLE_ANSWER
from bespeak.protocol.exchange.media_type import essence
from bespeak.text.diagnostics.rule import Rule

FaultKind = Literal[
    "address",
    "scheme",
    "credentials",
    "plain",
    "private",
    "name",
    "connection",
    "certificate",
    "timeout",
    "protocol",
    "redirect",
    "downgrade",
    "status",
    "rate",
    "robots",
    "size",
    "encoding",
    "type",
]
"""Step at which the fetch failed."""

Source = Literal["network", "cache", "revalidated"]
"""Origin of a response: requested, cached, or cached and revalidated."""

_FORBIDDEN: Final = frozenset({"address", "scheme", "credentials", "plain", "private", "downgrade"})
_UNANSWERED: Final = frozenset({"name", "connection", "certificate", "timeout", "protocol"})


@dataclass(frozen=True, slots=True)
class FetchFault:
    """Reason why a document could not be fetched."""

    kind: FaultKind
    message: str
    url: str
    """Address that failed; after a redirect it differs from the requested one."""
    retry_after: float | None = None
    """Seconds after which the server allows another request."""

    @property
    def rule(self) -> Rule:
        """Rule that reports this kind of fault."""
        if self.kind == "robots":
            return ROBOTS_DISALLOWED
        return (
            ADDRESS_REFUSED if self.kind in _FORBIDDEN else UNREACHABLE if self.kind in _UNANSWERED else UNUSABLE_ANSWER
        )


@dataclass(frozen=True, slots=True)
class Hop:
    """Redirect that was followed."""

    url: str
    status: int
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Result of one attempt to fetch a document."""

    what: str
    """Name of the document for messages: `the robots.txt`."""
    url: str
    final_url: str
    status: int | None = None
    """Last status received, even if the response was unusable."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the last response, with lower-case names and without Set-Cookie; reduced for a cached response."""
    body: bytes = b""
    """Decoded body, complete if there is no fault."""
    hops: tuple[Hop, ...] = ()
    attempts: int = 0
    """Number of requests sent; 0 for a cached response."""
    seconds: float = 0.0
    """Total duration, including delays."""
    first_seconds: float | None = None
    """Duration of the first response, from the request to the end of the body."""
    source: Source = "network"
    fault: FetchFault | None = None

    @property
    def ok(self) -> bool:
        """True if the document was fetched."""
        return self.fault is None

    @property
    def is_missing(self) -> bool:
        """True if the server reports that the document does not exist."""
        return self.status in (404, 410)

    @property
    def media_type(self) -> str:
        """Media type in lower case, without parameters."""
        return essence(self.headers.get("content-type", ""))
