"""A service behind MCP that is called through its own dispatcher, with the credentials of each HTTP request."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.confirmation import ListedCall, asks_person
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import fill_path
from bespeak.faces.http.asgi import Scope
from bespeak.faces.http.face import connection_of
from bespeak.faces.http.translation import read_headers
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.runtime.call import Call, RoutedCall, parties_of, refuse_stranger
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.extension import LIST_CALLS
from bespeak.runtime.gates import authority, judge_early
from bespeak.runtime.identity.authority import KEPT_HEADERS
from bespeak.runtime.route import CATALOG_WARNING, ENDPOINT_WARNING
from bespeak.runtime.route_table import RouteTable
from bespeak.runtime.server import Server
from bespeak.state.identity.credentials import Outdated

# Headers of the HTTP request that apply to the call. A signature does not: it is one of another message.
PASSED: Final = (*KEPT_HEADERS, names.AUTHORIZATION, names.SEMANTIC_PROFILE)
Arguments = Mapping[str, Any]
Begun = Outcome | Coroutine[Any, Any, Outcome]  # a call that is done, or has to be awaited
PRINCIPAL: Final = "bespeak.principal"  # key of a scope with the verified caller
_SENT: Final = "bespeak.sent"  # key of a scope with the headers that apply to calls
_ENCODE: Final = msgspec.json.Encoder().encode


class DispatchBackend:
    def __init__(self, handler: Dispatcher, server: Server, face: str) -> None:
        """Call a server through its handler, as the `face` that logs and the audit trail name."""
        self._face = face
        self._handler = handler
        self._server = server
        self._routes: RouteTable | None = None
        service = server.routes.service
        self.name = service.identity.name or service.identity.server_id
        self.server_id = service.identity.server_id
        self.version = server.routes.publication.version

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        self._routes = self._server.routes
        return self._routes.every

    def own_table(self, principal: Principal) -> RouteTable | None:
        """Return what exists for a caller; None if that is what exists for everyone."""
        shared = self._server.routes
        table = self._server.table_for(principal.agent_id, shared)
        return None if table is shared else table

    def own(self, request: Any) -> RouteTable | None:
        return self.own_table(request.scope[PRINCIPAL])

    async def document(self, media_type: str, request: Any) -> bytes | None:
        """Return a document of what exists for the caller. Whether the caller may discover was judged before."""
        principal: Principal = request.scope[PRINCIPAL]
        publication = self._server.table_for(principal.agent_id).publication
        made = publication.agis_for if media_type == names.MEDIA_AGIS else publication.manifest_for
        return made(principal).body

    @property
    def is_current(self) -> bool:
        """True if no endpoint was added or removed since the endpoints were last read."""
        return self._routes is self._server.routes

    @property
    def is_public(self) -> bool:
        """True if strangers may learn what the server serves."""
        return self._server.routes.policies.anonymous_discovery

    def caller(self, request: Any) -> str:
        """Return the Agent-ID of the caller; empty for an anonymous one."""
        principal: Principal = request.scope[PRINCIPAL]
        return principal.agent_id or ""

    def parties(self, request: Any) -> tuple[str, ...]:
        return parties_of(self._identified(("DISCOVER", "/"), request))

    async def calls(self, endpoint: Endpoint, arguments: Arguments, request: Any) -> tuple[ListedCall, ...] | Fault:
        listed: tuple[ListedCall, ...] | Fault = await self._server.hooks[LIST_CALLS](
            self._identified(endpoint.key, request), endpoint, arguments
        )
        return listed

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        found = self._server.routes.steps.get(endpoint.key)
        return found is not None and found.is_confirmed

    def asks_person(self, endpoint: Endpoint) -> bool:
        """Return True if a face for models lets a person confirm a call, because the policies do not."""
        return asks_person(endpoint, self._server.routes.policies) and not self.is_confirmed(endpoint)

    def refuse(
        self,
        endpoint: Endpoint,
        request: Any,
        arguments: Arguments | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Outcome | None:
        call = self._identified(endpoint.key, request)
        found = judge(call, endpoint)
        if found is None and arguments is not None:
            found = judge_purchase(call, endpoint, arguments, headers or {})
        return None if found is None else refused(found)

    async def record(self, endpoint: Endpoint, request: Any, outcome: Outcome) -> None:
        """Record a refusal of the face, as if a gate had refused the call."""
        if (routed := _routed(self._identified(endpoint.key, request), endpoint)) is not None:
            refusal = Refused(outcome.status, outcome.error["code"], outcome.error["message"])
            answer = self._handler.record_refusal(routed, refusal)
            if not isinstance(answer, Response):
                await answer

    def limit(self, endpoint: Endpoint, request: Any) -> Refused | None:
        """Count a call against the rate limit of its endpoint, for a face that stores something before it is made."""
        routed = _routed(self._identified(endpoint.key, request), endpoint)
        return None if routed is None else authority.endpoint_rate_gate(routed)

    async def admit(self, scope: Scope, *, calls: bool) -> Call | Refused:
        """Verify credentials and note the principal; what `calls` is counted against the rates later, others here."""
        call = self._arrive(scope, "DISCOVER", "/")
        found = (None if calls else authority.address_rate_gate(call)) or authority.identity_gate(call)
        if isinstance(found, Outdated):
            await self._server.principals.renew_keys()
            found = authority.identity_gate(call)
            found = found.refused if isinstance(found, Outdated) else found
        if found is not None:
            return (authority.address_rate_gate(call) if calls else None) or found
        scope[PRINCIPAL] = call.principal
        return (None if calls else authority.agent_rate_gate(call)) or call

    def identify(self, sent: Mapping[str, str], connection: Connection) -> Call | Refused | Outdated:
        """Verify credentials at once; `sent` are the headers that apply to calls."""
        call = Call(Request("DISCOVER", "/", "", sent, b"", connection.seen_as(self._face)), self._server)
        return authority.identity_gate(call) or call

    def count(self, call: Call) -> Refused | None:
        """Count a request that calls no endpoint against the rate limits; refuse it above them."""
        return authority.address_rate_gate(call) or authority.agent_rate_gate(call)

    async def call(self, endpoint: Endpoint, arguments: Arguments, headers: Mapping[str, str], request: Any) -> Outcome:
        """Call an endpoint with the headers of the HTTP request, which no others of the same name replace."""
        sent = {**{name.lower(): value for name, value in headers.items()}, **_sent(request.scope)}
        return await finish(self.begin(endpoint, arguments, sent, connection_of(request.scope)))

    async def call_counted(
        self, endpoint: Endpoint, arguments: Arguments, headers: Mapping[str, str], request: Any
    ) -> Outcome:
        """Call an endpoint for a request that `admit` and `limit` have counted against all rate limits."""
        sent = {**_sent(request.scope), **{name.lower(): value for name, value in headers.items()}}
        return await finish(self.begin(endpoint, arguments, sent, connection_of(request.scope), counted=True))

    def begin(
        self,
        endpoint: Endpoint,
        arguments: Arguments,
        sent: Mapping[str, str],
        connection: Connection,
        *,
        counted: bool = False,
    ) -> Begun:
        """Call an endpoint; return a coroutine only if the answer has to be awaited."""
        layer = self._server.part("semantic") if "{" in endpoint.path else None
        placed = arguments if layer is None else layer.place(endpoint, arguments)
        if isinstance(placed, Refused):
            return refused(placed)
        filled = fill_path(endpoint.path, placed)
        if isinstance(filled, Fault):
            return refused(Refused(status.BAD_REQUEST, "invalid-arguments", filled.message))
        path, given = filled
        body = b"" if given is None else _ENCODE(given)
        request = Request(endpoint.method, path, "", sent, body, connection.seen_as(self._face), counted=counted)
        answer = self._handler(request)
        return _outcome(answer) if isinstance(answer, Response) else _await_outcome(answer)

    def _identified(self, key: tuple[str, str], request: Any) -> Call:
        call = self._arrive(request.scope, *key)
        call.principal = request.scope[PRINCIPAL]
        return call

    def _arrive(self, scope: Scope, method: str, path: str) -> Call:
        connection = connection_of(scope).seen_as(self._face)
        return Call(Request(method, path, "", _sent(scope), b"", connection), self._server)


async def finish(begun: Begun) -> Outcome:
    return begun if isinstance(begun, Outcome) else await begun


def passed(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an HTTP request that apply to calls."""
    return {name: headers[name].strip() for name in PASSED if name in headers}


