"""The public identity document of an agent: a superset of both forms in use (core 7.3)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.policy import FLOOR_METHODS
from bespeak.contract.service import AGTP_VERSION, Service
from bespeak.contract.trust import ORG_ASSERTED, SELF_SIGNED, UNVERIFIED
from bespeak.protocol.exchange.instant import read_instant
from bespeak.text.reading.untyped import as_text

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
_LEAST_SCORE: Final = 0.5
"""Score below which a document carries a warning; the draft asks for one and names no bound."""

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
