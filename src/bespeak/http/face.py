"""The HTTP face of a service as an ASGI application: documents at their paths, endpoints behind the dispatcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak import status
from bespeak.contract.http_route import takes_get
from bespeak.exchange.handler import Handler
from bespeak.exchange.headers import IF_NONE_MATCH
from bespeak.exchange.messages import Connection, Malformed, Response
from bespeak.http.asgi import Headers, Receive, Scope, Send
from bespeak.http.page import Page
from bespeak.http.problem import MEDIA_PROBLEM, problem_body
from bespeak.http.translation import (
    AGIS_METHOD,
    AGIS_NAMESPACE,
    encode_block,
    local_path,
    meant,
    read_headers,
    to_http,
    to_request,
)
from bespeak.runtime.registry import Registry
from bespeak.wire.limits import DEFAULT_LIMITS, Limits

CONNECTION: Final = "bespeak.connection"
"""Where a server that knows more of its connections than ASGI tells puts them into the scope's state."""

_READING: Final = frozenset({"GET", "HEAD"})
_NO_STORE: Final = (b"cache-control", b"no-store")
"""What an endpoint answers is for one caller, and known by headers that caches do not look at."""


class HttpFace:
    """Answers HTTP for one registry. Documents go before endpoints, and no endpoint can take a document's place."""

    def __init__(
        self, handler: Handler, registry: Registry, pages: Mapping[str, Page], *, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._handler = handler
        self._registry = registry
        self._pages = pages
        self._limits = limits
        # The blocks of routes live as long as the registry, so that their identity says which one it is.
        self._blocks: dict[int, Headers] = {}
        for methods in registry.router.literals.values():
            for route in methods.values():
                self._blocks[id(route.block)] = [*encode_block(route.block), _NO_STORE]
        self._readable = frozenset(key for key, endpoint in registry.endpoints.items() if takes_get(endpoint))
        vocabulary = registry.service.vocabulary
        named = {endpoint.namespace for endpoint in registry.endpoints.values() if endpoint.namespace is not None}
        self._namespaces = named | ({vocabulary.namespace} if vocabulary and vocabulary.namespace else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or take part in the life of the server."""
        kind = scope["type"]
        if kind == "http":
            number, headers, body = await self._answer(scope, receive)
            await send({"type": "http.response.start", "status": number, "headers": headers})
            await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
        elif kind == "lifespan":
            await _live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": "This service has no web sockets."})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Headers, bytes]:
        connection = scope.get("state", {}).get(CONNECTION) or _connection(scope)
        headers = read_headers(scope["headers"], self._limits.headers)
        if isinstance(headers, Malformed):
            return self._malformed(headers, connection)
        path = local_path(scope)
        http_method = scope["method"]
        if AGIS_METHOD not in headers and path in self._pages:
            return self._page(self._pages[path], http_method, headers)
        found = meant(path, headers)
        if found is not None:
            path, method = found
            refused = self._check_namespace(headers) or self._check_method(http_method, method, path, headers)
        elif http_method in self._registry.policies.methods.legacy:
            method, refused = http_method, None  # AGTP-API 3.6: what a verb of HTTP means here is the operator's choice
        else:
            return self._advise(path, http_method)
        if refused is not None:
            return refused
        body = await self._read(receive)
        if isinstance(body, Malformed):
            return self._malformed(body, connection)
        query = scope["query_string"].decode("latin-1")
        answer = self._handler(to_request((path, method), query, headers, body, connection))
        response = answer if isinstance(answer, Response) else await answer
        return to_http(response, self._blocks.get(id(response.block)) or encode_block(response.block))

    async def _read(self, receive: Receive) -> bytes | Malformed:
        """The body, as far as the limit allows."""
        message = await receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            parts, size = [body], len(body)
            while message.get("more_body"):
                message = await receive()
                if message["type"] == "http.disconnect":
                    return Malformed(status.BAD_REQUEST, "incomplete-message", "The body ends before its length.")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > self._limits.body:
                    break
            body = b"".join(parts)
        if len(body) > self._limits.body:
            most = self._limits.body
            return Malformed(status.CONTENT_TOO_LARGE, "content-too-large", f"The body is larger than {most} bytes.")
        return body

    def _page(self, page: Page, http_method: str, headers: Mapping[str, str]) -> tuple[int, Headers, bytes]:
        if http_method not in _READING:
            return _refusal(405, "method-not-allowed", "A document can only be read.", allow="GET, HEAD")
        return page.answer(headers.get(IF_NONE_MATCH), whole=http_method == "GET")

    def _check_namespace(self, headers: Mapping[str, str]) -> tuple[int, Headers, bytes] | None:
        """AGIS 10.1: a client that holds several service maps says which one it means."""
        wanted = headers.get(AGIS_NAMESPACE)
        if wanted is None or not self._namespaces or wanted in self._namespaces:
            return None
        here = ", ".join(sorted(self._namespaces))
        message = f"The namespace {wanted[:80]!r} is not served here; this service has {here}."
        return _refusal(status.NOT_FOUND, "namespace-not-found", message)

    def _check_method(
        self, http_method: str, method: str, path: str, headers: Mapping[str, str]
    ) -> tuple[int, Headers, bytes] | None:
        """Whether the method of HTTP suits: GET must change nothing, and only a header may replace POST's meaning."""
        if http_method == "POST":
            return None
        if http_method not in _READING:
            if http_method != "OPTIONS" and AGIS_METHOD in headers:
                return None
            return self._options(method, path, http_method)
        # What a redirect leads to is what would be carried out.
        target = self._registry.redirects.follow(method, path)
        found = self._registry.router.find(*target)
        if found is not None and found[0].endpoint.key in self._readable:
            return None
        if found is None and self._registry.wildcard is None:
            return None  # nothing can be carried out, and the dispatcher says why
        message = f"{method} {path[:120]} is not for {http_method}: send it by POST."
        return _refusal(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow="POST, OPTIONS")

    def _options(self, method: str, path: str, http_method: str) -> tuple[int, Headers, bytes]:
        found = self._registry.router.find(method, path)
        readable = found is not None and found[0].endpoint.key in self._readable
        allow = "GET, HEAD, POST, OPTIONS" if readable else "POST, OPTIONS"
        if http_method == "OPTIONS":
            return 204, [(b"allow", allow.encode())], b""
        message = f"An endpoint is called by {'GET or POST' if readable else 'POST'}, not by {http_method[:20]}."
        return _refusal(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow=allow)

    def _advise(self, path: str, http_method: str) -> tuple[int, Headers, bytes]:
        """The answer on a path that names no verb: where the endpoints on it are."""
        registry = self._registry
        offered = [
            f"{path}:{method.lower()}"
            for method in registry.router.methods_at(path)
            if method in registry.allowed and not registry.router.find(method, path)[0].endpoint.internal  # type: ignore[index]
        ]
        if not offered:
            advice = "/openapi.json and /llms.txt list what is here."
            return _refusal(status.NOT_FOUND, "endpoint-not-found", f"Nothing is at {path[:120]!r}. {advice}")
        if http_method == "OPTIONS":
            return 204, [(b"allow", b"OPTIONS")], b""
        message = f"{http_method[:20]} says nothing of what is meant: {', '.join(offered[:20])}, or send X-AGIS-Method."
        return _refusal(
            status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow="OPTIONS", details={"routes": offered[:20]}
        )

    def _malformed(self, fault: Malformed, connection: Connection) -> tuple[int, Headers, bytes]:
        response = self._handler.malformed(fault, connection)
        number, headers, body = to_http(response, encode_block(response.block))
        return number, [*headers, (b"connection", b"close")], body


def _refusal(
    number: int, code: str, message: str, *, allow: str | None = None, details: Mapping[str, Any] | None = None
) -> tuple[int, Headers, bytes]:
    """A refusal of this face itself, before there is anything AGTP could refuse."""
    body = problem_body(number, number, {"code": code, "message": message, **(details or {})})
    headers: Headers = [
        (b"content-type", MEDIA_PROBLEM.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"agtp-status", b"%d" % number),
    ]
    if allow is not None:
        headers.append((b"allow", allow.encode()))
    return number, headers, body


def _connection(scope: Scope) -> Connection:
    """What ASGI tells of a connection. Every request counts as a later one: HTTP introduces itself by documents."""
    host, port = scope.get("client") or ("", 0)
    connection = Connection(face="http", peer=f"{host}:{port}", address=host, secure=scope.get("scheme") == "https")
    connection.answered = 1
    return connection


async def _live(receive: Receive, send: Send) -> None:
    """Begin and end with the server; what is to be opened is opened by whoever made the face."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
