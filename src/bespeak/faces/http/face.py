"""The HTTP face of a service as an ASGI application: documents at their paths, endpoints behind the dispatcher."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

from bespeak.contract.http_route import takes_get
from bespeak.faces.http.asgi import Headers, Receive, Reply, Scope, Send, send_reply
from bespeak.faces.http.negotiation import Root
from bespeak.faces.http.origin import Forbidden, Origins
from bespeak.faces.http.page import Page
from bespeak.faces.http.problem import problem_body
from bespeak.faces.http.translation import (
    AGIS_METHOD,
    AGIS_NAMESPACE,
    SCHEMES,
    encode_block,
    local_path,
    meant,
    read_headers,
    to_good,
    to_http,
    to_request,
    without_prefix,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.handler import Handler
from bespeak.protocol.exchange.headers import MEDIA_PROBLEM
from bespeak.protocol.exchange.messages import Connection, Malformed, Response
from bespeak.protocol.wire.limits import DEFAULT_LIMITS, Limits
from bespeak.runtime.gates.vocabulary import method_in_force
from bespeak.runtime.registry import Registry

_logger = logging.getLogger(__name__)

CONNECTION: Final = "bespeak.connection"
"""Where a server that knows more of its connections than ASGI tells puts them into the scope's state."""

CLOSE: Final = (b"connection", b"close")

_READING: Final = frozenset({"GET", "HEAD"})
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
"""Where a header may say what is meant. Others promise that nothing changes (RFC 9110 9.2.1), TRACE and QUERY too."""
_LISTS: Final = ("/openapi.json", "/llms.txt")
"""Where somebody who is lost finds the way, if these are for everybody."""
_NO_STORE: Final = (b"cache-control", b"no-store")
"""What an endpoint answers is for one caller, and known by headers that caches do not look at."""
_BY_ACCEPT: Final = (b"vary", b"Accept")
"""Documents that the server has for its callers say themselves how long they can be kept; `Accept` chooses one."""


