"""The AI catalog of a host: which agent-facing documents there are, and of which type each is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.service import UNSPECIFIED, Service
from bespeak.documents.introduction import publisher_of, short_name

PATH: Final = "/.well-known/ai-catalog.json"
MEDIA_TYPE: Final = "application/ai-catalog+json"
MCP_PATH: Final = "/.well-known/mcp/catalog.json"
"""Path of the older catalog, which lists MCP servers alone."""

_VERSION: Final = "1.0"
_MCP_VERSION: Final = "draft"


@dataclass(frozen=True, slots=True)
class Artifact:
    """One document of a service."""

    kind: str
    """Short name of its protocol or format, a part of its identifier: `mcp`, `openapi`."""
    type: str
    """The media type with which it is served."""
    url: str
    about: str


def project_catalog(service: Service, url: str, artifacts: Iterable[Artifact], *, updated: str) -> dict[str, Any]:
    """Build the catalog of a service at `url`. `updated` is the time of its last change."""
    identity = service.identity
    name = identity.name or identity.server_id
    publisher, own = publisher_of(service, url), short_name(service)
    operator = identity.operator if identity.operator not in ("", UNSPECIFIED) else name
    return {
        "specVersion": _VERSION,
        "host": {"displayName": operator, "identifier": publisher},
        "entries": [
            {
                "identifier": f"urn:air:{publisher}:{artifact.kind}:{own}",
                "displayName": name,
                "type": artifact.type,
                "url": artifact.url,
                "description": artifact.about,
                "tags": [artifact.kind],
                "updatedAt": updated,
            }
            for artifact in artifacts
        ],
    }


def project_mcp_catalog(service: Service, url: str, card: Artifact) -> dict[str, Any]:
    """Build the older catalog, with the one MCP server."""
    return {
        "specVersion": _MCP_VERSION,
        "entries": [
            {
                "identifier": f"urn:air:{publisher_of(service, url)}:{card.kind}:{short_name(service)}",
                "displayName": service.identity.name or service.identity.server_id,
                "type": card.type,
                "url": card.url,
            }
        ],
    }
