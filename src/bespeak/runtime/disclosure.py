"""What a caller may learn about endpoints. One that is hidden from it is answered as if it did not exist."""

from __future__ import annotations

from functools import partial

from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.call import Call
from bespeak.runtime.route import Route


def may_discover(call: Call) -> bool:
    """Return True if the caller may learn what this server serves (AGTP-API 8.7)."""
    return call.principal.agent_id is not None or call.routes.policies.anonymous_discovery


def sees(call: Call, route: Route) -> bool:
    """Return True if a route exists for the caller: it is not hidden, or the caller has the authority to call it."""
    if not route.is_hidden or (not route.endpoint.internal and may_discover(call)):
        return True
    principal, required = call.principal, route.endpoint.required_scopes
    if required:
        return principal.agent_id is not None and not principal.scopes.missing(required)
    return bool(principal.scopes) or not call.routes.policies.scope_required_for_invocation


def find_visible(call: Call, method: str, path: str) -> tuple[Route, dict[str, str] | None] | None:
    """Find the route for a method on a path among those that exist for the caller."""
    return call.routes.router.find(method, path, partial(sees, call) if call.routes.hides else None)


def undisclosed(call: Call) -> Refused:
    """Build the one refusal of a caller that may not discover. It depends on nothing that the server serves."""
    advice = call.server.principals.advice
    return authorization_required(
        "anonymous-discovery-disabled", f"This server tells only identified agents what it serves; {advice}."
    )
