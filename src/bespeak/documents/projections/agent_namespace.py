"""The Agent Namespace Document of /agents (core 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.service import Service
from bespeak.contract.trust import ORG_ASSERTED

SCHEMA_VERSION: Final = "1.0"
SIGNATURE_MEMBER: Final = "signature"

_ALGORITHM: Final = "EdDSA"
_NO_CERTIFICATE: Final = "none"
_SORTED: Final = msgspec.json.Encoder(order="sorted")


def project_namespace(
    agents: Iterable[Agent],
    service: Service,
    *,
    generated_at: str,
    sign: Callable[[bytes], str] | None = None,
    key_id: str | None = None,
) -> dict[str, Any]:
    """List the active, non-experimental agents of a server by label.

    `sign` makes a detached JWS of the canonical bytes: the document without `signature` as UTF-8 JSON, members sorted,
    no white space; `key_id` is the thumbprint of the key. Readers refuse a document that is older than its freshness,
    so it must be renewed in time.
    """
    shown = sorted(
        (agent for agent in agents if agent.is_discoverable), key=lambda agent: (agent.label, agent.agent_id)
    )
    document: dict[str, Any] = {
        "document_type": "agtp-namespace",
        "schema_version": SCHEMA_VERSION,
        "org_domain": service.identity.domain or _host(service),
        "governance_zone": _common_zone(shown),
        "generated_at": generated_at,
        "agents": [_entry(agent, service) for agent in shown],
        "total_active": len(shown),
        "namespace_cert_fingerprint": None,
    }
    signature = None
    if sign is not None:
        signature = {"algorithm": _ALGORITHM, "key_id": key_id, "value": sign(canonical_namespace(document))}
    return {**document, SIGNATURE_MEMBER: signature}


def canonical_namespace(document: dict[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    return _SORTED.encode({name: value for name, value in document.items() if name != SIGNATURE_MEMBER})


def _entry(agent: Agent, service: Service) -> dict[str, Any]:
    return {
        "agent_label": agent.label,
        "canonical_id": agent.agent_id,
        "lifecycle_state": agent.status,
        "trust_tier": agent.trust_tier or ORG_ASSERTED,
        "cert_status": agent.document.get("cert_status") or _NO_CERTIFICATE,
        "manifest_uri": f"agtp://{agent.agent_id}@{_host(service)}",
        "activated_at": agent.issued_at,
        "last_updated": agent.updated_at or agent.issued_at,
    }


def _host(service: Service) -> str:
    """Return the host of the server, from its address or its id."""
    name = (service.agtp or service.identity.server_id).removeprefix("agtp://").rstrip("/")
    return f"[{name}]" if name.count(":") > 1 and not name.startswith("[") else name


def _common_zone(agents: list[Agent]) -> str | None:
    """Return the governance zone if all listed agents share it."""
    zones = {agent.governance_zone for agent in agents}
    return zones.pop() if len(zones) == 1 else None
