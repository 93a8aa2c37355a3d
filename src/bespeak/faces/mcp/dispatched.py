"""A service behind MCP that is called through its own dispatcher, with the credentials of each HTTP request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.filled_path import fill_path
from bespeak.faces.http.asgi import Scope
from bespeak.faces.http.face import connection_of
from bespeak.faces.mcp.outcome import Outcome, refused
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.handler import Handler
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.runtime.advisories import CATALOG_WARNING, ENDPOINT_WARNING
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.disclosure import may_discover, undisclosed
from bespeak.runtime.gates.identity import identity_gate
from bespeak.runtime.gates.rate import address_rate_gate, agent_rate_gate
from bespeak.runtime.gates.scope import scope_gate
from bespeak.runtime.route_table import RouteTable
from bespeak.runtime.server import Server
from bespeak.state.identity.authentication import Outdated

PASSED: Final = (
    names.AGENT_ID,
    names.AUTHORITY_SCOPE,
    names.AUTHORIZATION,
    names.BUDGET_LIMIT,
    names.DELEGATION_CHAIN,
    names.REQUEST_ID,
    names.SESSION_ID,
    names.TASK_ID,
)
"""Headers of the HTTP request that apply to the call. A signature does not: it is one of another message."""

PRINCIPAL: Final = "bespeak.principal"
"""Key of a scope with the verified caller."""
_ENCODE: Final = msgspec.json.Encoder().encode


class DispatchBackend:
    """Calls the endpoints of a server in this process."""

    def __init__(self, handler: Handler, server: Server) -> None:
        self._handler = handler
        self._server = server
        self._routes: RouteTable | None = None
        self._endpoints: tuple[Endpoint, ...] = ()
        service = server.routes.service
        self.name = service.identity.name or service.identity.server_id
        self.version = service.document_version or server.routes.updated

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints of the current route table."""
        routes = self._server.routes
        if routes is not self._routes:
            self._routes, self._endpoints = routes, tuple(routes.endpoints.values())
        return self._endpoints

    def caller(self, request: Any) -> str:
        """Return the Agent-ID of the caller; empty for an anonymous one."""
        principal: Principal = request.scope[PRINCIPAL]
        return principal.agent_id or ""

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if the policies demand a confirmation by another party."""
        found = self._server.routes.steps.get(endpoint.key)
        return found is not None and found.is_confirmed

    def refuse(self, endpoint: Endpoint, request: Any) -> Outcome | None:
        """Refuse a call whose caller lacks authority."""
        call = Call(self._request(request.scope, *endpoint.key), self._server)
        call.principal = request.scope[PRINCIPAL]
        found = judge(call, endpoint)
        return None if found is None else refused(found)

    async def admit(self, scope: Scope, *, calls: bool) -> Call | Refused:
        """Verify the credentials of an HTTP request; note its principal in the scope.

        A request that calls an endpoint is counted against the rate limits when it does, any other one here.
        """
        call = Call(self._request(scope, "DISCOVER", "/"), self._server)
        limited = None if calls else address_rate_gate(call)
        found = limited or identity_gate(call)
        if isinstance(found, Outdated):
            await self._server.principals.renew_keys()
            found = identity_gate(call)
            found = found.refused if isinstance(found, Outdated) else found
        if found is not None:
            return (address_rate_gate(call) if calls else None) or found
        scope[PRINCIPAL] = call.principal
        return (None if calls else agent_rate_gate(call)) or call

    async def call(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str], request: Any
    ) -> Outcome:
        """Call an endpoint with the headers of the HTTP request."""
        filled = fill_path(endpoint.path, arguments)
        if isinstance(filled, Fault):
            return refused(Refused(status.BAD_REQUEST, "invalid-arguments", filled.message))
        path, given = filled
        own = {name.lower(): value for name, value in headers.items()}
        answer = self._handler(self._request(request.scope, endpoint.method, path, given, own))
        return _outcome(answer if isinstance(answer, Response) else await answer)

    def _request(
        self,
        scope: Scope,
        method: str,
        path: str,
        given: Mapping[str, Any] | None = None,
        own: Mapping[str, str] | None = None,
    ) -> Request:
        """Build the request of the exchange. The face has checked that no header occurs twice."""
        sent = {name.decode("latin-1"): value for name, value in scope["headers"]}
        headers = {name: sent[name].decode("latin-1").strip() for name in PASSED if name in sent}
        body = b"" if given is None else _ENCODE(given)
        return Request(method, path, "", {**headers, **(own or {})}, body, connection_of(scope))


def judge(call: Call, endpoint: Endpoint | None) -> Refused | None:
    """Judge the authority of a caller to call an endpoint, or to learn which there are."""
    if endpoint is None:
        return None if may_discover(call) else undisclosed(call)
    route = call.routes.steps.get(endpoint.key)
    return None if route is None else scope_gate(RoutedCall(call, route))


def _outcome(response: Response) -> Outcome:
    body = msgspec.json.decode(response.body) if response.body else {}
    if status.is_success(response.status):
        warning = response.header(ENDPOINT_WARNING) or response.header(CATALOG_WARNING)
        return Outcome(response.status, body, warning=warning)
    error = body.get("error", {}) if isinstance(body, dict) else {}
    return Outcome(response.status, error=error, retry_after=response.header("retry-after"))
