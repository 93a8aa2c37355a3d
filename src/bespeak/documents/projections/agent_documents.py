"""Documents about agents (core 7.3): the identity of one, its status, and the Agent Namespace Document of /agents.

An identity document is written as JSON, YAML or a page for people (core 4.3, 5.1).
"""

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
from bespeak.text.reading.table import as_text

DOCUMENT_TYPE: Final = "agtp-identity"
SIGNATURE_MEMBER: Final = "manifest_signature"

_PASSED_ON: Final = (
    *("role", "org_domain", "governance_zone", "cert_fingerprint", "cert_status", "dns_anchor_record"),
    *("log_inclusion_proof", "package_format", "package_integrity_hash", "audit_log_uri", "escalation_policy"),
)
"""Further fields of an issuer that are published. All others stay in the operator's file: a document must not
contain code, keys, tokens or history, and an unknown field may hold any of them.
"""

_UNVERIFIED: Final = "An organisation asserts this identity; no proof of it is available."
_NO_SCORE: Final = "No trust score has been computed."
_LOW_SCORE: Final = "The trust score is low."
_LEAST_SCORE: Final = 0.5  # score below which a document carries a warning; the draft asks for one and names no bound

_SORTED: Final = msgspec.json.Encoder(order="sorted")


def project_identity(
    agent: Agent, service: Service, *, issued: str, sign: Callable[[bytes], str] | None = None
) -> dict[str, Any]:
    """Build the published document of an agent; `sign` turns canonical bytes into a detached JWS.

    `issued` is used if the document does not contain a time of issue. The signature is made and verified
    like that of the server's manifest.
    """
    said = agent.document
    issued = agent.issued_at or issued
    updated = agent.updated_at or issued
    if _is_before(updated, issued):  # core 7.3: a document is not updated before it was issued
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
        "capabilities": _list(said.get("capabilities")),
        "skills": _list(said.get("skills")),
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
    document["document_version"] = as_text(said.get("document_version")) or _version(document)
    if sign is not None:
        document["manifest_issuer"] = service.identity.server_id
        document[SIGNATURE_MEMBER] = sign(_SORTED.encode(document))
    return document


def _warning(agent: Agent, tier: int) -> dict[str, str]:
    """Return the trust warning of an identity without proof, without a score or with a low one (core 7.3)."""
    said = agent.document.get("trust_warning")
    reasons = [_UNVERIFIED] if tier == ORG_ASSERTED else []
    if agent.trust_score is None:
        reasons.append(_NO_SCORE)
    elif agent.trust_score < _LEAST_SCORE:
        reasons.append(_LOW_SCORE)
    if not reasons and not isinstance(said, str):
        return {}
    warning = said if isinstance(said, str) else UNVERIFIED if tier == ORG_ASSERTED else "trust-score-degraded"
    explained = agent.document.get("trust_explanation")
    return {
        "trust_warning": warning,
        "trust_explanation": explained if isinstance(explained, str) else " ".join(reasons),
    }


def _is_before(one: str, other: str) -> bool:
    first, second = read_instant(one), read_instant(other)
    return first is not None and second is not None and first < second


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _version(document: Mapping[str, Any]) -> str:
    """Return a revision that changes exactly when the document does."""
    return "v-" + hashlib.sha256(_SORTED.encode(document)).hexdigest()[:12]


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


SCHEMA_VERSION: Final = "1.0"
NAMESPACE_SIGNATURE: Final = "signature"

_ALGORITHM: Final = "EdDSA"
_NO_CERTIFICATE: Final = "none"


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
    return {**document, NAMESPACE_SIGNATURE: signature}


def canonical_namespace(document: dict[str, Any]) -> bytes:
    """Return the bytes that are signed."""
    return _SORTED.encode({name: value for name, value in document.items() if name != NAMESPACE_SIGNATURE})


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


MEDIA_IDENTITY_YAML: Final = "application/vnd.agtp.identity+yaml"
MEDIA_HTML: Final = "text/html"
IDENTITY_TYPES: Final = (
    *(MEDIA_IDENTITY, MEDIA_JSON, MEDIA_IDENTITY_YAML),
    *("application/yaml", "application/x-yaml", "text/yaml", MEDIA_HTML),
)
"""Media types on offer, in order of preference."""


def write_identity(document: Mapping[str, Any], media_type: str) -> tuple[bytes, str]:
    """Write a document in one of the offered types; return the text and its content type."""
    if media_type == MEDIA_HTML:
        return _page(document).encode(), f"{MEDIA_HTML}; charset=utf-8"
    if media_type.endswith("yaml"):
        import yaml  # noqa: PLC0415 - slow to load, for those who ask for it

        return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True).encode(), media_type
    return msgspec.json.format(msgspec.json.encode(document), indent=2), MEDIA_IDENTITY


def _page(document: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(_shown(value))}</td></tr>"
        for name, value in document.items()
    )
    title = html.escape(str(document.get("name") or document.get("agent_id")))
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n'
        f"<body>\n<h1>{title}</h1>\n<table>\n{rows}\n</table>\n</body>\n</html>\n"
    )


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
