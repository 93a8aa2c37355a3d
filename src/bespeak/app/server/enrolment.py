"""Enrolment of a new agent: its Genesis, from which its id derives, and its identity document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.agent import Agent
from bespeak.documents.deployment.deployment import Deployment, read_deployment
from bespeak.documents.deployment.folder import is_folder
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.terminal.deployment import configuration_of

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

_UNSPECIFIED: Final = "unspecified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    server_id: str
    operator: str
    key: OKPKey


def filed_agents(target: str) -> tuple[Agent, ...]:
    """Return the agents described by files of a deployment, without importing code of the operator."""
    return _deployment(target).agents


def issuer_of(target: str, key_file: Path | None) -> Issuer:
    """Return the issuer of identities of a deployment: its operator, with the server's signing key or another one."""
    server = _deployment(target).server
    path = key_file or server.signing_key
    if path is None:
        advice = "give --issuer-key FILE, or set signing_key in bespeak.toml. `bespeak keys new --out FILE` makes one."
        raise ConfigError(f"an agent's identity must be signed, and there is no key: {advice}")
    key = read_key(path)
    if not key.is_private:
        raise ConfigError(f"{path} contains a public key; signing requires the private key")
    if server.identity is None:
        return Issuer(server_id=_UNSPECIFIED, operator=_UNSPECIFIED, key=key)
    return Issuer(server_id=server.identity.server_id, operator=server.identity.operator or _UNSPECIFIED, key=key)


def read_key(path: Path) -> OKPKey:
    from bespeak.state.identity import key_files as key_file  # noqa: PLC0415 - slow to load

    key = key_file.read_key(path)
    if isinstance(key, Fault):
        raise ConfigError(f"{path}: {key.message}")
    return key


def enrol(
    issuer: Issuer,
    *,
    name: str,
    description: str,
    scopes: Sequence[str],
    public_key: Mapping[str, str] | None,
    issued_at: str,
) -> dict[str, Any] | Refused:
    """Create the identity document of a new agent, including its Genesis."""
    from bespeak.state.identity.genesis import issue_genesis  # noqa: PLC0415 - loads cryptography
    from bespeak.state.identity.jws import PrivateKey  # noqa: PLC0415

    key = issuer.key.private_key
    assert isinstance(key, PrivateKey)
    genesis = issue_genesis(
        name=name,
        owner=issuer.operator,
        issuer=issuer.server_id,
        key=key,
        issued_at=issued_at,
        scopes=scopes,
        public_key=public_key,
    )
    if isinstance(genesis, Refused):
        return genesis
    return {
        "agent_id": genesis.agent_id,
        "name": name,
        "description": description,
        "principal": issuer.operator,
        "principal_id": genesis.principal_id,
        "owner_id": genesis.owner_id,
        "issuer": f"agtp://{issuer.server_id}",
        "issued_at": issued_at,
        "updated_at": issued_at,
        "scopes_accepted": sorted(set(scopes)),
        "trust_tier": genesis.trust_tier,
        "verification_path": genesis.verification_path,
        "genesis": dict(genesis.document),
    }


def _deployment(target: str) -> Deployment:
    try:
        root, configuration = configuration_of(target)
    except ConfigError:  # --store names the store of a target that is elsewhere
        return Deployment(root=Path(target).parent)
    if configuration is None:
        return read_deployment(root)[0] if is_folder(Path(target)) else Deployment(root=root)
    return read_deployment(configuration, beside_app=Path(target) not in (root, configuration))[0]
