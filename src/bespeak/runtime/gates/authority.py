"""Who calls (400, 401, 262, 410, 503, 551), with what scopes (455, 262), and 501 without a store to confirm in."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import ONE_CALL, exceeded_units, format_amount, parse_budget
from bespeak.protocol.exchange.headers import AGENT_ID, AUTHORITY_SCOPE, BUDGET_LIMIT, DELEGATION_CHAIN, prefers_agis
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.protocol.exchange.refusal import Fault, Refused, authorization_required
from bespeak.runtime.call import Call, RoutedCall, may_discover, undisclosed
from bespeak.runtime.identity.agents import STALE
from bespeak.runtime.rate import Buckets, caller, network
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
        and (call.method, call.path) == ("DISCOVER", "/")
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


_SECOND = 1_000_000_000


def address_rate_gate(call: Call) -> Refused | None:
    """Limit calls per address, before the cost of verifying credentials."""
    rates = call.server.rates
    if rates is None or rates.address is None or call.request.counted:
        return None
    return _take(rates.address, network(call.request.connection.address), "address", "Your address")


def agent_rate_gate(call: Call) -> Refused | None:
    """Limit calls per agent, then per principal: a call refused for its agent must not cost the other agents."""
    rates = call.server.rates
    if rates is None or call.request.counted:
        return None
    principal = call.principal
    if rates.agent is not None:
        refused = _take(rates.agent, caller(principal, call.request.connection.address), "agent", "The agent")
        if refused is not None:
            return refused
    if rates.principal is not None and principal.principal_id is not None:
        return _take(rates.principal, principal.principal_id, "principal", "The agent's principal")
    return None


def endpoint_rate_gate(call: RoutedCall) -> Refused | None:
    rates = call.server.rates
    if rates is None or not rates.endpoints or call.request.counted:
        return None
    endpoint = call.route.endpoint
    buckets = rates.endpoints.get(endpoint.key)
    if buckets is None:
        return None
    key = caller(call.principal, call.request.connection.address)
    return _take(buckets, key, "endpoint", f"The agent at {endpoint}")


def _take(buckets: Buckets, key: str, scope: str, who: str) -> Refused | None:
    wait = buckets.take(key)
    if not wait:
        return None
    seconds = -(-wait // _SECOND)
    return Refused(
        status.RATE_LIMITED,
        "rate-limited",
        f"{who} has reached its limit of {buckets.rate}; try again in {seconds} s.",
        {"limit": str(buckets.rate), "scope": scope},
        (("Retry-After", str(seconds)),),
    )


_LONGEST_REMEMBERED = 200  # of a cached header: room for all units, but callers cannot fill the cache

_remembered = lru_cache(1024)(parse_budget)


def budget_gate(call: RoutedCall) -> Refused | None:
    """Compare the endpoint's declared cost with Budget-Limit, unit by unit."""
    headers = call.request.headers
    if BUDGET_LIMIT not in headers:
        return None
    text = headers[BUDGET_LIMIT]
    limit = _remembered(text) if len(text) <= _LONGEST_REMEMBERED else parse_budget(text)
    if isinstance(limit, Fault):
        entry = limit.at[:80]
        message = f"Budget-Limit contains {entry!r}: {limit.message}. Write it like tokens=5000, USD=0.50."
        return Refused(status.BAD_REQUEST, "invalid-budget-limit", message, {"entry": entry})
    endpoint = call.route.endpoint
    cost = {"calls": ONE_CALL, **(endpoint.cost.amounts if endpoint.cost else {})}
    composing = None if call.parent is None else call.parent.composing
    if composing is not None:
        # The limit is for the whole call: the cost of its earlier steps counts too.
        if call.route.composes:
            del cost["calls"]  # its steps are counted
        cost = {unit: amount + composing.spent.get(unit, 0) for unit, amount in cost.items()}
    over = exceeded_units(cost, limit)
    if not over:
        if composing is not None:
            composing.spent |= cost
        return None
    costs = {unit: format_amount(unit, amount) for unit, amount in cost.items()}
    limits = {unit: format_amount(unit, amount) for unit, amount in limit.items()}
    excess = " and ".join(f"{costs[unit]} {unit} (limit {limits[unit]})" for unit in over)
    before = "" if composing is None else " with the steps before it"
    return Refused(
        status.BUDGET_EXCEEDED,
        "budget-exceeded",
        f"{endpoint}{before} costs {excess}; raise Budget-Limit or call a cheaper endpoint.",
        {"cost": costs, "limit": limits, "exceeded": over},
    )
