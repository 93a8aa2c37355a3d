"""The HTTP face of a service as an ASGI application: documents at their paths, endpoints behind the dispatcher."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Coroutine, Iterable, Mapping
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from bespeak.faces.http import translation
from bespeak.faces.http.asgi import Headers, HttpResponse, Message, Receive, Scope, Send, send_response
from bespeak.faces.http.site import NO_STORE, MakePages, Page, Root, Site
from bespeak.faces.http.translation import (
    AGIS_METHOD,
    RequestTarget,
    condition_of,
    meant,
    read_body,
    read_headers,
    to_good,
    to_http,
    to_request,
)
from bespeak.protocol import status
from bespeak.protocol.address import Address, split_url
from bespeak.protocol.exchange.headers import MEDIA_PROBLEM, stream_type
from bespeak.protocol.exchange.messages import Connection, Handler, Malformed, Request, Response, Stream
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.exchange import is_access_logged, known_parts, log_answer
from bespeak.runtime.server import Server

if TYPE_CHECKING:
    from bespeak.faces.http.files import FileFace


_LONGEST: Final = 300  # maximum characters of a host or an origin; a DNS name has 253 at most
_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"[^\s/?#\\@]+")
"""A host and its port. URL parsers accept more than that as a host: `localhost#.evil.example`."""


class Forbidden(NamedTuple):
    status: int
    code: str
    message: str


class Origins:
    """The allowed origins, and the host names of this service."""

    # Clients other than browsers send no Origin and are not affected. Host is checked if the service listens on
    # loopback only: a page whose name was made to resolve to 127.0.0.1 (DNS rebinding) still sends its own name there.

    def __init__(self, *, url: str | None = None, allowed: tuple[str, ...] = (), loopback: bool = False) -> None:
        self._own = _place(url) if url is not None else None
        self._everybody = "*" in allowed
        self._allowed = frozenset(place for place in map(_place, allowed) if place is not None)
        self._loopback = loopback
        self._served = lru_cache(64)(self._is_served)
        self._admitted = lru_cache(256)(self._is_admitted)

    def check_host(self, headers: Mapping[str, str]) -> Forbidden | None:
        host = headers.get("host")
        if not self._loopback or host is None or (len(host) <= _LONGEST and self._served(host)):
            return None
        message = (
            f"This service answers only on this machine, not as {host[:80]!r}; "
            "call it at localhost, or set its public address in [http] url."
        )
        return Forbidden(421, "host-not-served", message)

    def check_origin(self, headers: Mapping[str, str]) -> Forbidden | None:
        origin = headers.get("origin")
        if origin is None or self._everybody:
            return None
        if len(origin) <= _LONGEST and self._admitted(origin, headers.get("host", "")[:_LONGEST]):
            return None
        message = f"Pages of {origin[:80]!r} may not call this service; the operator can allow it in [http] cors."
        return Forbidden(403, "origin-not-allowed", message)

    def _is_served(self, host: str) -> bool:
        found = _place(f"http://{host}")
        if found is None or not _NAME.fullmatch(host):
            return False
        name = found[1]
        return Address(name, 0).is_loopback or (self._own is not None and name == self._own[1])

    def _is_admitted(self, origin: str, host: str) -> bool:
        place = _place(origin)
        # `null`, the origin of sandboxed pages and files, for example, is not a valid origin.
        if place is None or not _NAME.fullmatch(origin.partition("://")[2]):
            return False
        # A proxy may have terminated TLS, so the scheme here may differ from that of the page.
        return place in self._allowed or place == self._own or place == _place(f"{place[0]}://{host}")


def _place(text: str) -> tuple[str, str, int] | None:
    """Parse an origin into scheme, host and port; return None if it is not valid."""
    try:
        parts = split_url(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if host is None or parts.scheme not in _PORTS or "@" in parts.netloc:
        return None
    return parts.scheme, host.lower(), _PORTS[parts.scheme] if port is None else port


_logger = logging.getLogger(__name__)
CONNECTION: Final = "bespeak.connection"
"""Key in the scope's state under which a server puts its Connection, which has more than ASGI passes on."""
READ_FORM: Final = "bespeak.form"  # key in the scope's state: a form that the server has read already
GONE: Final = "bespeak.gone"  # key in the scope's state: a function that tells whether the client is gone
CLOSE: Final = (b"connection", b"close")
_READING: Final = frozenset({"GET", "HEAD"})
# HTTP methods whose target a header may name. Others promise to change nothing (RFC 9110 9.2.1), TRACE and QUERY too.
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LISTS: Final = ("/openapi.json", "/llms.txt")  # pages that a 404 refers to if discovery is public
_BY_ACCEPT: Final = (b"vary", b"Accept")  # of documents that `Accept` selects; the server sets their cache lifetime


