"""Documents about agents (core 7.3): identity as JSON, YAML or a page (core 4.3, 5.1), status, and namespace."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.agent import ORG_ASSERTED, SELF_SIGNED, UNVERIFIED, Agent
from bespeak.contract.policy import FLOOR_METHODS
from bespeak.contract.service import AGTP_VERSION, Service
from bespeak.protocol.exchange.headers import MEDIA_IDENTITY, MEDIA_JSON
from bespeak.protocol.exchange.instant import read_instant
from bespeak.text.reading.table import as_list, as_text

DOCUMENT_TYPE: Final = "agtp-identity"
SIGNATURE_MEMBER: Final = "manifest_signature"

_PASSED_ON: Final = (
    *("role", "org_domain", "governance_zone", "cert_fingerprint", "cert_status", "dns_anchor_record"),
    *("log_inclusion_proof", "package_format", "package_integrity_hash", "audit_log_uri", "escalation_policy"),
)
"""Further fields of an issuer that are published. All others stay in the operator's file: a document must not
contain code, keys, tokens or history, and an unknown field may hold any of them.
"""

_LEAST_SCORE: Final = 0.5  # score below which a document carries a warning; the draft asks for one and names no bound

Sign = Callable[[bytes], str]  # turns canonical bytes into a detached JWS
_SORTED: Final = msgspec.json.Encoder(order="sorted")


def project_identity(agent: Agent, service: Service, *, issued: str, sign: Sign | None = None) -> dict[str, Any]:
    """Build the document of an agent, signed like a manifest; `issued` is the time of issue if it contains none."""
    said = agent.document
    issued = agent.issued_at or issued
    updated = agent.updated_at or issued
    then, later = read_instant(issued), read_instant(updated)
    if then is not None and later is not None and later < then:  # core 7.3: not updated before it was issued
        issued = updated = agent.issued_at or updated
    tier = agent.trust_tier or ORG_ASSERTED
    document: dict[str, Any] = {
        "agtp_version": AGTP_VERSION,
        "document_type": DOCUMENT_TYPE,
        "document_version": "",
        "agent_id": agent.agent_id,
        "name": agent.name,
        "description": agent.description,
        "principal": agent.principal,
        "principal_id": agent.principal_id or agent.owner_id or "",
        "owner_id": agent.owner_id or agent.principal_id or "",
        "issuer": agent.issuer or f"agtp://{service.identity.server_id}",
        "issued_at": issued,
        "updated_at": updated,
        "status": agent.status,
        "methods": list(dict.fromkeys((*FLOOR_METHODS, *agent.methods))),
        "capabilities": [*as_list(said.get("capabilities"))],
        "skills": [*as_list(said.get("skills"))],
        "scopes_accepted": list(agent.scopes),
        "requires": {"methods": list(agent.methods), "scopes": list(agent.scopes), "wildcards": agent.wildcards},
        "wildcards": agent.wildcards,
        "trust_score": agent.trust_score or 0.0,
        # AGTP-TRUST: a score comes with the time it was computed; existing clients reject one without.
        "trust_score_computed_at": as_text(said.get("trust_score_computed_at")) or updated,
        "trust_tier": tier,
        "verification_path": agent.verification_path or SELF_SIGNED,
        "delegation_permitted": agent.delegation_permitted,
        "max_delegation_depth": agent.max_delegation_depth,
        "successor_agent": agent.successor,
        **{name: said.get(name) for name in _PASSED_ON},
        **_warning(agent, tier),
    }
    document = {name: value for name, value in document.items() if value is not None}
    # The revision changes exactly when the document does.
    revision = "v-" + hashlib.sha256(_SORTED.encode(document)).hexdigest()[:12]
    document["document_version"] = as_text(said.get("document_version")) or revision
    return _signed(document, service, sign)


def _signed(document: dict[str, Any], service: Service, sign: Sign | None) -> dict[str, Any]:
    if sign is not None:
        document["manifest_issuer"] = service.identity.server_id
        document[SIGNATURE_MEMBER] = sign(_SORTED.encode(document))
    return document


def _warning(agent: Agent, tier: int) -> dict[str, str]:
    """Return the trust warning of an identity without proof, without a score or with a low one (core 7.3)."""
    said = agent.document.get("trust_warning")
    reasons = []
    if tier == ORG_ASSERTED:
        reasons.append("An organisation asserts this identity; no proof of it is available.")
    if agent.trust_score is None:
        reasons.append("No trust score has been computed.")
    elif agent.trust_score < _LEAST_SCORE:
        reasons.append("The trust score is low.")
    if not reasons and not isinstance(said, str):
        return {}
    warning = said if isinstance(said, str) else UNVERIFIED if tier == ORG_ASSERTED else "trust-score-degraded"
    explained = agent.document.get("trust_explanation")
    return {
        "trust_warning": warning,
        "trust_explanation": explained if isinstance(explained, str) else " ".join(reasons),
    }


def project_status(
    agent: Agent, service: Service, *, generated_at: str, changed_at: str | None, sign: Sign | None = None
) -> dict[str, Any]:
    """Build the status of an agent, without what this server does not know, such as the last action elsewhere."""
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
    return _signed({name: value for name, value in document.items() if value is not None}, service, sign)


SCHEMA_VERSION: Final = "1.0"
NAMESPACE_SIGNATURE: Final = "signature"


def project_namespace(
    agents: Iterable[Agent], service: Service, *, generated_at: str, sign: Sign | None = None, key_id: str | None = None
) -> dict[str, Any]:
    """List the active, non-experimental agents of a server by label; `key_id` is the thumbprint of the key.

    Readers refuse a document that is older than its freshness, so it must be renewed in time.
    """
    shown = [agent for agent in agents if agent.is_discoverable]
    shown.sort(key=lambda agent: (agent.label, agent.agent_id))
    zones = {agent.governance_zone for agent in shown}
    host = (service.agtp or service.identity.server_id).removeprefix("agtp://").rstrip("/")
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    document: dict[str, Any] = {
        "document_type": "agtp-namespace",
        "schema_version": SCHEMA_VERSION,
        "org_domain": service.identity.domain or host,
        "governance_zone": zones.pop() if len(zones) == 1 else None,
        "generated_at": generated_at,
        "agents": [
            {
                "agent_label": agent.label,
                "canonical_id": agent.agent_id,
                "lifecycle_state": agent.status,
                "trust_tier": agent.trust_tier or ORG_ASSERTED,
                "cert_status": agent.document.get("cert_status") or "none",
                "manifest_uri": f"agtp://{agent.agent_id}@{host}",
                "activated_at": agent.issued_at,
                "last_updated": agent.updated_at or agent.issued_at,
            }
            for agent in shown
        ],
        "total_active": len(shown),
        "namespace_cert_fingerprint": None,
    }
    signature = None
    if sign is not None:
        signature = {"algorithm": "EdDSA", "key_id": key_id, "value": sign(canonical_namespace(document))}
    return {**document, NAMESPACE_SIGNATURE: signature}


def canonical_namespace(document: dict[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    return _SORTED.encode({name: value for name, value in document.items() if name != NAMESPACE_SIGNATURE})


MEDIA_IDENTITY_YAML: Final = "application/vnd.agtp.identity+yaml"
MEDIA_HTML: Final = "text/html"
IDENTITY_TYPES: Final = (
    *(MEDIA_IDENTITY, MEDIA_JSON, MEDIA_IDENTITY_YAML),
    *("application/yaml", "application/x-yaml", "text/yaml", MEDIA_HTML),
)


def write_identity(document: Mapping[str, Any], media_type: str) -> tuple[bytes, str]:
    """Write a document in one of the offered types; return the text and its content type."""
    if media_type == MEDIA_HTML:
        return _page(document).encode(), f"{MEDIA_HTML}; charset=utf-8"
    if media_type.endswith("yaml"):
        import yaml  # noqa: PLC0415 - slow to load, for those who ask for it

        return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True).encode(), media_type
    return msgspec.json.format(msgspec.json.encode(document), indent=2), MEDIA_IDENTITY


def _page(document: Mapping[str, Any]) -> str:
    rows = ""
    for name, value in document.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        rows += f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>\n"
    title = html.escape(str(document.get("name") or document.get("agent_id")))
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n<table>\n{rows}</table>\n</body>\n</html>\n"
    )
