"""Who calls (400, 401, 262, 410, 503, 551), with what scopes (455, 262), and 501 without a store to confirm in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import AGENT_ID, AUTHORITY_SCOPE, DELEGATION_CHAIN, prefers_agis
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.call import Call, RoutedCall, may_discover, undisclosed
from bespeak.runtime.identity.agents import STALE
from bespeak.state.identity.credentials import Outdated

if TYPE_CHECKING:
    from bespeak.protocol.exchange.principal import Scopes
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
    """Refuse what needs authority while the store cannot be read: an agent may have been revoked since."""
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


_ROOT = ("DISCOVER", "/")
_INVENTORY = ("DISCOVER", "/methods")
"""Target of the inventory. An operator's own version is discovery too (AGTP-API 5.8), unless it requires scopes."""


def scope_gate(call: RoutedCall) -> Refused | None:
    """Check the authority before the body is read: a caller without authority learns nothing about the input."""
    endpoint = call.route.endpoint
    principal = call.principal
    if endpoint.is_basic or (not endpoint.required_scopes and endpoint.key == _INVENTORY):
        # AGTP-API 8.7 applies to discovery and to built-ins that only read.
        informs = endpoint.semantic.impact == "informational"
        return undisclosed(call) if informs and not may_discover(call) and not _is_public(call) else None
    if endpoint.required_scopes:
        if principal.agent_id is None:
            scopes = ", ".join(endpoint.required_scopes)
            return call.server.principals.credentials_missing(f"{endpoint} requires an agent with the scopes {scopes}")
        missing = principal.scopes.missing(endpoint.required_scopes)
        if missing and not call.server.grants.covers(principal, endpoint, missing):
            return Refused(
                status.SCOPE_VIOLATION,
                "scope-violation",
                f"{endpoint} needs the scopes {', '.join(missing)}; {_remedy(call)}.",
                {
                    "missing_scopes": missing,
                    "required_scopes": list(endpoint.required_scopes),
                    "declared_scopes": list(principal.scopes),
                },
            )
        return None
    if call.routes.policies.scope_required_for_invocation and not principal.scopes:
        # AGTP-API 8.7; a grant in the agent's document counts as declared (core 2.3: absent means inherited).
        principals = call.server.principals
        if principal.agent_id is None and (principals.authenticator is not None or principals.requires_known):
            return principals.credentials_missing(f"{endpoint} requires an identified agent with a scope")
        message = f"This server requires a scope for every call, and this one has none; {_remedy(call)}."
        return authorization_required("scope-required", message)
    return None


def _remedy(call: RoutedCall) -> str:
    """Tell a caller how it can get the missing scopes: it may declare them only where nothing is granted."""
    principal = call.principal
    if principal.delegators:
        return "its Delegation-Chain does not pass them on, so ask the delegator for a chain that does"
    if principal.verified is None and not principal.known:
        return "send them in Authority-Scope"
    if AUTHORITY_SCOPE in call.request.headers:
        return "Authority-Scope narrows this call; leave it out to use everything that is granted to the agent"
    credential = "key" if principal.key_id else "token" if "token" in (principal.verified or "") else None
    if principal.known:
        operator = "the operator of this server must grant them to the agent"
        return f"{operator}, and its {credential} must not leave them out" if credential else operator
    return (
        f"get a {credential} with them"
        if credential
        else "the operator of this server must register the agent with them"
    )


def _is_public(call: RoutedCall) -> bool:
    """Return True for a request of the AGIS document if its data manifest makes it public (AGIS 8.3)."""
    manifest = call.routes.service.data_manifest
    return (
        manifest is not None
        and manifest.pre_auth_discovery is True
        and (call.method, call.path) == _ROOT
        and prefers_agis(call.request.headers)
    )


_UNCONFIRMABLE: Final = Refused(
    status.NOT_IMPLEMENTED,
    "not-implemented",
    "This call requires a confirmation, and this server has no store to keep confirmations in.",
    {"missing": "a store to keep state in"},
)


def confirmation_gate(call: RoutedCall) -> Refused | None:
    """Refuse a call that cannot be confirmed; with a store, the settlement asks for the confirmation."""
    return _UNCONFIRMABLE if call.route.is_confirmed and call.server.store is None else None
