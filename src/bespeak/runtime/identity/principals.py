"""From the identity of a request, claimed or proven, to its principal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Container
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from bespeak.contract.agent import ACTIVE, Agent
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import NO_SCOPES, Principal, Scopes, is_canonical_id, parse_scopes
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.identity.agents import Agents, may_delegate
from bespeak.text.diagnostics.diagnostic import brief

if TYPE_CHECKING:
    from bespeak.state.identity.authenticator import Authenticator
    from bespeak.state.identity.credentials import Authenticated
    from bespeak.state.identity.delegation import Chain, DelegationHop
    from bespeak.state.identity.jws import PublicKey

_logger = logging.getLogger(__name__)

_GONE: Final = frozenset({"revoked", "retired", "deprecated"})
_REMEMBERED: Final = 4096
_LONGEST_REMEMBERED: Final = 512  # of a cached claim, so that callers cannot fill the cache with long ones


class Principals:
    """Resolves ids to principals with their authority. Recent results are cached until an agent changes."""

    # Claimed and proven ids have a cache each, by the rule of `wire.memory`: strangers cannot displace what was proven.

    def __init__(
        self,
        agents: Agents,
        server_id: str,
        *,
        require_known: bool | None,
        server_key: PublicKey | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._agents = agents
        self._server_id = server_id
        self._require_known = require_known
        self.clock = clock  # clock by which credentials end, in seconds since 1970
        self.ended: Container[str] = frozenset()  # ids of delegations that have ended before their tokens
        self.authenticator: Authenticator | None = None  # verifier of credentials; None if headers are trusted
        self._server_key = server_key  # public key for the delegations this server has signed
        self.audited = False  # True if an audit trail has the delegations, so that the log need not have them
        self.log_hop = lru_cache(_REMEMBERED)(self._log)  # once, so that a chain can be reconstructed (core 7.6)
        self._recent = lru_cache(_REMEMBERED)(self._resolve)
        self._recently_proven = lru_cache(_REMEMBERED)(self._prove)
        agents.watch(self._forget)

    def resolve(self, agent_id: str | None, scope: str | None) -> Principal | Refused:
        """Return the principal for claimed Agent-ID and Authority-Scope headers, or a refusal."""
        if len(scope or "") + len(agent_id or "") > _LONGEST_REMEMBERED:
            return self._resolve(agent_id, scope)
        return self._recent(agent_id, scope)

    def prove(self, found: Authenticated, scope: str | None) -> Principal | Refused:
        if found.nonce is not None:
            found = msgspec.structs.replace(found, nonce=None, nonce_expires_at=None)
        if scope is not None and len(scope) > _LONGEST_REMEMBERED:
            return self._prove(found, scope)
        return self._recently_proven(found, scope)

    def delegate(
        self, own: Principal, header: str, scope: str | None, limit: Scopes | None = None
    ) -> Principal | Refused:
        """Return a principal with what its chain proves, within `limit`: a chain cannot widen a credential."""
        chain = self.chain(own.agent_id, header)
        if isinstance(chain, Refused):
            return chain
        claimed = _read_claim(scope)
        if isinstance(claimed, Refused):
            return claimed
        granted, who = chain.scopes, "the Delegation-Chain does"
        if limit is not None:
            granted, who = granted & limit, "the Delegation-Chain and the credential do"
        narrowed = _narrow(granted, claimed, who)
        if isinstance(narrowed, Refused):
            return narrowed
        expires = float(chain.expires) if own.expires is None else min(own.expires, chain.expires)
        return msgspec.structs.replace(own, scopes=narrowed, delegators=chain.delegators, expires=expires)

    def chain(self, caller: str | None, header: str) -> Chain | Refused:
        """Verify the delegation chain that leads to a caller, or return a refusal."""
        from bespeak.state.identity.delegation import verify_chain  # noqa: PLC0415 - loads cryptography, if there is a chain

        if caller is None:
            return self.credentials_missing("Delegation-Chain requires an identified agent")
        chain = verify_chain(
            header,
            caller=caller,
            server_id=self._server_id,
            key_of=self.key_of,
            grant_of=self._delegable,
            now=self.clock(),
        )
        if isinstance(chain, Refused):
            return chain
        for number, hop in enumerate(chain.hops, 1):
            delegator = self._agents.get(hop.delegator)
            most = delegator.max_delegation_depth if delegator is not None else None
            broken = None
            if most is not None and hop.depth >= most:
                broken = ("depth-exceeded", f"the document of its delegator permits no more than {most} hops")
            elif not self.lasts(hop.api_key):
                broken = ("key-ended", "the API key of its delegator was revoked or has expired")
            elif hop.token_id in self.ended:
                broken = ("ended", "the delegation was cancelled, declined or done")
            if broken is not None:
                message = f"Delegation-Chain breaks at hop {number}: {broken[1]}."
                details = {"hop": number, "reason": broken[0]}
                return Refused(status.AUTHORITY_CHAIN_BROKEN, "authority-chain-broken", message, details)
            self.log_hop(hop)
        return chain

    def _log(self, hop: DelegationHop) -> None:
        level = logging.INFO if self.audited else logging.WARNING
        place = (brief(hop.token_id), hop.delegator, hop.delegate, brief(", ".join(hop.scopes)))
        _logger.log(level, "delegation %s: %s to %s, %s", *place)

    def _delegable(self, agent_id: str) -> Scopes | None:
        """Return the authority an agent can delegate: its grant, if it is active and its document permits that."""
        agent = self._agents.get(agent_id)
        return self._agents.grant_of(agent_id) if agent is not None and may_delegate(agent) else None

    def key_of(self, name: str) -> PublicKey | None:
        """Return the Ed25519 key of a registered agent, or of this server by its id."""
        return self._server_key if name == self._server_id else self._agents.key_of(name)

    def lasts(self, key_id: str | None) -> bool:
        """Return False if what was made with an API key must not act any more: the key has ended."""
        if key_id is None or self.authenticator is None:
            return True
        return self.authenticator.keys is not None and self.authenticator.keys.lasts(key_id)

    def credentials_missing(self, why: str) -> Refused:
        """Build the 262 for missing credentials, with what to send."""
        modes = {"modes": list(self.authenticator.modes)} if self.authenticator is not None else {}
        return authorization_required("credentials-missing", f"{why}; {self.advice}.", **modes)

    @property
    def advice(self) -> str:
        if self.authenticator is not None:
            return f"send {self.authenticator.credentials}"
        return "send the Agent-ID of an agent that is registered here" if self.requires_known else "send an Agent-ID"

    @property
    def requires_known(self) -> bool:
        """True if only registered agents are admitted: by default, as soon as there are any (core 7.1)."""
        return len(self._agents) > 0 if self._require_known is None else self._require_known

    async def renew_keys(self) -> None:
        if self.authenticator is not None:
            await self.authenticator.refresh()

    def _forget(self) -> None:
        self._recent.cache_clear()
        self._recently_proven.cache_clear()

    def _resolve(self, agent_id: str | None, scope: str | None) -> Principal | Refused:
        claimed = _read_claim(scope)
        if isinstance(claimed, Refused):
            return claimed
        if agent_id is None:
            if claimed and self.requires_known:
                return self.credentials_missing("Authority-Scope requires an identified agent")
            return Principal(scopes=claimed or NO_SCOPES)
        if not is_canonical_id(agent_id):
            message = f"Agent-ID must be 64 lower-case hexadecimal digits; got {agent_id[:80]!r}."
            return Refused(status.BAD_REQUEST, "invalid-canonical-id", message)
        agent = self._find(agent_id)
        if isinstance(agent, Refused):
            return agent
        if agent is None:
            return Principal(agent_id=agent_id, scopes=claimed or NO_SCOPES)
        scopes = _narrow(Scopes(agent.scopes), claimed, "the agent's document does")
        return scopes if isinstance(scopes, Refused) else _principal_of(agent, scopes)

    def _prove(self, found: Authenticated, scope: str | None) -> Principal | Refused:
        claimed = _read_claim(scope)
        if isinstance(claimed, Refused):
            return claimed
        agent = self._find(found.agent_id)
        if isinstance(agent, Refused):
            return agent
        # A credential cannot widen a document. Without a document, only what the credential grants is in force.
        granted = Scopes(agent.scopes) if agent is not None else None
        if granted is None:
            granted = found.scopes or NO_SCOPES
        elif found.scopes is not None:
            granted = granted & found.scopes
        scopes = _narrow(granted, claimed, "the agent's document and credential do")
        if isinstance(scopes, Refused):
            return scopes
        own = Principal(agent_id=found.agent_id, scopes=scopes) if agent is None else _principal_of(agent, scopes)
        return msgspec.structs.replace(
            own,
            verified=found.verified,
            principal_id=found.principal_id or own.principal_id,
            tls_identity=found.tls_identity,
            holders=found.holders,
            expires=found.expires_at,
            key_id=found.key_id,
        )

    def _find(self, agent_id: str) -> Agent | Refused | None:
        """Return the agent with an id if it may act; None for an unknown agent where those are served."""
        agent = self._agents.get(agent_id)
        if agent is None:
            if not self.requires_known:
                return None
            message = f"Agent {agent_id} is not registered with this server; ask its operator to register it."
            return Refused(status.UNAUTHORIZED, "agent-unknown", message)
        return inactive(agent, self._agents.changed_at(agent_id)) or agent


def inactive(agent: Agent, changed: float | None) -> Refused | None:
    """Return a refusal if an agent may not act (core 3, 7.4). `changed` is the time of its last change in the store."""
    state = agent.status.lower()
    if state == ACTIVE:
        return None
    details = {"agent_status": agent.status}
    since = agent.updated_at or agent.issued_at if changed is None else write_instant(changed)
    if since is not None:
        details["since"] = since
    if state == "suspended":
        message = "The agent is suspended; the operator of this server can reinstate it."
        return Refused(status.UNAVAILABLE, "agent-suspended", message, details)
    if state in _GONE:
        message = f"The agent is {state}; its id will not be reused."
        if agent.successor is not None:
            details["successor_agent"] = agent.successor
        return Refused(status.GONE, "agent-revoked", message, details)
    # Core 7.1: an id without an active record is rejected.
    return Refused(status.UNAUTHORIZED, "agent-not-active", f"The agent is {state[:40]!r}, not active.", details)


def _principal_of(agent: Agent, scopes: Scopes) -> Principal:
    return Principal(
        agent_id=agent.agent_id,
        scopes=scopes,
        wildcards=agent.wildcards,
        known=True,
        principal_id=agent.principal_id,
        trust_tier=agent.trust_tier,
    )


def _read_claim(scope: str | None) -> Scopes | Refused | None:
    """Parse Authority-Scope; return None if nothing is claimed."""
    if not scope:
        return None if scope is None else NO_SCOPES
    claimed = parse_scopes(scope)
    if isinstance(claimed, Scopes):
        return claimed
    return Refused(
        status.BAD_REQUEST,
        "invalid-authority-scope",
        f"Authority-Scope contains {claimed[:80]!r}, which is not a valid scope; write tokens like booking:room, "
        "in lower case, separated by commas.",
    )


def _narrow(granted: Scopes, claimed: Scopes | None, who: str) -> Scopes | Refused:
    """Return the authority in force: everything granted, or the claimed part of it (core 2.3)."""
    if claimed is None:
        return granted
    wider = granted.missing(list(claimed))
    if not wider:
        return claimed
    return Refused(
        status.AUTHORIZATION_REQUIRED,
        "scope-claim-invalid",
        f"Authority-Scope claims {', '.join(wider)}, which {who} not grant.",
        {"type": "scope-required", "claimed": list(claimed), "invalid": wider, "declared": list(granted)},
    )