class HttpFace:
    """Answers HTTP for one server. Documents take precedence over endpoints with the same path."""

    def __init__(
        self,
        handler: Handler,
        server: Server,
        pages: MakePages,
        *,
        limits: Limits = DEFAULT_LIMITS,
        origins: Origins | None = None,
        prefix: str = "",
        modes: Iterable[str] = ("open",),
    ) -> None:
        """Create a face; `pages` builds the documents of a route table, `prefix` is the path of the public URL."""
        self.limits = limits
        self._prefix = prefix
        self._handler = handler
        self._server = server
        self._make_pages = pages
        self._origins = origins or Origins()
        # RFC 6750 3: a challenge has at least one parameter.
        realm = "".join(char for char in server.routes.service.identity.server_id if char.isalnum() or char in ".-_:/@")
        schemes = dict.fromkeys(translation.SCHEMES[mode] for mode in modes)
        self._challenge = ", ".join(f'{scheme} realm="{realm}"' for scheme in schemes).encode("ascii", "ignore")
        self._site = Site(server.routes, pages(server.routes))
        self.is_logged = is_access_logged()  # True if answers that reach no dispatcher have to be logged here
        self.files: FileFace | None = None  # what takes and sends files; None for a server without such endpoints

    def _current(self) -> Site:
        site, routes = self._site, self._server.routes
        if site.routes is not routes:
            self._site = site = Site(routes, self._make_pages(routes))
        return site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "http":
            try:
                reply = await self._serve(scope, receive, send)
            except Exception as error:  # noqa: BLE001 - it is logged, and the caller gets an answer in any case
                reply = failed(error)
            if reply is not None:
                gone = scope.get("state", {}).get(GONE)
                await send_response(reply, scope["method"], send, *(() if gone is None else (gone,)))
        elif kind == "lifespan":
            await _follow_lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008, "reason": "This service does not support WebSockets."})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> HttpResponse | None:
        """Answer a request; return None if the answer was a stream, which has been sent."""
        connection = connection_of(scope)
        headers = translation.read_headers(scope["headers"], self.limits.headers)
        if isinstance(headers, Malformed):
            return self.malformed(headers, connection)
        started, path = perf_counter(), translation.local_path(scope)
        if self.files is not None:
            reply = await self.files.serve(scope, receive, path, headers, connection)
            if reply is not None:
                return reply
        found = self.admit(scope["method"], path, headers)
        if isinstance(found, HttpResponse):
            self.log(scope["method"], path, found, connection, started)
            return found
        body = await translation.read_body(receive, self.limits.body, headers.get("content-length", ""))
        if isinstance(body, Malformed):
            return self.malformed(body, connection)
        query, media_type = scope["query_string"].decode("latin-1"), stream_type(headers)
        if media_type is None or scope["method"] == "HEAD":
            answer = self.call(found, query, headers, body, connection)
            return answer if isinstance(answer, HttpResponse) else await answer
        request = to_request(found, query, headers, body, connection, streams=True)
        watching = asyncio.create_task(_end_with_reader(receive, connection))
        try:
            answered = self._handler(request)
            response = answered if isinstance(answered, Response) else await answered
            if response.stream is not None:
                await self._send_stream(response, response.stream, media_type, send)
                return None
        finally:
            await cancel_tasks(watching)
        prepared = found.reply if response is request.prepared else None
        return prepared or self.to_http_response(response)

    async def _send_stream(self, response: Response, stream: Stream, media_type: str, send: Send) -> None:
        """Send the items as they come, then the end or the error. The head has waited for the first item."""
        head = self.to_http_response(response)
        headers = [pair for pair in head.headers if pair[0] not in (b"content-length", b"content-type")]
        headers.append((b"content-type", media_type.encode()))
        sent, last = 0, False
        try:
            await send({"type": "http.response.start", "status": head.status, "headers": headers})
            while not last:
                batch = await stream.next()
                last = batch.ended or batch.failure is not None
                part = translation.to_part(batch, media_type, sent)
                sent += len(batch.items)
                await send({"type": "http.response.body", "body": part, "more_body": not last})
        except OSError:
            return  # raised by some servers if the peer is gone
        finally:
            await stream.aclose()

    def admit(self, http_method: str, path: str, headers: dict[str, str]) -> HttpResponse | RequestTarget:
        """Resolve what a request calls; return a reply if it needs no call."""
        if (forbidden := self._origins.check_host(headers)) is not None:
            return refusal(*forbidden)
        site = self._current()
        if self._prefix:
            # A proxy may have removed the prefix, and a path of the service may begin with the same text.
            below, method = translation.without_prefix(path, self._prefix), headers.get(AGIS_METHOD)
            is_whole = below != path and site.is_known(path, method) and not site.is_known(below, method)
            path = path if is_whole else below
        found = None
        if AGIS_METHOD not in headers:
            # The path of a document has no verb, so it cannot be the path of an endpoint.
            found = site.literal.get(path)
            if found is None and path in site.pages:
                return _page(site.pages[path], http_method, headers)
        if "origin" in headers and (forbidden := self._origins.check_origin(headers)) is not None:
            return refusal(*forbidden)
        target = _target(site, found or meant(path, headers), http_method, path, headers)
        if isinstance(target, HttpResponse) and not site.routes.policies.anonymous_discovery:
            # The reply tells what exists. Whether this caller may know that is decided with its identity.
            return RequestTarget(path, http_method, http_method in _READING, target)
        return target

    def forbids(self, headers: Mapping[str, str]) -> HttpResponse | None:
        """Return the refusal of a host or an origin that may not call this service."""
        forbidden = self._origins.check_host(headers) or self._origins.check_origin(headers)
        return None if forbidden is None else refusal(*forbidden)

    def call(
        self, target: RequestTarget, query: str, headers: Mapping[str, str], body: bytes, connection: Connection
    ) -> HttpResponse | Coroutine[Any, Any, HttpResponse]:
        """Call an admitted target. Like a handler, return a coroutine only if the answer has to be awaited."""
        request = to_request(target, query, headers, body, connection)
        answer = self._handler(request)
        if not isinstance(answer, Response):
            return self._wait(answer, request, target)
        return (target.reply if answer is request.prepared else None) or self.to_http_response(answer)

    def log(
        self,
        http_method: str,
        path: str,
        reply: HttpResponse,
        connection: Connection,
        started: float,
        *,
        known: bool = False,
        caller: str | None = None,
    ) -> None:
        """Log an answer of the face itself, or of an application at a `known` path; `started` is by `perf_counter`."""
        if self.is_logged:
            code = code_of(reply) if reply.status >= status.BAD_REQUEST else None
            seconds = perf_counter() - started
            known = known or path in self._site.pages or path in self._site.literal
            paths = path, path if known else known_parts(path, self._server.routes)
            log_answer(connection, http_method, paths, number=reply.status, code=code, seconds=seconds, caller=caller)

    def malformed(self, fault: Malformed, connection: Connection) -> HttpResponse:
        """Answer a message that is not a valid request, and ask for the connection to be closed."""
        reply = self.to_http_response(self._handler.malformed(fault, connection))
        reply.headers.append(CLOSE)
        return reply

    async def _wait(
        self, answer: Coroutine[Any, Any, Response], request: Request, target: RequestTarget
    ) -> HttpResponse:
        response = await answer
        return (target.reply if response is request.prepared else None) or self.to_http_response(response)

    def to_http_response(self, response: Response) -> HttpResponse:
        if response.status == status.OK and (good := self._site.good.get(id(response.block))) is not None:
            return to_good(response, good)
        block = self._site.blocks.get(id(response.block)) or translation.encode_block(response.block)
        kept = any(name == "Cache-Control" for name, _ in response.headers)
        return to_http(response, [*block, _BY_ACCEPT if kept else NO_STORE], self._challenge)


