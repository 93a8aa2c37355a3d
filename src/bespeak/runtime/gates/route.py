"""404 and 405: which endpoint is meant. Wildcard invocations by mutual consent end here too."""

from __future__ import annotations

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.call import Call


def route_gate(call: Call) -> Refused | None:
    """Find the endpoint, or say what the path does offer."""
    registry = call.registry
    found = registry.router.find(call.method, call.path)
    if found is not None:
        call.route, call.captures = found
        return None
    if registry.wildcard is not None:
        if call.principal.wildcards:
            call.route = registry.wildcard
            return None
        # AGTP-API 16.4: without the agent's own consent the safe answer is to ask for it.
        return authorization_required(
            "wildcards-required",
            f"No endpoint {call.method} {call.path[:200]} is declared. This server takes ad-hoc calls only from "
            "agents whose identity document says wildcards: true.",
        )
    if registry.named_at(call.path):
        requested = call.request.method
        return registry.not_allowed(requested, call.path, f"{requested} is not offered on {call.path[:200]}.")
    return Refused(
        status.NOT_FOUND,
        "endpoint-not-found",
        f"No endpoint has the path {call.path[:200]!r}; `DISCOVER /methods` lists those that exist.",
        {"method": call.method, "path": call.path[:300]},
    )
