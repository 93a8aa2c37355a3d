"""Granting delegations: what an agent may delegate to another (core 4.8, 7.6)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection

from bespeak.protocol import status
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused, unprocessable
from bespeak.protocol.exchange.scope import Scopes, is_scope_token
from bespeak.state.identity.delegation import LONGEST_CHAIN, Chain, Hop
from bespeak.state.identity.delegation_token import (
    LONGEST_LIFE,
    LONGEST_TOKEN,
    MOST_SCOPES,
    Claims,
    sign_token,
    token_hash,
)
from bespeak.state.identity.jws import PrivateKey

_logger = logging.getLogger(__name__)


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
) -> Chain | Refused:
    """Delegate authority: return the chain for the delegate, with a new last token signed with `key`.

    `held` is the delegator's current authority, `parent` the chain it holds it by, if any. `issuer` is the server's id
    when the server signs for the delegator. A token expires with its parent.
    """
    if not 0 < lifetime <= LONGEST_LIFE:
        return unprocessable(
            "invalid-lifetime",
            f"A delegation must last 1 to {LONGEST_LIFE} seconds; got {lifetime:g}.",
        )
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
    )
    token = sign_token(claims, key)
    if len(token) > LONGEST_TOKEN:
        return unprocessable(
            "delegation-too-large", f"The scopes make a token of more than {LONGEST_TOKEN} characters."
        )
    hop = Hop(delegator, delegate, Scopes(wanted), depth, claims.exp, claims.jti)
    return Chain((*parent.hops, hop), (*parent.tokens, token)) if parent else Chain((hop,), (token,))


def _cannot_grant(
    delegator: str, delegate: str, scopes: Collection[str], held: Scopes, parent: Chain | None
) -> Refused | None:
    if not is_canonical_id(delegate):
        return unprocessable(
            "invalid-canonical-id", f"A delegate must be 64 hexadecimal digits; got {delegate[:80]!r}."
        )
    if delegate == delegator or (parent is not None and delegate in parent.delegators):
        message = "An agent holds its own authority already, so a delegation cannot lead back to it."
        return unprocessable("delegation-to-itself", message)
    bad = next((token for token in scopes if not is_scope_token(token)), None)
    if bad is not None or not 0 < len(scopes) <= MOST_SCOPES:
        got = len(scopes) if bad is None else repr(bad[:80])
        return unprocessable(
            "invalid-authority-scope", f"A delegation must have 1 to {MOST_SCOPES} valid scopes; got {got}."
        )
    return refuse_wider(delegator, delegate, scopes, held if parent is None else held & parent.scopes)


def refuse_wider(delegator: str, delegate: str, scopes: Collection[str], held: Scopes) -> Refused | None:
    """Refuse to delegate more than the delegator holds."""
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
