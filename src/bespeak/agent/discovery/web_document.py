"""A document on the web: its kind with size limit and media types, and the result of fetching it with every step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from bespeak.agent.discovery import robots
from bespeak.documents.openapi.description import MOST_BYTES
from bespeak.documents.rules import ADDRESS_REFUSED, ROBOTS_DISALLOWED, UNREACHABLE, UNUSABLE_ANSWER
from bespeak.protocol.exchange.headers import essence, is_json
from bespeak.text.diagnostics.diagnostic import Rule

DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """Kind of document: how to request it, and what to accept."""

    what: str
    accept: str
    most: int  # maximum number of decoded bytes
    types: frozenset[str] = frozenset()  # accepted media types besides those of JSON; if empty, all are accepted
    any_type: bool = False
    cut: bool = False  # True if a larger document is truncated instead of rejected
    method: str = "GET"  # POST if the document is the reply of an endpoint: not cached, and redirects are not followed
    default_age: float = 0.0  # seconds of freshness if the server gives none

    def takes(self, media_type: str) -> bool:
        return self.any_type or is_json(media_type) or media_type in self.types


_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"})

DISCOVERY: Final = DocumentKind(what="the discovery document", accept="application/json", most=256_000)
SUMMARY: Final = DocumentKind(what="the AGIS summary", accept="application/json", most=256_000)
MANIFEST: Final = DocumentKind(
    what="the manifest", accept="application/vnd.agtp.manifest+json", most=16_000_000, method="POST"
)
FACE: Final = DocumentKind(what="the face of AGTP", accept="application/vnd.agtp.manifest+json", most=16_000_000)
"""Response of a host to a probe for AGTP over HTTP."""
AGIS: Final = DocumentKind(
    what="the AGIS document",
    accept="application/agis+json, application/agis, application/yaml;q=0.5",
    most=4_000_000,
    types=_YAML | {"application/agis", "text/agis"},
)
OPENAPI: Final = DocumentKind(
    what="the OpenAPI description",
    accept="application/vnd.oai.openapi+json, application/json;q=0.9, application/yaml;q=0.5",
    most=MOST_BYTES,
    types=_YAML | {"application/vnd.oai.openapi", "text/plain"},
)
CARD: Final = DocumentKind(what="the agent card", accept="application/json", most=1_000_000)  # Agent card of A2A
ROBOTS: Final = DocumentKind(
    what="the robots.txt", accept="text/plain", most=robots.MOST_BYTES, any_type=True, cut=True, default_age=DAY
)


_Forbidden = Literal["address", "scheme", "credentials", "plain", "private", "downgrade"]
_Unanswered = Literal["name", "connection", "certificate", "timeout", "protocol"]
FaultKind = Literal[_Forbidden, _Unanswered, "redirect", "status", "rate", "robots", "size", "encoding", "type"]
"""Step at which the fetch failed."""

Source = Literal["network", "cache", "revalidated"]  # Requested, cached, or cached and revalidated.

_RULES: Final[dict[FaultKind, Rule]] = {
    **dict.fromkeys(get_args(_Forbidden), ADDRESS_REFUSED),
    **dict.fromkeys(get_args(_Unanswered), UNREACHABLE),
    "robots": ROBOTS_DISALLOWED,
}


@dataclass(frozen=True, slots=True)
class FetchFault:
    kind: FaultKind
    message: str
    url: str  # address that failed; after a redirect it differs from the requested one
    retry_after: float | None = None  # seconds after which the server allows another request

    @property
    def rule(self) -> Rule:
        return _RULES.get(self.kind, UNUSABLE_ANSWER)


@dataclass(frozen=True, slots=True)
class RedirectHop:
    url: str
    status: int
    location: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    what: str  # name of the document for messages: `the robots.txt`
    url: str
    final_url: str
    status: int | None = None  # last status received, even if the response was unusable
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the last response, with lower-case names and without Set-Cookie; reduced for a cached response."""
    body: bytes = b""  # decoded body, complete if there is no fault
    hops: tuple[RedirectHop, ...] = ()
    attempts: int = 0  # number of requests sent; 0 for a cached response
    seconds: float = 0.0  # total duration, including delays
    first_seconds: float | None = None  # duration of the first response, from the request to the end of the body
    source: Source = "network"
    fault: FetchFault | None = None

    @property
    def ok(self) -> bool:
        return self.fault is None

    @property
    def is_missing(self) -> bool:
        """True if the server reports that the document does not exist."""
        return self.status in (404, 410)

    @property
    def media_type(self) -> str:
        """Media type in lower case, without parameters."""
        return essence(self.headers.get("content-type", ""))
