"""Delegation chains: whose authority an agent acts with, verified hop by hop (core 7.6).

The drafts leave the form of Delegation-Chain open. Ours is a list of tokens, separated by commas, from the first hop to
the last. A token is a compact JWS by the delegator's registered Ed25519 key, or by the server's key for a delegator
that the server has authenticated in another way. It is valid at one server and names the previous token by its hash.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.scope import Scopes
from bespeak.state.identity.delegation_token import Break, Claims, read_token, token_hash
from bespeak.state.identity.jws import PublicKey

_logger = logging.getLogger(__name__)

LONGEST_CHAIN: Final = 8
"""Limit of hops."""

_AHEAD: Final = 30.0
"""Tolerated clock difference of a signer, in seconds."""


class Hop(msgspec.Struct, frozen=True):
    """One agent's authority, or a part of it, delegated to another agent."""

    delegator: str
    delegate: str
    scopes: Scopes
    depth: int
    """Number of further hops allowed."""
    expires: int
    token_id: str
    """Id by which it can be revoked."""


class Chain(msgspec.Struct, frozen=True):
    """Verified hops from the first delegator to the calling agent."""

    hops: tuple[Hop, ...]
    tokens: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Chain({self.hops!r})"

    @property
    def scopes(self) -> Scopes:
        """Authority in force: the scopes of the last hop."""
        return self.hops[-1].scopes

    @property
    def delegators(self) -> tuple[str, ...]:
        """Delegators from first to last."""
        return tuple(hop.delegator for hop in self.hops)

    @property
    def delegate(self) -> str:
        """Agent at the end of the chain."""
        return self.hops[-1].delegate

    @property
    def expires(self) -> int:
        """Expiry of the first hop to end."""
        return min(hop.expires for hop in self.hops)

    @property
    def header(self) -> str:
        """Value of the Delegation-Chain header."""
        return ", ".join(self.tokens)


def verify_chain(
    header: str,
    *,
    caller: str,
    server_id: str,
    key_of: Callable[[str], PublicKey | None],
    grant_of: Callable[[str], Scopes | None],
    now: float,
) -> Chain | Refused:
    """Verify a Delegation-Chain header; refuse with 551, the number of the broken hop and the reason.

    `key_of` returns the key of a registered agent, or of this server by its id; `grant_of` the authority an agent holds
    itself, and None for one that is not active. Both are called for each hop: a revoked agent passes on nothing.
    """
    tokens = [token.strip(" \t") for token in header.split(",", LONGEST_CHAIN)]
    if len(tokens) > LONGEST_CHAIN:
        return _refuse(LONGEST_CHAIN + 1, "too-long", f"a chain has at most {LONGEST_CHAIN} hops")
    hops: list[Hop] = []
    before: str | None = None
    for number, token in enumerate(tokens, 1):
        claims = read_token(token, server_id, key_of)
        hop = claims if isinstance(claims, Break) else _follow(claims, hops, before, grant_of, now)
        if isinstance(hop, Break):
            return _refuse(number, hop.reason, hop.message)
        hops.append(hop)
        before = token
    if hops[-1].delegate != caller:
        return _refuse(len(hops), "not-the-caller", "the chain ends with another agent than the one that calls")
    return Chain(tuple(hops), tuple(tokens))


def _follow(
    claims: Claims, hops: list[Hop], token: str | None, grant_of: Callable[[str], Scopes | None], now: float
) -> Hop | Break:
    """Return the hop that the claims add to the previous ones."""
    before = hops[-1] if hops else None
    if claims.sub in (claims.holder, *(hop.delegator for hop in hops)):
        # Core 7.6: a hop hands authority to another agent. Back to oneself, it would only hide where it came from.
        return Break("repeated-agent", "it leads back to an agent that is already in the chain")
    if claims.parent != (None if token is None else token_hash(token)) or (before and before.delegate != claims.holder):
        return Break("not-linked", "it does not continue the hop before it")
    if claims.exp <= now:
        return Break("expired", "it has expired")
    if claims.iat > now + _AHEAD:
        return Break("not-yet-valid", "it was made in the future by this server's clock")
    own = grant_of(claims.holder)
    if own is None:
        return Break("delegator-not-active", "its delegator is not an active agent of this server")
    if not 0 <= claims.depth < (before.depth if before else LONGEST_CHAIN):
        return Break("depth-exceeded", "it allows more hops than the hop before it")
    wider = (before.scopes if before else own).missing(claims.scope)
    if wider:
        # Core 7.6: authority must not grow on its way through several hands, and an attempt is logged.
        _logger.warning("delegation %s to %s: %s is beyond what is held", claims.holder, claims.sub, ", ".join(wider))
        return Break("scope-exceeded", f"it passes on {', '.join(wider)}, which its delegator does not hold")
    return Hop(claims.holder, claims.sub, Scopes(claims.scope), claims.depth, claims.exp, claims.jti)


def _refuse(hop: int, reason: str, why: str) -> Refused:
    return Refused(
        status.AUTHORITY_CHAIN_BROKEN,
        "authority-chain-broken",
        f"Delegation-Chain breaks at hop {hop}: {why}.",
        {"hop": hop, "reason": reason},
    )
