"""How a caller proves who it is, as security schemes: what `[auth]` asks for."""

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
    """`components.securitySchemes`: one for each mode that proves something.

    In open mode headers are believed, so that there is nothing to call security: Agent-ID is a parameter.
    """
    return dict(_SCHEMES[mode] for mode in modes if mode in _SCHEMES)


def security_of(endpoint: Endpoint, circumstances: Circumstances) -> list[dict[str, list[str]]]:
    """What a call must present, one of several; the empty one is for callers who need not say who they are."""
    scopes = list(endpoint.required_scopes)
    alternatives = [{_SCHEMES[mode][0]: scopes} for mode in circumstances.modes if mode in _SCHEMES]
    return alternatives if circumstances.needs_authority(endpoint) or not alternatives else [{}, *alternatives]
