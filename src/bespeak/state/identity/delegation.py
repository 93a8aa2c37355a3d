"""Delegation chains (core 4.8, 7.6): the tokens, granting them, and verifying a chain hop by hop."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import encode64
from bespeak.protocol.exchange.principal import Scopes, is_canonical_id, is_scope_token
from bespeak.protocol.exchange.refusal import Fault, Refused, unprocessable
from bespeak.state.identity import jws
from bespeak.state.identity.jws import ALGORITHM, PrivateKey, PublicKey, sign_compact

LONGEST_TOKEN: Final = 4096
MOST_SCOPES: Final = 64
LONGEST_LIFE: Final = 366 * 24 * 3600  # maximum lifetime of a delegation in seconds, for every issuer
_TYPE: Final = "agtp-delegation+jwt"
_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")  # pattern of a token id, which is stored and logged
_logger = logging.getLogger(__name__)
LONGEST_CHAIN: Final = 8  # limit of hops
_AHEAD: Final = 30.0  # tolerated clock difference of a signer, in seconds


class Break(msgspec.Struct, frozen=True):
    """The reason why a token is not valid or does not continue a chain."""

    reason: str  # Machine-readable reason
    message: str


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    iss: str  # signer: the delegator's Agent-ID, or the server's id
    sub: str  # delegate
    aud: str  # server at which the token is valid
    scope: tuple[str, ...]
    depth: int  # number of further hops allowed
    exp: int
    iat: int
    jti: str
    delegator: str | None = None  # Agent whose authority is delegated, if the server signs for it
    parent: str | None = None  # hash of the previous token; absent in a first hop
    api_key: str | None = None  # id of the key by which the server knew the delegator: the token ends with it

    @property
    def holder(self) -> str:
        return self.delegator or self.iss


_CLAIMS: Final = msgspec.json.Decoder(Claims)


def sign_token(claims: Claims, key: PrivateKey) -> str:
    return sign_compact({"alg": ALGORITHM, "typ": _TYPE}, msgspec.json.encode(claims), key)


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token in base64url, by which the next hop names it."""
    return encode64(hashlib.sha256(token.encode()).digest()).decode()


def read_token(token: str, server_id: str, key_of: Callable[[str], PublicKey | None]) -> Claims | Break:
    """Return the claims of a token if their issuer signed it for this server. Times are not checked."""
    read = jws.read_token(token, _CLAIMS, longest=LONGEST_TOKEN, typ=_TYPE)
    if isinstance(read, Fault):
        return Break("malformed", read.message)
    envelope, claims = read
    key = key_of(claims.iss)
    if key is None:
        return Break("key-unknown", "the key of its signer is not known here")
    if not envelope.is_by(key):
        return Break("signature-invalid", "it is not signed by the key of the issuer it names")
    if claims.aud != server_id:
        return Break("wrong-audience", "it is for another server")
    return _unsound(claims, server_id) or claims


def _unsound(claims: Claims, server_id: str) -> Break | None:
    if claims.delegator is not None and claims.iss not in (server_id, claims.delegator):
        return Break("malformed", "an agent passes on its own authority only")
    if not is_canonical_id(claims.holder) or not is_canonical_id(claims.sub):
        return Break("malformed", "delegator and delegate are agents, by their 64 hexadecimal digits")
    if not 0 < len(claims.scope) <= MOST_SCOPES or not all(map(is_scope_token, claims.scope)):
        return Break("malformed", f"it must have 1 to {MOST_SCOPES} valid scopes")
    if _ID.fullmatch(claims.jti) is None:
        return Break("malformed", "its id is not 1 to 128 visible ASCII characters")
    if claims.exp - claims.iat > LONGEST_LIFE:
        return Break("malformed", f"it does not end within {LONGEST_LIFE} seconds of its beginning")
    return None


class DelegationHop(msgspec.Struct, frozen=True):
    """One agent's authority, or a part of it, delegated to another agent."""

    delegator: str
    delegate: str
    scopes: Scopes
    depth: int  # number of further hops allowed
    expires: int
    token_id: str  # id by which it can be revoked
    api_key: str | None = None


class Chain(msgspec.Struct, frozen=True):
    """Verified hops from the first delegator to the calling agent."""

    hops: tuple[DelegationHop, ...]
    tokens: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Chain({self.hops!r})"

    @property
    def scopes(self) -> Scopes:
        """Authority in force: the scopes of the last hop."""
        return self.hops[-1].scopes

    @property
    def delegators(self) -> tuple[str, ...]:
        return tuple(hop.delegator for hop in self.hops)

    @property
    def delegate(self) -> str:
        return self.hops[-1].delegate

    @property
    def expires(self) -> int:
        return min(hop.expires for hop in self.hops)

    @property
    def header(self) -> str:
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
    hops: list[DelegationHop] = []
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
    claims: Claims, hops: list[DelegationHop], token: str | None, grant_of: Callable[[str], Scopes | None], now: float
) -> DelegationHop | Break:
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
    return DelegationHop(
        claims.holder, claims.sub, Scopes(claims.scope), claims.depth, claims.exp, claims.jti, claims.api_key
    )


