"""The MCP server card: what a client reads of an MCP server before it connects (SEP-2127)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.documents.ai.param_notation import cut
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.introduction import describe_service, publisher_of, short_name

INTERFACE: Final = "/mcp"
"""Path of the MCP server."""
PATH: Final = f"{INTERFACE}/server-card"
MEDIA_TYPE: Final = "application/mcp-server-card+json"
SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
"""Schema that cards name. Stored copies of the extension disagree about the version, so it is stated here alone."""
VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""Revisions of MCP that the server speaks: those of the SDK."""

_LONGEST: Final = 100
"""Maximum length of title and description."""


def project_server_card(
    service: Service,
    endpoints: Iterable[Endpoint],
    settings: HttpSettings,
    modes: Sequence[str],
    *,
    version: str,
    issuer: str | None = None,
) -> dict[str, Any]:
    """Build the card of a service whose URL is known. It lists no tools: clients ask the server for them.

    `modes` are the authentication modes of `[auth]`, and `issuer` is that of its tokens. `version` is that of the
    manifest.
    """
    assert settings.url is not None, "there is a card only if its URL is known"
    identity = service.identity
    remote: dict[str, Any] = {
        "type": "streamable-http",
        "url": f"{settings.url}{INTERFACE}",
        "supportedProtocolVersions": list(VERSIONS),
    }
    headers = list(_headers(modes, issuer))
    if headers:
        remote["headers"] = headers
    publisher = ".".join(reversed(publisher_of(service, settings.url).split(".")))
    listed = (endpoint for endpoint in endpoints if endpoint.is_listed)
    return {
        "$schema": SCHEMA,
        "name": f"{publisher}/{short_name(service)}",
        "title": cut(identity.name or identity.server_id, _LONGEST),
        "description": describe_service(service, listed, _LONGEST),
        "version": version[:255],
        "remotes": [remote],
    }


def _headers(modes: Sequence[str], issuer: str | None) -> Iterator[dict[str, Any]]:
    """Yield the headers that a user has to supply. Clients get the tokens of an issuer on the web by themselves."""
    if "token" in modes and not (issuer or "").startswith("https://"):
        yield {
            "name": "Authorization",
            "description": "Bearer, a space and a token that names the agent and its scopes.",
            "isRequired": not {"open", "mtls"} & set(modes),
            "isSecret": True,
        }
    if "open" in modes:
        yield {"name": "Agent-ID", "description": "The id of the agent: 64 hexadecimal digits.", "isRequired": False}
        yield {"name": "Authority-Scope", "description": "The scopes of the calls, with commas.", "isRequired": False}