def _target(
    site: Site, found: tuple[str, str] | None, http_method: str, path: str, headers: Mapping[str, str]
) -> HttpResponse | RequestTarget:
    reads = http_method in _READING
    if found is None:
        verb = "GET" if http_method == "HEAD" else http_method
        if verb not in site.routes.policies.methods.legacy:
            return _advise(site, path, http_method)
        # AGTP-API 3.6: the operator chooses the meaning of HTTP verbs, except that GET changes nothing.
        return RequestTarget(path, verb, reads)
    wanted = headers.get(translation.AGIS_NAMESPACE)
    if wanted is not None and site.namespaces and wanted not in site.namespaces:
        # AGIS 10.1: a client that holds several service maps names one.
        served = ", ".join(sorted(site.namespaces))
        message = f"The namespace {wanted[:80]!r} is not served here; this service has {served}."
        return refusal(status.NOT_FOUND, "namespace-not-found", message)
    path, method = found
    # Only a header may replace the meaning of a method.
    if reads or http_method == "POST" or (http_method in _CHANGING and AGIS_METHOD in headers):
        return RequestTarget(path, method, reads)
    return _options(site, method, path, http_method)


def _page(page: Page | Root, http_method: str, headers: dict[str, str]) -> HttpResponse | RequestTarget:
    if http_method in _READING:
        return page.answer(headers)
    if http_method == "OPTIONS":
        return HttpResponse(status.NO_CONTENT, [(b"allow", b"GET, HEAD, OPTIONS")], b"")
    return refusal(405, "method-not-allowed", "A document can only be read.", allow="GET, HEAD, OPTIONS")


