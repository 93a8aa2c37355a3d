"""The status document of an agent (core 7.3): its lifecycle state, also if it may not act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.service import Service

SIGNATURE_MEMBER: Final = "manifest_signature"
_SORTED: Final = msgspec.json.Encoder(order="sorted")


def project_status(
    agent: Agent,
    service: Service,
    *,
    generated_at: str,
    changed_at: str | None,
    sign: Callable[[bytes], str] | None = None,
) -> dict[str, Any]:
    """Build the status of an agent; `sign` turns canonical bytes into a detached JWS, as for the identity document.

    What this server does not know, such as the last action on other servers, is left out.
    """
    identity = service.identity
    document: dict[str, Any] = {
        "document_type": "agtp-status",
        "canonical_id": agent.agent_id,
        "agent_label": agent.label,
        "org_domain": agent.document.get("org_domain") or identity.domain or identity.server_id,
        "lifecycle_state": agent.status,
        "cert_status": agent.document.get("cert_status") or "none",
        "last_updated": changed_at or agent.updated_at or agent.issued_at,
        "generated_at": generated_at,
    }
    document = {name: value for name, value in document.items() if value is not None}
    if sign is not None:
        document["manifest_issuer"] = identity.server_id
        document[SIGNATURE_MEMBER] = sign(_SORTED.encode(document))
    return document
