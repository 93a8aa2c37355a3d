"""404 and 405: find the endpoint. Wildcard invocations by mutual consent end here too."""

from __future__ import annotations

from typing import Final

from bespeak.contract.http_route import get_obstacle
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.disclosure import find_visible

_BY_POST: Final = (("Allow", "POST, OPTIONS"),)


def route_gate(call: Call) -> RoutedCall | Refused:
    """Find the endpoint, or refuse with the methods that the path has."""
    routes = call.routes
    found = find_visible(call, call.method, call.path)
    negotiator = call.server.negotiator
    routed: RoutedCall | Refused | None = None
    if negotiator is not None and (found is None or found[1] is not None or found[0].synthesis_id is not None):
        # AGTP-API 5.4: an exact path comes before a template, a template before nothing. A synthesis that is
        # published does not hide what an agent has proposed for itself.
        declared = found is not None and found[0].synthesis_id is None
        routed = negotiator.find(call, literal=declared)
    if routed is None and found is not None:
        routed = RoutedCall(call, *found)
    if isinstance(routed, RoutedCall) and call.request.reads and not routed.route.is_readable:
        return _not_for_reading(call, get_obstacle(routed.route.endpoint))
    if routed is not None:
        return routed
    if routes.wildcard is not None:
        if call.request.reads:
            return _not_for_reading(call, "it may change something")
        if call.principal.wildcards:
            return RoutedCall(call, routes.wildcard)
        # AGTP-API 16.4: without the agent's consent, ask for it.
        return authorization_required(
            "wildcards-required",
            f"No endpoint {call.method} {call.path[:200]} is declared. This server accepts ad-hoc calls only from "
            "agents whose identity document has wildcards: true.",
        )
    if routes.named_at(call.path):
        requested = call.request.method
        return routes.not_allowed(requested, call.path, f"{requested} is not offered on {call.path[:200]}.")
    return routes.not_found(call.method, call.path)


def _not_for_reading(call: Call, reason: str | None) -> Refused:
    """Refuse GET, which promises to change nothing (RFC 9110 9.2.1), with the reason."""
    message = (
        f"{call.method[:40]} {call.path[:120]} cannot be called with GET, because {reason}; "
        "send a POST to its path and verb."
    )
    return Refused(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, headers=_BY_POST)
