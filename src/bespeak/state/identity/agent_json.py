"""Agent documents (core 7.3) and Genesis records (core 7.2), in the draft's form and the reference implementation's."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from bespeak.contract import agent as model
from bespeak.protocol.exchange.header_values import decode64
from bespeak.protocol.exchange.instant import read_instant, write_instant
from bespeak.protocol.exchange.principal import is_canonical_id, is_scope_token
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.rules import INCOMPLETE_AGENT, INVALID_GENESIS, PRIVATE_KEY, UNPROVEN_TRUST
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.rules import WRONG_CHOICE, WRONG_VALUE
from bespeak.text.reading.table import Table, is_integer
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.pointer import child


def genesis_of(record: Table) -> model.Genesis | None:
    """Read the Genesis in a table. If a field, the id or the signature is not valid, report it and return None."""
    before = len(record.findings.found)
    tier, path = read_trust(record, default=model.ORG_ASSERTED)
    owner, owner_id = record.text("owner"), record.text("owner_id")
    if owner is None and owner_id is None:
        record.missing("owner", "Name who owns the agent in `owner` or `owner_id`.")
    archetype = record.choice("archetype", model.ARCHETYPES)
    issuer_key = read_public_key(record, "issuer_public_key")
    for key in ("archetype", "issuer_public_key"):
        if record.value(key) is None:
            record.missing(key)
    if path == "log-anchored" and not record.value("log_inclusion_proof"):
        record.missing("log_inclusion_proof", "A record anchored in a log carries the proof.")
    genesis = model.Genesis(
        agent_id=model.genesis_id(record.data),
        name=record.text("name") or record.text("org_label") or "",
        owner=owner or owner_id or "",
        owner_id=owner_id or "",
        principal_id=record.text("principal_id") or "",
        archetype=archetype or "",
        governance_zone=record.need_text("governance_zone"),
        scopes=_valid_scopes(record, "scope"),
        issued_at=record.need_text("issued_at"),
        issuer=record.text("issuer") or "",
        issuer_key=issuer_key or {},
        public_key=read_public_key(record, "agent_public_key"),
        trust_tier=tier or model.ORG_ASSERTED,
        verification_path=path or model.SELF_SIGNED,
        document=record.data,
    )
    said = record.text("agent_id")
    if said is not None and said != genesis.agent_id:
        message = f"`agent_id` is {brief(said)}, but the content of the record gives {genesis.agent_id} (core 7.1)"
        record.error(INVALID_GENESIS, "agent_id", message)
    if issuer_key is not None:
        _check_signature(record, issuer_key)
    return None if any(finding.severity == "error" for finding in record.findings.found[before:]) else genesis


def read_trust(record: Table, *, default: int | None) -> tuple[int | None, str | None]:
    """Read tier and verification path of a record or document; report a contradiction."""
    tier = record.value("trust_tier")
    if tier is None:
        tier = default
    elif isinstance(tier, bool) or tier not in model.TIERS:
        record.error(WRONG_CHOICE, "trust_tier", f"`trust_tier` must be 1, 2 or 3; got {brief(tier)} (core 7.4)")
        tier = None
    path = record.choice("verification_path", model.VERIFICATION_PATHS)
    fault = model.trust_fault(tier, path) if tier is not None else None
    if fault is not None:
        advice = "Say by which proof the identity was verified, or take trust tier 2."
        record.error(UNPROVEN_TRUST, "trust_tier", f"{fault} (core 7.4)", advice)
    return tier, path


def read_public_key(record: Table, key: str) -> dict[str, str] | None:
    """Read a public Ed25519 key as the members of a JWK, from PEM, a JWK or base64url bytes."""
    value = record.value(key)
    if value is None:
        return None
    from bespeak.state.identity.jws import parse_jwk, parse_key, public_jwk  # noqa: PLC0415 - slow to load

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


def _valid_scopes(record: Table, key: str) -> tuple[str, ...]:
    given = record.texts(key)
    for scope in given:
        if not is_scope_token(scope):
            message = f"`{key}` holds {brief(scope)}, which is not a valid scope and grants nothing"
            record.warning(WRONG_VALUE, key, message, "Write domain:action in lower case.")
    return tuple(filter(is_scope_token, given))


def _check_signature(record: Table, issuer_key: dict[str, str]) -> None:
    said = record.value("signature")
    if not isinstance(said, str):
        record.need_text("signature")
        return
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - slow to load
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - slow to load

    try:
        key = Ed25519PublicKey.from_public_bytes(decode64(issuer_key["x"]) or b"")
        key.verify(decode64(said) or b"", model.canonical_genesis(record.data))
    except (InvalidSignature, ValueError):
        message = "`signature` is not by the issuer's key over this record: one of them was changed"
        record.error(INVALID_GENESIS, "signature", message)


_PEM: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})  # of private and secret JWKs (RFC 7518 6)
_NAME: Final = re.compile(r"(?:^|_)(?:private|secret)_(?:key|jwk)s?$")


def private_keys(document: Mapping[str, Any]) -> Iterator[str]:
    """Return pointers to private key material anywhere in a document, recognized by its form or its name."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        at, value = waiting.pop()
        if isinstance(value, Mapping):
            if isinstance(value.get("kty"), str) and not _MEMBERS.isdisjoint(value):
                yield at
                continue
            for name, item in value.items():
                if item and isinstance(item, str | Mapping) and _NAME.search(name.lower().replace("-", "_")):
                    yield child(at, name)
                else:
                    waiting.append((child(at, name), item))
        elif isinstance(value, list):
            waiting.extend((child(at, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and _PEM.search(value):
            yield at


_REQUIRED: Final = (
    *("agtp_version", "document_version", "description", "principal", "principal_id", "issuer", "issued_at"),
    *("updated_at", "status", "methods", "capabilities", "scopes_accepted", "trust_score"),
)  # members that a document in the draft's form must have, besides type, id and name (core 7.3)
_GUARDS: Final = (
    *("status", "scopes_accepted", "requires", "methods", "wildcards", "trust_tier", "public_key", "agent_public_key"),
    *("genesis", "principal_id", "delegation_permitted", "max_delegation_depth"),
)  # Members on which a check depends. Issuers may add others, but not ones that look like these.
_SCORE: Final = "Write a number from 0 to 1."
_ID: Final = re.compile(r'"agent_id"\s*:\s*"([0-9a-f]{64})"')


def read_agent(path: Path) -> tuple[model.Agent | None, list[Diagnostic]]:
    """Read an agent document from a file; return the agent and the findings."""
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return _unreadable(path.name.partition(".")[0]), [text]
    agent, findings = parse_agent(text, str(path))
    if agent is not None and agent.updated_at is None and not agent.is_active:
        # Core 3: a revoked agent is refused with the time of its revocation.
        with contextlib.suppress(OSError):
            agent = replace(agent, updated_at=write_instant(path.stat().st_mtime))
    return agent or _unreadable(path.name.partition(".")[0]), findings


def parse_agent(text: str, file: str) -> tuple[model.Agent | None, list[Diagnostic]]:
    """Parse an agent document. Other keys are left to the issuer, unless they look like misspellings.

    If any finding is an error, only the id is returned, if it is readable, with a status that refuses the agent: an
    agent with a broken document must not count as an unknown one.
    """
    root = json_table(text.encode(errors="surrogatepass"), file)
    if isinstance(root, Diagnostic):
        return _unreadable(*_ID.findall(text)[:1]), [root]
    agent = agent_of(root)
    return _unreadable(agent.agent_id) if root.findings.failed else agent, root.findings.found


def agent_of(root: Table) -> model.Agent:
    """Read the agent in a parsed document; its findings are in the table."""
    agent = _read(root)
    root.check_near(_GUARDS)
    for at in islice(private_keys(root.data), 20):
        advice = "Remove it, and make a new key: this one is known to whoever has the document."
        root.findings.error(PRIVATE_KEY, "an identity document is published, and this is a private key", at, advice)
    if root.value("document_type") == "agtp-identity":
        lacking = [key for key in _REQUIRED if not root.has(key)]
        if lacking:
            root.findings.warning(INCOMPLETE_AGENT, f"the identity document lacks {', '.join(lacking)} (core 7.3)")
    return agent


def _unreadable(agent_id: str = "") -> model.Agent | None:
    """Return the agent of a broken document, which is refused."""
    if not is_canonical_id(agent_id):
        return None
    return model.Agent(agent_id=agent_id, name=agent_id[:12], status=model.UNREADABLE)


def _read(root: Table) -> model.Agent:
    agent_id = root.need_text("agent_id")
    if agent_id and not is_canonical_id(agent_id):
        message = f"`agent_id` is {brief(agent_id)}, not 64 lower-case hexadecimal digits (core 7.1)"
        root.error(WRONG_VALUE, "agent_id", message)
    requires = root.table("requires")
    if requires is not None:
        requires.check_near(("scopes", "methods", "wildcards"))
    tier, path = read_trust(root, default=None)
    genesis = _read_genesis(root, agent_id)
    issued_at, updated_at = _read_times(root)
    key = "public_key" if root.has("public_key") else "agent_public_key"
    return model.Agent(
        agent_id=agent_id,
        name=root.need_text("name"),
        description=root.text("description") or "",
        status=_read_status(root),
        scopes=_valid_scopes(requires, "scopes")
        if requires and requires.has("scopes")
        else _valid_scopes(root, "scopes_accepted"),
        methods=requires.texts("methods") if requires and requires.has("methods") else root.texts("methods"),
        wildcards=bool(requires and requires.boolean("wildcards")) or root.boolean("wildcards") or False,
        trust_tier=tier if tier is not None or genesis is None else genesis.trust_tier,
        verification_path=path if path is not None or genesis is None else genesis.verification_path,
        trust_score=_read_score(root),
        principal=root.text("principal") or "",
        principal_id=root.text("principal_id"),
        owner_id=root.text("owner_id"),
        issuer=root.text("issuer") or "",
        issued_at=issued_at,
        updated_at=updated_at,
        successor=root.text("successor_agent"),
        delegation_permitted=root.boolean("delegation_permitted"),
        max_delegation_depth=_read_depth(root),
        # A rotated key is only in the document.
        public_key=read_public_key(root, key) or (genesis.public_key if genesis is not None else None),
        genesis=genesis,
        document=root.data,
    )


def _read_status(root: Table) -> str:
    """Read the lifecycle state in lower case. Revoked and retired are the same state (core 7.4)."""
    status = (root.text("status") or model.ACTIVE).lower()
    status = "retired" if status == "revoked" else status
    if status not in model.STATUSES:
        root.error(WRONG_CHOICE, "status", f"`status` must be one of {', '.join(model.STATUSES)}; got {brief(status)}")
    return status


def _read_genesis(root: Table, agent_id: str) -> model.Genesis | None:
    """Read the Genesis record in the document. It must be valid and give the id of the document."""
    record = root.table("genesis")
    genesis = genesis_of(record) if record is not None else None
    if genesis is not None and genesis.agent_id != agent_id:
        message = f"`agent_id` is {brief(agent_id)}, and the Genesis gives {genesis.agent_id} (core 7.1)"
        root.error(INVALID_GENESIS, "agent_id", message, "An id cannot be chosen; write the one of the Genesis.")
    return genesis


def _read_score(root: Table) -> float | None:
    score = root.number("trust_score")
    if score is None or 0 <= score <= 1:
        return score
    root.warning(WRONG_VALUE, "trust_score", f"`trust_score` is {brief(score)}, and counts as unknown", _SCORE)
    return None


def _read_depth(root: Table) -> int | None:
    depth = root.value("max_delegation_depth")
    if depth is None or (is_integer(depth) and depth >= 0):
        return depth
    root.wrong("max_delegation_depth", "an integer from 0 on", depth)
    return None


def _read_times(root: Table) -> tuple[str | None, str | None]:
    said = {key: root.text(key) for key in ("issued_at", "updated_at")}
    read = {key: read_instant(text) for key, text in said.items() if text is not None}
    for key, time in read.items():
        if time is None:
            message = f"`{key}` is {brief(said[key])}, which is not a valid time"
            root.warning(WRONG_VALUE, key, message, "Write it like 2026-11-16T08:00:00Z.")
    issued, updated = read.get("issued_at"), read.get("updated_at")
    if issued is not None and updated is not None and updated < issued:
        root.warning(WRONG_VALUE, "updated_at", "`updated_at` is before `issued_at` (core 7.3)")
    return said["issued_at"], said["updated_at"]