def _refuse(hop: int, reason: str, why: str) -> Refused:
    return Refused(
        status.AUTHORITY_CHAIN_BROKEN,
        "authority-chain-broken",
        f"Delegation-Chain breaks at hop {hop}: {why}.",
        {"hop": hop, "reason": reason},
    )


def grant_authority(
    *,
    delegator: str,
    delegate: str,
    scopes: Collection[str],
    held: Scopes,
    server_id: str,
    key: PrivateKey,
    now: float,
    lifetime: float,
    depth: int = 0,
    issuer: str | None = None,
    parent: Chain | None = None,
    api_key: str | None = None,
) -> Chain | Refused:
    """Delegate authority: return the chain for the delegate, with a new last token signed with `key`.

    `held` is the delegator's current authority, `parent` the chain it holds it by, if any. `issuer` is the server's id
    when the server signs for the delegator. A token expires with its parent.
    """
    if not 0 < lifetime <= LONGEST_LIFE:
        message = f"A delegation must last 1 to {LONGEST_LIFE} seconds; got {lifetime:g}."
        return unprocessable("invalid-lifetime", message)
    refused = _cannot_grant(delegator, delegate, scopes, held, parent) or _too_deep(depth, parent)
    if refused is not None:
        return refused
    wanted = tuple(sorted(set(scopes)))
    expires = int(now + lifetime)
    claims = Claims(
        iss=issuer or delegator,
        sub=delegate,
        aud=server_id,
        scope=wanted,
        depth=depth,
        exp=min(expires, parent.expires) if parent else expires,
        iat=int(now),
        jti=secrets.token_urlsafe(16),
        delegator=delegator if issuer not in (None, delegator) else None,
        parent=token_hash(parent.tokens[-1]) if parent else None,
        api_key=api_key,
    )
    token = sign_token(claims, key)
    if len(token) > LONGEST_TOKEN:
        message = f"The scopes make a token of more than {LONGEST_TOKEN} characters."
        return unprocessable("delegation-too-large", message)
    hop = DelegationHop(delegator, delegate, Scopes(wanted), depth, claims.exp, claims.jti)
    return Chain((*parent.hops, hop), (*parent.tokens, token)) if parent else Chain((hop,), (token,))


def _cannot_grant(
    delegator: str, delegate: str, scopes: Collection[str], held: Scopes, parent: Chain | None
) -> Refused | None:
    if not is_canonical_id(delegate):
        message = f"A delegate must be 64 hexadecimal digits; got {delegate[:80]!r}."
        return unprocessable("invalid-canonical-id", message)
    if delegate == delegator or (parent is not None and delegate in parent.delegators):
        message = "An agent holds its own authority already, so a delegation cannot lead back to it."
        return unprocessable("delegation-to-itself", message)
    bad = next((token for token in scopes if not is_scope_token(token)), None)
    if bad is not None or not 0 < len(scopes) <= MOST_SCOPES:
        got = len(scopes) if bad is None else repr(bad[:80])
        message = f"A delegation must have 1 to {MOST_SCOPES} valid scopes; got {got}."
        return unprocessable("invalid-authority-scope", message)
    return refuse_wider(delegator, delegate, scopes, held if parent is None else held & parent.scopes)


def refuse_wider(delegator: str, delegate: str, scopes: Collection[str], held: Scopes) -> Refused | None:
    wider = held.missing(sorted(set(scopes)))
    if not wider:
        return None
    # Core 7.6: authority must not grow on its way through several hands, and an attempt is logged.
    _logger.warning("delegation %s to %s refused: %s is beyond what is held", delegator, delegate, ", ".join(wider))
    return Refused(
        status.AUTHORIZATION_REQUIRED,
        "scope-claim-invalid",
        f"An agent can delegate only its own authority; {', '.join(wider)} is not part of it.",
        {"type": "scope-required", "claimed": sorted(set(scopes)), "invalid": wider, "declared": list(held)},
    )


def _too_deep(depth: int, parent: Chain | None) -> Refused | None:
    left = parent.hops[-1].depth - 1 if parent else LONGEST_CHAIN - 1
    if 0 <= depth <= left:
        return None
    if left < 0:
        message = "This authority was delegated without the right to delegate it further."
    else:
        message = f"max_depth must be 0 to {left}; got {depth}."
    return Refused(
        status.AUTHORIZATION_REQUIRED,
        "delegation-depth-exceeded",
        message,
        {"type": "scope-required", "depth_left": left},
    )