def _options(site: Site, method: str, path: str, http_method: str) -> HttpResponse:
    readable = site.is_readable(method, path)
    allow = "GET, HEAD, POST, OPTIONS" if readable else "POST, OPTIONS"
    if http_method == "OPTIONS":
        return HttpResponse(status.NO_CONTENT, [(b"allow", allow.encode())], b"")
    message = f"Call an endpoint with {'GET or POST' if readable else 'POST'}, not with {http_method[:20]}."
    return refusal(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow=allow)


def _advise(site: Site, path: str, http_method: str) -> HttpResponse:
    """Answer a path that names no verb: list the endpoints on it."""
    offered = site.offered_at(path)
    if http_method == "OPTIONS" and (offered or path == "*"):
        return HttpResponse(status.NO_CONTENT, [(b"allow", b"OPTIONS")], b"")
    if not offered:
        lists = " and ".join(page for page in _LISTS if page in site.pages)
        advice = f" {lists} list the endpoints." if lists else ""
        return refusal(status.NOT_FOUND, "endpoint-not-found", f"Nothing is served at {path[:120]!r}.{advice}")
    message = f"{http_method[:20]} does not name an endpoint: use {', '.join(offered[:20])}, or send X-AGIS-Method."
    return refusal(
        status.METHOD_NOT_ALLOWED, "method-not-allowed", message, allow="OPTIONS", details={"routes": offered[:20]}
    )


def refusal(
    number: int, code: str, message: str, *, allow: str | None = None, details: Mapping[str, Any] | None = None
) -> HttpResponse:
    """Build a refusal by the face itself, for a request that never becomes an AGTP request."""
    body = translation.problem_body(number, number, {"code": code, "message": message, **(details or {})})
    headers: Headers = [(b"content-type", MEDIA_PROBLEM.encode()), (b"content-length", b"%d" % len(body)), NO_STORE]
    if number in status.REASONS:
        headers.append((b"agtp-status", b"%d" % number))
    if allow is not None:
        headers.append((b"allow", allow.encode()))
    return HttpResponse(number, headers, body)


def code_of(reply: HttpResponse) -> str | None:
    """Return the code of a refusal that the face has made, if its body has one."""
    try:
        return msgspec.json.decode(reply.body, type=_Coded).code
    except msgspec.MsgspecError:
        return None


class _Coded(msgspec.Struct):
    code: str | None = None


def failed(error: Exception) -> HttpResponse:
    """Build the reply for an internal error of the face; its cause goes to the log only."""
    _logger.error("The HTTP face failed", exc_info=error)
    reply = refusal(status.SERVER_ERROR, "server-error", "The service failed; the operator's log has the reason.")
    reply.headers.append(CLOSE)
    return reply


def connection_of(scope: Scope) -> Connection:
    """Return the connection of a request: that of its server, unless a trusted proxy names another client."""
    # Every request counts as a later one: over HTTP, documents introduce the server.
    known: Connection | None = scope.get("state", {}).get(CONNECTION)
    host, port = scope.get("client") or ("", 0)
    if known is not None and host in ("", known.address):
        return known
    # A certificate presented by the proxy does not identify the client behind it.
    connection = Connection(face="http", peer=f"{host}:{port}", address=host, secure=scope.get("scheme") == "https")
    connection.answered = 1
    return connection


