"""429: the address, the agent, its principal, or the agent at this endpoint exceeds a rate limit."""

from __future__ import annotations

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
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
    """Limit calls per agent, then per principal: a call refused for its agent must not cost the principal's other
    agents.
    """
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
    """Limit an agent's calls of this endpoint."""
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
