"""Authentication modes of `[auth]` as OpenAPI security schemes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.projections.openapi.circumstances import Circumstances

_SCHEMES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "token": (
        "Bearer",
        {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token that names the agent and the scopes it was granted.",
        },
    ),
    "mtls": (
        "ClientCertificate",
        {"type": "mutualTLS", "description": "The agent's certificate, presented when the connection is made."},
    ),
    "signed": (
        "AgentSignature",
        {
            "type": "apiKey",
            "in": "header",
            "name": "Agent-Signature",
            "description": "A detached JWS by the agent's Ed25519 key over this one request; Agent-ID goes with it.",
        },
    ),
}


def security_schemes(modes: Iterable[str]) -> dict[str, Any]:
    """Build `components.securitySchemes`: one for each mode that proves an identity.

    In open mode headers are accepted without proof, so there is no scheme: Agent-ID is a parameter.
    """
    return dict(_SCHEMES[mode] for mode in modes if mode in _SCHEMES)


def security_of(endpoint: Endpoint, circumstances: Circumstances) -> list[dict[str, list[str]]]:
    """Return the alternatives of credentials for a call; the empty one is for anonymous callers."""
    scopes = list(endpoint.required_scopes)
    alternatives = [{_SCHEMES[mode][0]: scopes} for mode in circumstances.modes if mode in _SCHEMES]
    return alternatives if circumstances.needs_authority(endpoint) or not alternatives else [{}, *alternatives]