def _sent(scope: Scope) -> dict[str, str]:
    """Return the headers of a request that apply to calls. The face has checked that none of them occurs twice."""
    found: dict[str, str] | None = scope.get(_SENT)
    if found is None:
        headers = read_headers(scope["headers"], len(scope["headers"]))
        found = scope[_SENT] = {} if isinstance(headers, Malformed) else passed(headers)
    return found


def judge(call: Call, endpoint: Endpoint | None) -> Refused | None:
    """Judge the authority of a caller to call an endpoint, or to learn which there are."""
    if endpoint is None:
        return refuse_stranger(call)
    routed = _routed(call, endpoint)
    return None if routed is None else authority.scope_gate(routed)


def _routed(call: Call, endpoint: Endpoint) -> RoutedCall | None:
    route = call.routes.steps.get(endpoint.key)
    return None if route is None else RoutedCall(call, route)


def judge_purchase(call: Call, endpoint: Endpoint, arguments: Arguments, headers: Mapping[str, str]) -> Refused | None:
    """Judge a purchase before a person is asked about it, with `headers` beside its own; other calls pass."""
    if (routed := _routed(call, endpoint)) is None:
        return None
    routed.input = dict(arguments)
    routed.request = msgspec.structs.replace(call.request, headers={**headers, **call.request.headers})
    return judge_early(routed)


async def _await_outcome(answer: Coroutine[Any, Any, Response]) -> Outcome:
    return _outcome(await answer)


def _outcome(response: Response) -> Outcome:
    body = msgspec.json.decode(response.body) if response.body else {}
    mapping = response.header(names.SEMANTIC_MAPPING)
    if status.is_success(response.status):
        warning = response.header(ENDPOINT_WARNING) or response.header(CATALOG_WARNING)
        return Outcome(response.status, body, warning=warning, mapping=mapping)
    error = body.get("error", {}) if isinstance(body, dict) else {}
    return Outcome(response.status, error=error, retry_after=response.header("retry-after"), mapping=mapping)
