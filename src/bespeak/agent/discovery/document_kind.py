"""The kinds of documents that are asked for: how large each may be, and in which media types it comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.agent.discovery.robots import MOST_BYTES
from bespeak.protocol.exchange.media_type import is_json

DAY: Final = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKind:
    """What to ask for, and what to take."""

    what: str
    accept: str
    most: int
    """Bytes, decoded."""
    types: frozenset[str] = frozenset()
    """Media types beside JSON's own; none at all means that any is taken."""
    any_type: bool = False
    cut: bool = False
    """Whether of a larger document the beginning counts, and not nothing."""
    method: str = "GET"
    """POST where a document is the answer of an endpoint; such an answer is not kept, and not looked for elsewhere."""
    default_age: float = 0.0
    """Seconds for which it is good where the server says nothing."""

    def takes(self, media_type: str) -> bool:
        """Whether a media type is one of this kind."""
        return self.any_type or is_json(media_type) or media_type in self.types


_YAML: Final = frozenset({"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"})

DISCOVERY: Final = DocumentKind(what="the discovery document", accept="application/json", most=256_000)
SUMMARY: Final = DocumentKind(what="the AGIS summary", accept="application/json", most=256_000)
MANIFEST: Final = DocumentKind(
    what="the manifest", accept="application/vnd.agtp.manifest+json", most=16_000_000, method="POST"
)
FACE: Final = DocumentKind(what="the face of AGTP", accept="application/vnd.agtp.manifest+json", most=16_000_000)
"""What a host says to somebody who only looks whether it speaks AGTP over HTTP."""
AGIS: Final = DocumentKind(
    what="the AGIS document",
    accept="application/agis+json, application/agis, application/yaml;q=0.5",
    most=4_000_000,
    types=_YAML | {"application/agis", "text/agis"},
)
OPENAPI: Final = DocumentKind(
    what="the OpenAPI description",
    accept="application/vnd.oai.openapi+json, application/json;q=0.9, application/yaml;q=0.5",
    most=40_000_000,
    types=_YAML | {"application/vnd.oai.openapi", "text/plain"},
)
ROBOTS: Final = DocumentKind(
    what="the robots.txt", accept="text/plain", most=MOST_BYTES, any_type=True, cut=True, default_age=DAY
)
