"""Kinds of documents to fetch, with their size limits and media types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.agent.discovery import robots
from bespeak.documents.openapi.description import MOST_BYTES
from bespeak.protocol.exchange.media_type import is_json

DAY: Final = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKind:
    """Kind of document: how to request it, and what to accept."""

    what: str
    accept: str
    most: int
    """Maximum number of decoded bytes."""
    types: frozenset[str] = frozenset()
    """Accepted media types besides those of JSON; if empty, all are accepted."""
    any_type: bool = False
    cut: bool = False
    """True if a larger document is truncated instead of rejected."""
    method: str = "GET"
    """HTTP method; POST if the document is the reply of an endpoint. Such a reply is not cached, and redirects are
    not followed.
    """
    default_age: float = 0.0
    """Seconds of freshness if the server gives none."""

    def takes(self, media_type: str) -> bool:
        """Return True if a media type is accepted for this kind."""
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
CARD: Final = DocumentKind(what="the agent card", accept="application/json", most=1_000_000)
"""Agent card of A2A."""
ROBOTS: Final = DocumentKind(
    what="the robots.txt", accept="text/plain", most=robots.MOST_BYTES, any_type=True, cut=True, default_age=DAY
)
