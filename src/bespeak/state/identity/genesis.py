"""Agent Genesis: issuing and verifying the signed records that agent ids come from (core 7.1, 7.2)."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from typing import Any

from bespeak.contract.agent import GENESIS_VERSION, ORG_ASSERTED, SELF_SIGNED, Genesis, canonical_genesis
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.refusal import Fault, Refused, unprocessable
from bespeak.state.identity.agent_json import genesis_of
from bespeak.state.identity.jws import PrivateKey, parse_jwk
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Location


def issue_genesis(
    key: PrivateKey,
    *,
    owner: str,
    scopes: Collection[str] = (),
    public_key: Mapping[str, str] | None = None,
    **members: Any,
) -> Genesis | Refused:
    """Issue the record of a new agent, signed with the issuer's key; its `document` is given to the agent.

    `public_key` is the agent's own, as the members of a JWK. `members` are others of the record: `name`, `issuer` and
    `issued_at`, and those that have a default or need none, like `archetype`, `org_domain` and `package_ref`. A record
    that breaks a rule is refused.
    """
    pem = None
    if public_key is not None:
        agent_key = parse_jwk(public_key)
        if isinstance(agent_key, Fault):
            return unprocessable("genesis-invalid", f"The agent's public key cannot be used: {agent_key.message}.")
        pem = agent_key.as_pem(private=False).decode("ascii")
    owner_id = members.get("owner_id") or owner
    standard = {
        "agtp_genesis_version": GENESIS_VERSION,
        "owner": owner,
        "agent_public_key": pem,
        "archetype": "assistant",
        "governance_zone": "default",
        "scope": sorted(set(scopes)),
        "trust_tier": ORG_ASSERTED,
        "verification_path": SELF_SIGNED,
        **members,
        "owner_id": owner_id,
        "principal_id": members.get("principal_id") or owner_id,
        "issuer_public_key": encode64(key.public_key().public_bytes_raw()).decode(),
        # Two agents may have all else in common, and no id is given twice.
        "nonce": secrets.token_urlsafe(16),
    }
    record = {name: value for name, value in standard.items() if value is not None}
    record["signature"] = encode64(key.sign(canonical_genesis(record))).decode()
    return verify_genesis(record)


def verify_genesis(record: Mapping[str, Any]) -> Genesis | Refused:
    """Verify the fields and the signature of a record, which prove only that it was not changed."""
    table = Table(dict(record), "", Findings(lambda _: Location("genesis")))
    genesis = genesis_of(table)
    if genesis is None:
        wrong = [finding.message for finding in table.findings.found if finding.severity == "error"]
        return unprocessable("genesis-invalid", f"The Agent Genesis is not valid: {'; '.join(wrong[:5])}.")
    return genesis