class HttpFace:
    """Answers HTTP for one registry. Documents go before endpoints, and no endpoint can take a document's place."""

    def __init__(
        self,
        handler: Handler,
        registry: Registry,
        pages: Mapping[str, Page | Root],
        *,
        limits: Limits = DEFAULT_LIMITS,
        origins: Origins | None = None,
        prefix: str = "",
        modes: Iterable[str] = ("open",),
    ) -> None:
        """`prefix`: the path under which the world knows the service, as far as requests still have it.

        `modes`: how callers prove who they are.
        """
        self.limits = limits
        self._prefix = prefix
        self._handler = handler
        self._registry = registry
        self._pages = pages
        self._origins = origins or Origins()
        self._challenge = ", ".join(SCHEMES[mode] for mode in modes).encode()
        # The blocks of routes live as long as the registry, so that their identity says which one it is.
        self._blocks: dict[int, Headers] = {}
        self._good: dict[int, Headers] = {}  # the same of outputs, with all that every one of them has
        self._literal: dict[str, tuple[str, str]] = {}
        for method, path in registry.endpoints:
            found = registry.router.find(method, path)
            if found is not None:
                block = found[0].block
                self._blocks[id(block)] = encoded = encode_block(block)
                if not found[0].endpoint.builtin:
                    self._good[id(block)] = [*encoded, _NO_STORE, (b"agtp-status", b"200")]
                self._literal[f"{path}:{method.lower()}"] = (path, method)
        self._readable = frozenset(key for key, endpoint in registry.endpoints.items() if takes_get(endpoint))
        vocabulary = registry.service.vocabulary
        # A service that declares none of its own has nothing that could be mistaken; the built-in methods do.
        endpoints = [endpoint for endpoint in registry.endpoints.values() if not endpoint.builtin]
        own = {vocabulary.namespace} if vocabulary and vocabulary.namespace else set()
        self._namespaces = {each.namespace for each in endpoints if each.namespace is not None} | own
        self._told = {each.namespace for each in endpoints if each.namespace is not None and not each.internal} | own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or take part in the life of the server."""
        kind = scope["type"]
        if kind == "http":
            try:
                reply = await self._serve(scope, receive)
            except Exception as error:  # noqa: BLE001 - it is reported, and the caller gets an answer whatever it was
                reply = failed(error)
            await send_reply(reply, scope["method"], send)
        elif kind == "lifespan":
            await _live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": "This service has no web sockets."})

    async def _serve(self, scope: Scope, receive: Receive) -> Reply:
        connection = connection_of(scope)
        headers = read_headers(scope["headers"], self.limits.headers)
        if isinstance(headers, Malformed):
            return self.malformed(headers, connection)
        found = self.admit(scope["method"], local_path(scope), headers)
        if isinstance(found, Reply):
            return found
        body = await self._read(receive, headers)
        if isinstance(body, Malformed):
            return self.malformed(body, connection)
        answer = self.call(found, scope["query_string"].decode("latin-1"), headers, body, connection)
        return answer if isinstance(answer, Reply) else await answer

    def admit(self, http_method: str, path: str, headers: dict[str, str]) -> Reply | tuple[str, str]:
        """What is to be called, path and method; or the answer, where that needs no call."""
        forbidden = self._origins.check_host(headers)
        if forbidden is not None:
            return _forbid(forbidden)
        if self._prefix:
            path = self._below_prefix(path, headers)
        found = None
        if AGIS_METHOD not in headers:
            # The path of a document names no verb, so that none is the path of an endpoint.
            found = self._literal.get(path)
            if found is None and path in self._pages:
                return self._page(path, http_method, headers)
        if "origin" in headers:
            forbidden = self._origins.check_origin(headers)
            if forbidden is not None:
                return _forbid(forbidden)
        if found is None:
            found = meant(path, headers)
        if found is None:
            verb = "GET" if http_method == "HEAD" else http_method
            if verb not in self._registry.policies.methods.legacy:
                return self._advise(path, http_method)
            # AGTP-API 3.6: what a verb of HTTP means here is the operator's choice, but that a GET changes nothing.
            found = path, verb
            return (self._check_reading(http_method, found) if http_method in _READING else None) or found
        refused = self._check_namespace(headers) if AGIS_NAMESPACE in headers else None
        if refused is None and http_method != "POST":
            refused = self._check_method(http_method, found, headers)
        return found if refused is None else refused

    def _below_prefix(self, path: str, headers: Mapping[str, str]) -> str:
        """The path without the prefix, unless that was taken off already: a path of the service may begin like it."""
        below = without_prefix(path, self._prefix)
        return path if below != path and self._is_known(path, headers) and not self._is_known(below, headers) else below

    def _is_known(self, path: str, headers: Mapping[str, str]) -> bool:
        found = meant(path, headers)
        return path in self._pages or (found is not None and self._registry.router.find(found[1], found[0]) is not None)

    def call(
        self, found: tuple[str, str], query: str, headers: Mapping[str, str], body: bytes, connection: Connection
    ) -> Reply | Coroutine[Any, Any, Reply]:
        """Call what was admitted. As with a handler, a coroutine only for an answer that has to be waited for."""
        answer = self._handler(to_request(found, query, headers, body, connection))
        return self._reply(answer) if isinstance(answer, Response) else self._wait(answer)

    def malformed(self, fault: Malformed, connection: Connection) -> Reply:
        """Answer what was no request, and ask for the connection to be closed."""
        reply = self._reply(self._handler.malformed(fault, connection))
        reply.headers.append(CLOSE)
        return reply

    async def _wait(self, answer: Coroutine[Any, Any, Response]) -> Reply:
        return self._reply(await answer)

    def _reply(self, response: Response) -> Reply:
        if response.status == status.OK:
            good = self._good.get(id(response.block))
            if good is not None:
                return to_good(response, good)
        block = self._blocks.get(id(response.block)) or encode_block(response.block)
        kept = any(name == "Cache-Control" for name, _ in response.headers)
        return to_http(response, [*block, _BY_ACCEPT if kept else _NO_STORE], self._challenge)

    async def _read(self, receive: Receive, headers: Mapping[str, str]) -> bytes | Malformed:
        """The body, as far as the limit allows."""
        most = self.limits.body
        too_large = Malformed(status.CONTENT_TOO_LARGE, "content-too-large", f"The body is larger than {most} bytes.")
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > most:
            return too_large
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return Malformed(status.BAD_REQUEST, "incomplete-message", "The body ends before its length.")
            part: bytes = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if size > most:
                return too_large
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def _page(self, path: str, http_method: str, headers: dict[str, str]) -> Reply | tuple[str, str]:
        if http_method in _READING:
            return self._pages[path].answer(headers)
        if http_method == "OPTIONS":
            return Reply(status.NO_CONTENT, [(b"allow", b"GET, HEAD, OPTIONS")], b"")
        return refusal(405, "method-not-allowed", "A document can only be read.", allow="GET, HEAD, OPTIONS")

    def _check_namespace(self, headers: Mapping[str, str]) -> Reply | None:
        """AGIS 10.1: a client that holds several service maps says which one it means."""
        wanted = headers[AGIS_NAMESPACE]
        if not self._namespaces or wanted in self._namespaces:
            return None
        advice = f"; this service has {', '.join(sorted(self._told))}" if self._told else ""
        message = f"The namespace {wanted[:80]!r} is not served here{advice}."
        return refusal(status.NOT_FOUND, "namespace-not-found", message)

    def _check_method(self, http_method: str, found: tuple[str, str], headers: Mapping[str, str]) -> Reply | None:
        """Whether the method of HTTP suits: GET must change nothing, and only a header may replace POST's meaning."""
        if http_method in _READING:
            return self._check_reading(http_method, found)
        if http_method in _CHANGING and AGIS_METHOD in headers:
            return None
        path, method = found
        return self._options(method, path, http_method)

    def _check_reading(self, http_method: str, found: tuple[str, str]) -> Reply | None:
        """Whether what would be carried out changes nothing: that to which legacy verbs and redirects lead."""
        path, method = found
        registry = self._registry
        method = method_in_force(registry, method, path)
        route = registry.router.find(*registry.redirects.follow(method, path))
        if route is not None and route[0].endpoint.key in self._readable:
            return None
        if route is None and registry.wildcard is None:
            return None  # nothing can be carried out, and the dispatcher says why
        message = f"{method[:40]} {path[:120]} is not for {http_method}: send it by POST to its path and verb."
        return refusal(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow="POST, OPTIONS")

    def _options(self, method: str, path: str, http_method: str) -> Reply:
        found = self._registry.router.find(method, path)
        readable = found is not None and found[0].endpoint.key in self._readable
        allow = "GET, HEAD, POST, OPTIONS" if readable else "POST, OPTIONS"
        if http_method == "OPTIONS":
            return Reply(status.NO_CONTENT, [(b"allow", allow.encode())], b"")
        message = f"An endpoint is called by {'GET or POST' if readable else 'POST'}, not by {http_method[:20]}."
        return refusal(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow=allow)

    def _advise(self, path: str, http_method: str) -> Reply:
        """The answer on a path that names no verb: where the endpoints on it are."""
        registry = self._registry
        found = ((method, registry.router.find(method, path)) for method in registry.router.methods_at(path))
        offered = [
            f"{path}:{method.lower()}"
            for method, route in found
            if method in registry.allowed and route is not None and not route[0].endpoint.internal
        ]
        if http_method == "OPTIONS" and (offered or path == "*"):
            return Reply(status.NO_CONTENT, [(b"allow", b"OPTIONS")], b"")
        if not offered:
            lists = " and ".join(page for page in _LISTS if page in self._pages)
            advice = f" {lists} list what is here." if lists else ""
            return refusal(status.NOT_FOUND, "endpoint-not-found", f"Nothing is at {path[:120]!r}.{advice}")
        message = f"{http_method[:20]} says nothing of what is meant: {', '.join(offered[:20])}, or send X-AGIS-Method."
        return refusal(
            status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow="OPTIONS", details={"routes": offered[:20]}
        )


