"""400, 401, 262, 410, 501 and 503: who calls, and with which authority."""

from __future__ import annotations

from bespeak import status
from bespeak.exchange.headers import AGENT_ID, AUTHORITY_SCOPE, DELEGATION_CHAIN
from bespeak.exchange.refusal import Refused
from bespeak.runtime.call import Call


def identity_gate(call: Call) -> Refused | None:
    """Find the principal. An anonymous call passes here; the scope gate knows where that is not enough."""
    headers = call.request.headers
    if DELEGATION_CHAIN in headers:
        # Core 2.3: reserved; a server without delegation may answer 501 and name the feature.
        return Refused(
            status.NOT_IMPLEMENTED,
            "delegation-not-supported",
            "This server does not verify Delegation-Chain; send the request without that header.",
        )
    agent_id = headers.get(AGENT_ID)
    scope = headers.get(AUTHORITY_SCOPE)
    if agent_id is None and scope is None:
        return None
    found = call.registry.principals.resolve(agent_id, scope)
    if isinstance(found, Refused):
        return found
    call.principal = found
    return None