async def _end_with_reader(receive: Receive, connection: Connection) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    connection.end()


async def _follow_lifespan(receive: Receive, send: Send) -> None:
    """Handle the lifespan protocol; resources are opened by the owner of the face."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


METADATA: Final = "/.well-known/oauth-protected-resource"
"""Path of protected-resource metadata, before the path of the resource (RFC 9728 3.1)."""
_REFUSED: Final = -32000  # JSON-RPC code of a refusal before the application


class Guard:
    """Admits requests to one application, and refuses in the form that its clients expect."""

    def __init__(
        self,
        *,
        origins: Origins,
        limits: Limits = DEFAULT_LIMITS,
        realm: str | None = None,
        metadata: Page | None = None,
        metadata_url: str = "",
    ) -> None:
        """Create a guard; without `realm`, of a server that takes bearer credentials, there are no challenges."""
        self.limits = limits
        self.challenges = realm is not None  # missing authority is answered with a challenge for a bearer credential
        self._origins = origins
        self._metadata = metadata
        self._found = ("resource_metadata", metadata_url) if metadata is not None else ("realm", realm or "")

    async def admit(self, scope: Scope, receive: Receive) -> tuple[Scope, bytes] | HttpResponse:
        """Return the request with its body, or the reply if it does not concern the application."""
        headers = read_headers(scope["headers"], self.limits.headers)
        if isinstance(headers, Malformed):
            return refusal(headers.status, headers.code, headers.message)
        if (forbidden := self.forbid(headers)) is not None:
            return refusal(*forbidden)
        if scope["path"].startswith(METADATA):
            if self._metadata is None or scope["method"] not in ("GET", "HEAD"):
                return refusal(status.NOT_FOUND, "endpoint-not-found", "This server takes no bearer tokens here.")
            return self._metadata.answer(headers)
        body = await read_body(receive, self.limits.body) if scope["method"] == "POST" else b""
        if isinstance(body, Malformed):
            message = f"The body is larger than {self.limits.body} bytes, or incomplete."
            return refusal(status.CONTENT_TOO_LARGE, "content-too-large", message)
        # httptools leaves blanks at the end of values, and applications compare them as they are.
        return {**scope, "headers": [(name, value.strip()) for name, value in scope["headers"]]}, body

    def forbid(self, headers: Mapping[str, str]) -> Forbidden | None:
        return self._origins.check_host(headers) or self._origins.check_origin(headers)

    def refuse(self, asked: Any, refused: Refused, scopes: tuple[str, ...] = ()) -> HttpResponse:
        """Refuse as OAuth clients expect it, with words for the others. `asked` is the id of the JSON-RPC request."""
        number = status.to_http(refused.status, condition_of(refused.details))
        error = {"code": _REFUSED, "message": refused.message, "data": {"code": refused.code, **refused.details}}
        answered = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": answered, "error": error})
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        headers += [(name.lower().encode(), value.encode()) for name, value in refused.headers]
        if self.challenges and number in (status.UNAUTHORIZED, status.FORBIDDEN):
            headers.append((b"www-authenticate", self.challenge(number, refused, scopes)))
        return HttpResponse(number, headers, body)

    def challenge(self, number: int, refused: Refused, scopes: tuple[str, ...]) -> bytes:
        """Write the challenge that asks for a token, with these scopes if there are any (RFC 6750 3)."""
        pairs = [self._found]
        # Without a token, there is nothing wrong with it.
        if number == status.FORBIDDEN or refused.code.startswith(("token-", "key-")):
            error = "insufficient_scope" if number == status.FORBIDDEN else "invalid_token"
            pairs += [("error", error), ("error_description", refused.message)]
        if scopes:
            pairs.append(("scope", " ".join(dict.fromkeys(scopes))))
        # Without characters that a quoted string cannot contain.
        plain = [
            (name, "".join(char for char in text if " " <= char <= "~" and char not in '"\\')) for name, text in pairs
        ]
        return b"Bearer " + ", ".join(f'{name}="{text}"' for name, text in plain).encode()


def replayed(body: bytes, receive: Receive) -> Receive:
    """Make a `receive` that begins with a body that was read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay
