"""455: the declared scopes do not cover the endpoint. 262: there is no authority to judge."""

from __future__ import annotations

from bespeak.protocol import status
from bespeak.protocol.exchange.accept import prefers_agis
from bespeak.protocol.exchange.headers import AUTHORITY_SCOPE
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
    if endpoint.is_basic or (not endpoint.required_scopes and endpoint.key == _INVENTORY):
        # AGTP-API 8.7 applies to discovery and to built-ins that only read.
        informs = endpoint.semantic.impact == "informational"
        return undisclosed(call) if informs and not may_discover(call) and not _is_public(call) else None
    if endpoint.required_scopes:
        if principal.agent_id is None:
            scopes = ", ".join(endpoint.required_scopes)
            return call.server.principals.credentials_missing(f"{endpoint} requires an agent with the scopes {scopes}")
        missing = principal.scopes.missing(endpoint.required_scopes)
        if missing and not call.server.grants.covers(principal.agent_id, endpoint, missing):
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
    by_token = "token" in (principal.verified or "")
    if principal.known:
        operator = "the operator of this server must grant them to the agent"
        return f"{operator}, and its token must not leave them out" if by_token else operator
    return "get a token with them" if by_token else "the operator of this server must register the agent with them"


def _is_public(call: RoutedCall) -> bool:
    """Return True for a request of the AGIS document if its data manifest makes it public (AGIS 8.3)."""
    manifest = call.routes.service.data_manifest
    return (
        manifest is not None
        and manifest.pre_auth_discovery is True
        and (call.method, call.path) == _ROOT
        and prefers_agis(call.request.headers)
    )
