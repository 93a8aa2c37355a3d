"""400, 401, 262, 410, 503 and 551: the caller's identity and authority."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import AGENT_ID, AUTHORITY_SCOPE, DELEGATION_CHAIN
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.agents import STALE
from bespeak.runtime.call import Call, RoutedCall
from bespeak.state.identity.authentication import Outdated

if TYPE_CHECKING:
    from bespeak.protocol.exchange.scope import Scopes
    from bespeak.state.identity.authenticator import Authenticator


def identity_gate(call: Call) -> Refused | Outdated | None:
    """Determine the principal. An anonymous call passes here; the scope gate refuses it where that is not enough."""
    headers = call.request.headers
    principals = call.server.principals
    scope = headers.get(AUTHORITY_SCOPE)
    found: Principal | Refused | Outdated
    if principals.authenticator is not None:
        found = _authenticated(call, principals.authenticator, scope)
    elif DELEGATION_CHAIN in headers:
        found = _delegated(call, principals.resolve(headers.get(AGENT_ID), None), scope)
    else:
        agent_id = headers.get(AGENT_ID)
        if agent_id is None and scope is None:
            return None
        found = principals.resolve(agent_id, scope)
    if not isinstance(found, Principal):
        return found
    call.principal = found
    call.request.connection.agent_id = found.agent_id
    return None


def freshness_gate(call: Call) -> Refused | None:
    """Refuse what needs authority, in a server that could not read its store for too long.

    An agent may have been revoked or suspended since. The dispatcher has this gate only during that time.
    """
    caller = call.principal
    changes = isinstance(call, RoutedCall) and call.route.endpoint.semantic.impact != "informational"
    if caller.agent_id is None and not caller.scopes and not changes:
        return None
    return Refused(
        status.UNAVAILABLE,
        STALE,
        "This server cannot reach its store, so it does not know whether the call is still authorized. Nothing was "
        "done; try again later.",
        headers=(("Retry-After", "2"),),
    )


def _authenticated(call: Call, authenticator: Authenticator, scope: str | None) -> Principal | Refused | Outdated:
    """Return the principal that the credentials prove; an anonymous one if there are no credentials and no claim."""
    found = authenticator.authenticate(call.request)
    if isinstance(found, (Refused, Outdated)):
        return found
    chained = DELEGATION_CHAIN in call.request.headers
    if found is None:
        if scope is None and not chained:
            return ANONYMOUS
        claim = "Delegation-Chain" if chained else "Authority-Scope"
        return call.server.principals.credentials_missing(f"{claim} requires an identified agent")
    if found.nonce is not None and found.nonce_expires_at is not None:
        # Nonces are per agent: the same one from another agent is not a replay.
        call.nonce = (f"{found.agent_id}:{found.nonce}", max(found.nonce_expires_at - time.time(), 1.0))
    principals = call.server.principals
    if chained:
        return _delegated(call, principals.prove(found, None), scope, found.scopes)
    return principals.prove(found, scope)


def _delegated(
    call: Call, own: Principal | Refused, scope: str | None, limit: Scopes | None = None
) -> Principal | Refused:
    """Give the caller delegated authority: a claimed scope narrows that, not the caller's own grant."""
    if isinstance(own, Refused):
        return own
    return call.server.principals.delegate(own, call.request.headers[DELEGATION_CHAIN], scope, limit)
