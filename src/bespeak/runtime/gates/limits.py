"""429 for rate limits, and 456 or 400 for the caller's Budget-Limit."""

from __future__ import annotations

from functools import lru_cache

from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import ONE_CALL, exceeded_units, format_amount, parse_budget
from bespeak.protocol.exchange.headers import BUDGET_LIMIT
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.rate import Buckets, caller, network

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
