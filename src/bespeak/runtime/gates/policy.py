"""Redirects, and 405 for methods that the policy does not allow (AGTP-API 9)."""

from __future__ import annotations

from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call


def policy_gate(call: Call) -> Refused | None:
    """Follow a redirect, then check the method in force against the policy."""
    routes = call.routes
    if routes.redirects:
        call.method, call.path = routes.redirects.follow(call.method, call.path)
    if call.method in routes.allowed:
        return None
    requested = call.request.method
    return routes.not_allowed(requested, call.path, f"The policy of this server does not allow {requested}.")