def refusal(
    number: int, code: str, message: str, *, allow: str | None = None, details: Mapping[str, Any] | None = None
) -> Reply:
    """A refusal of this face itself, before there is anything AGTP could refuse."""
    body = problem_body(number, number, {"code": code, "message": message, **(details or {})})
    headers: Headers = [
        (b"content-type", MEDIA_PROBLEM.encode()),
        (b"content-length", b"%d" % len(body)),
        _NO_STORE,
    ]
    if number in status.REASONS:
        headers.append((b"agtp-status", b"%d" % number))
    if allow is not None:
        headers.append((b"allow", allow.encode()))
    return Reply(number, headers, body)


def failed(error: Exception) -> Reply:
    """The answer when the face itself fails: what went wrong is for the log."""
    _logger.error("The HTTP face failed", exc_info=error)
    reply = refusal(status.SERVER_ERROR, "server-error", "The service failed; the operator's log has the reason.")
    reply.headers.append(CLOSE)
    return reply


def connection_of(scope: Scope) -> Connection:
    """The connection of a request: the one its server knows, unless a proxy speaks for somebody else.

    Every request counts as a later one: HTTP introduces itself by documents.
    """
    known: Connection | None = scope.get("state", {}).get(CONNECTION)
    host, port = scope.get("client") or ("", 0)
    if known is not None and host in ("", known.address):
        return known
    # A certificate that the proxy presented says nothing about the caller behind it.
    connection = Connection(face="http", peer=f"{host}:{port}", address=host, secure=scope.get("scheme") == "https")
    connection.answered = 1
    return connection


def _forbid(forbidden: Forbidden) -> Reply:
    _logger.info("%d %s", forbidden.status, forbidden.code)
    return refusal(*forbidden)


async def _live(receive: Receive, send: Send) -> None:
    """Begin and end with the server; what is to be opened is opened by whoever made the face."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
