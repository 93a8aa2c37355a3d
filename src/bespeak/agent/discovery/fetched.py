"""What asking for a document on the web gave: every step, whether it ended well or not."""

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
"""At which step it ended."""

Source = Literal["network", "cache", "revalidated"]
"""Where an answer came from: asked for, kept, or kept and confirmed."""

_FORBIDDEN: Final = frozenset({"address", "scheme", "credentials", "plain", "private", "downgrade"})
_UNANSWERED: Final = frozenset({"name", "connection", "certificate", "timeout", "protocol"})


@dataclass(frozen=True, slots=True)
class FetchFault:
    """Why there is no document."""

    kind: FaultKind
    message: str
    url: str
    """Where it happened, which after a redirect is not where it began."""
    retry_after: float | None = None
    """Seconds after which the server wants to be asked again."""

    @property
    def rule(self) -> Rule:
        """The rule such a fault is reported under."""
        if self.kind == "robots":
            return ROBOTS_DISALLOWED
        return (
            ADDRESS_REFUSED if self.kind in _FORBIDDEN else UNREACHABLE if self.kind in _UNANSWERED else UNUSABLE_ANSWER
        )


@dataclass(frozen=True, slots=True)
class Hop:
    """A redirect that was followed."""

    url: str
    status: int
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The end of one attempt to have a document."""

    what: str
    """What was asked for, in words: `the robots.txt`."""
    url: str
    final_url: str
    status: int | None = None
    """The last status that came, also where the answer could not be used."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the last answer, names in lower case. Never Set-Cookie; of a kept answer only those that matter."""
    body: bytes = b""
    """Decoded, and complete if there is no fault."""
    hops: tuple[Hop, ...] = ()
    attempts: int = 0
    """Requests that were sent; none if the answer was kept."""
    seconds: float = 0.0
    """How long it took in all, waiting included."""
    first_seconds: float | None = None
    """How long the first answer took, from the request to the whole body."""
    source: Source = "network"
    fault: FetchFault | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a document."""
        return self.fault is None

    @property
    def is_missing(self) -> bool:
        """Whether the server says that it has no such document."""
        return self.status in (404, 410)

    @property
    def media_type(self) -> str:
        """The type without its parameters, in small letters."""
        return essence(self.headers.get("content-type", ""))
