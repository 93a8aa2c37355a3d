"""455: the declared scopes do not cover the endpoint. 262: there is no authority to judge."""

from __future__ import annotations

from bespeak.protocol import status
from bespeak.protocol.exchange.accept import prefers_agis
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.disclosure import may_discover, undisclosed

_ROOT = ("DISCOVER", "/")
_INVENTORY = ("DISCOVER", "/methods")
"""Target of the inventory. An operator's own version is discovery too (AGTP-API 5.8), unless it requires scopes."""


def scope_gate(call: RoutedCall) -> Refused | None:
    """Check the authority before the body is read: a caller without authority learns nothing about the input."""
    endpoint = call.route.endpoint
    principal = call.principal
    policies = call.routes.policies
    if endpoint.builtin or (endpoint.key == _INVENTORY and not endpoint.required_scopes):
        # AGTP-API 8.7 applies to discovery and to built-ins that only read.
        informs = endpoint.semantic.impact == "informational"
        return undisclosed(call) if informs and not may_discover(call) and not _is_public(call) else None
    if endpoint.required_scopes:
        if principal.agent_id is None:
            scopes = ", ".join(endpoint.required_scopes)
            return call.server.principals.credentials_missing(f"{endpoint} requires an agent with the scopes {scopes}")
        missing = principal.scopes.missing(endpoint.required_scopes)
        if missing:
            claimable = not principal.known and principal.verified is None and not principal.delegators
            where = " in Authority-Scope" if claimable else ", which the caller does not have"
            return Refused(
                status.SCOPE_VIOLATION,
                "scope-violation",
                f"{endpoint} needs the scopes {', '.join(missing)}{where}.",
                {
                    "missing_scopes": missing,
                    "required_scopes": list(endpoint.required_scopes),
                    "declared_scopes": list(principal.scopes),
                },
            )
        return None
    if policies.scope_required_for_invocation and not principal.scopes:
        # AGTP-API 8.7; a grant in the agent's document counts as declared (core 2.3: absent means inherited).
        return authorization_required(
            "scope-required", "This server requires an Authority-Scope header to call an endpoint."
        )
    return None


def _is_public(call: RoutedCall) -> bool:
    """Return True for a request of the AGIS document if its data manifest makes it public (AGIS 8.3)."""
    manifest = call.routes.service.data_manifest
    return (
        manifest is not None
        and manifest.pre_auth_discovery is True
        and (call.method, call.path) == _ROOT
        and prefers_agis(call.request.headers)
    )
