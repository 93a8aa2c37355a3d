"""Agent Genesis records (core 7.2): the form of the draft, and the form of the reference implementation."""

from __future__ import annotations

from bespeak.contract.genesis import ARCHETYPES, Genesis, canonical_genesis, genesis_id
from bespeak.contract.trust import ORG_ASSERTED, SELF_SIGNED, TIERS, VERIFICATION_PATHS, trust_fault
from bespeak.protocol.exchange.base64url import decode64
from bespeak.protocol.exchange.scope import is_scope_token
from bespeak.protocol.fault import Fault
from bespeak.state.identity.rules import INVALID_GENESIS, UNPROVEN_TRUST
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import WRONG_CHOICE, WRONG_VALUE
from bespeak.text.reading.table import Table


def genesis_of(record: Table) -> Genesis | None:
    """Read the Genesis in a table. If a field, the id or the signature is not valid, report it and return None."""
    before = len(record.findings.found)
    tier, path = read_trust(record, default=ORG_ASSERTED)
    owner, owner_id = record.text("owner"), record.text("owner_id")
    if owner is None and owner_id is None:
        record.missing("owner", "Name who owns the agent in `owner` or `owner_id`.")
    archetype = record.choice("archetype", ARCHETYPES)
    issuer_key = read_public_key(record, "issuer_public_key")
    for key in ("archetype", "issuer_public_key"):
        if record.value(key) is None:
            record.missing(key)
    if path == "log-anchored" and not record.value("log_inclusion_proof"):
        record.missing("log_inclusion_proof", "A record anchored in a log carries the proof.")
    genesis = Genesis(
        agent_id=genesis_id(record.data),
        name=record.text("name") or record.text("org_label") or "",
        owner=owner or owner_id or "",
        owner_id=owner_id or "",
        principal_id=record.text("principal_id") or "",
        archetype=archetype or "",
        governance_zone=record.need_text("governance_zone"),
        scopes=tuple(scope for scope in record.texts("scope") if _is_scope(record, scope)),
        issued_at=record.need_text("issued_at"),
        issuer=record.text("issuer") or "",
        issuer_key=issuer_key or {},
        public_key=read_public_key(record, "agent_public_key"),
        trust_tier=tier or ORG_ASSERTED,
        verification_path=path or SELF_SIGNED,
        document=record.data,
    )
    _check_id(record, genesis.agent_id)
    if issuer_key is not None:
        _check_signature(record, issuer_key)
    failed = any(finding.severity == "error" for finding in record.findings.found[before:])
    return None if failed else genesis


def read_trust(record: Table, *, default: int | None) -> tuple[int | None, str | None]:
    """Read tier and verification path of a record or document; report a contradiction."""
    tier = record.value("trust_tier")
    if tier is None:
        tier = default
    elif isinstance(tier, bool) or tier not in TIERS:
        message = f"`trust_tier` must be 1, 2 or 3; got {brief(tier)} (core 7.4)"
        record.error(WRONG_CHOICE, "trust_tier", message)
        tier = None
    path = record.choice("verification_path", VERIFICATION_PATHS)
    fault = trust_fault(tier, path) if tier is not None else None
    if fault is not None:
        advice = "Say by which proof the identity was verified, or take trust tier 2."
        record.error(UNPROVEN_TRUST, "trust_tier", f"{fault} (core 7.4)", advice)
    return tier, path


def read_public_key(record: Table, key: str) -> dict[str, str] | None:
    """Read a public Ed25519 key as the members of a JWK, from PEM, a JWK or base64url bytes."""
    value = record.value(key)
    if value is None:
        return None
    from bespeak.state.identity.key_text import parse_jwk, parse_key, public_jwk  # noqa: PLC0415 - slow to load

    if isinstance(value, str):
        found = parse_key(value)
    elif isinstance(value, dict):
        found = parse_jwk(value)
    else:
        record.wrong(key, "a key in PEM, JWK or base64url form", value)
        return None
    if isinstance(found, Fault):
        # The fault may repeat what the key is made of.
        message = f"`{key}` is not an Ed25519 key in PEM, JWK or base64url form"
        record.error(WRONG_VALUE, key, message, "Print one with bespeak keys show.")
        return None
    return public_jwk(found)


def _is_scope(record: Table, scope: str) -> bool:
    if is_scope_token(scope):
        return True
    message = f"`scope` holds {brief(scope)}, which is not a valid scope and grants nothing"
    record.warning(WRONG_VALUE, "scope", message, "Write domain:action in lower case.")
    return False


def _check_id(record: Table, agent_id: str) -> None:
    said = record.text("agent_id")
    if said is not None and said != agent_id:
        message = f"`agent_id` is {brief(said)}, but the content of the record gives {agent_id} (core 7.1)"
        record.error(INVALID_GENESIS, "agent_id", message)


def _check_signature(record: Table, issuer_key: dict[str, str]) -> None:
    said = record.value("signature")
    if not isinstance(said, str):
        record.need_text("signature")
        return
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - slow to load
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - slow to load

    try:
        key = Ed25519PublicKey.from_public_bytes(decode64(issuer_key["x"]) or b"")
        key.verify(decode64(said) or b"", canonical_genesis(record.data))
    except (InvalidSignature, ValueError):
        message = "`signature` is not by the issuer's key over this record: one of them was changed"
        record.error(INVALID_GENESIS, "signature", message)
