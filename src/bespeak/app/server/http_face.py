"""Construction of the HTTP face, of MCP, A2A and the answers of people on it, and of `/healthz` and `/metrics`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs

import msgspec

from bespeak.app.server.http_pages import Publishing, SitePages, make_pages, project_card_of
from bespeak.app.server.settings import HttpAssembly
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.documents.projections.a2a_card import INTERFACE as A2A_INTERFACE
from bespeak.documents.projections.discovery import MCP_INTERFACE
from bespeak.errors import ConfigError, StoreError
from bespeak.faces.http.asgi import Application, HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.face import METADATA, Guard, HttpFace, Origins, connection_of
from bespeak.faces.http.site import Page
from bespeak.faces.http.translation import EXPOSED_HEADERS, READ_HEADERS, read_body, read_headers
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.exchange.messages import Malformed
from bespeak.protocol.wire.messages import DEFAULT_LIMITS, Limits
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Metrics
from bespeak.runtime.route_table import RouteTable
from bespeak.state.identity.settings import AuthSettings
from bespeak.state.store.commands.endpoints import ReadRevision
from bespeak.state.store.store import Store

if TYPE_CHECKING:
    from bespeak.extensions.messages.people import Answers, AnswerView
    from bespeak.faces.a2a.http import A2aApplication
    from bespeak.faces.mcp.http import McpApplication

_logger = logging.getLogger(__name__)
CORS: Final[Mapping[str, Any]] = {
    "allow_methods": ("GET", "HEAD", "POST"),
    "allow_headers": ("content-type", "range", *READ_HEADERS),
    "expose_headers": EXPOSED_HEADERS,
}


def make_face(
    dispatcher: Dispatcher,
    settings: HttpSettings,
    *,
    limits: Limits = DEFAULT_LIMITS,
    loopback: bool = False,
    publishing: Publishing | None = None,
) -> HttpFace:
    """Build the ASGI application of a server; `loopback` is True if it listens on loopback only."""
    publishing = publishing or Publishing()

    def pages(routes: RouteTable) -> SitePages:
        return make_pages(routes, settings, publishing, keeps_state=dispatcher.keeps_state)

    face = HttpFace(
        dispatcher,
        dispatcher.server,
        pages,
        limits=limits,
        origins=Origins(url=settings.url, allowed=settings.cors, loopback=loopback),
        prefix=settings.prefix,
        modes=publishing.auth.modes,
    )
    if (store := dispatcher.server.part("files")) is not None:
        from bespeak.faces.http.files import FileFace  # noqa: PLC0415 - loads the reader of forms

        face.files = FileFace(face, dispatcher, store, settings.prefix)
    return face


def build_middleware(app: Application, settings: HttpSettings, cors: Mapping[str, Any] = CORS) -> Application | None:
    """Build the configured middleware, trusted proxies outermost, or None. `cors` is what other origins may send."""
    outer: Application | None = None
    if settings.cors:
        from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415 - only for CORS

        outer = CORSMiddleware(cast("Any", app), allow_origins=settings.cors, max_age=3600, **cors)
    if settings.trusted_proxies:
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware  # noqa: PLC0415 - only behind proxies

        outer = cast("Application", ProxyHeadersMiddleware(cast("Any", outer or app), list(settings.trusted_proxies)))
    return outer


ACCEPT: Final = "bespeak cases accept {case} TARGET"  # for operators; callers do not learn where the deployment is


def make_guard(path: str, assembly: HttpAssembly) -> Guard:
    dispatcher, web, auth = assembly.dispatcher, assembly.web, assembly.auth
    takes_tokens = "token" in auth.modes
    resource = None if web.url is None else f"{web.url}{path}"
    metadata = None
    if takes_tokens and resource is not None:
        # Clients ask the issuer for a token for this resource (RFC 8707), so its audience may be the URL.
        authenticator = dispatcher.server.principals.authenticator
        if authenticator is not None:
            authenticator.admit_audience(resource)
        if (auth.token.issuer or "").startswith("https://"):
            metadata = Page(lambda: _metadata(dispatcher, resource, auth), MEDIA_JSON)
    return Guard(
        origins=Origins(url=web.url, allowed=web.cors, loopback=assembly.loopback),
        limits=assembly.limits,
        realm=dispatcher.server.routes.service.identity.server_id if takes_tokens or "key" in auth.modes else None,
        metadata=metadata,
        metadata_url=f"{(web.url or '').removesuffix(web.prefix)}{METADATA}{web.prefix}{path}",
    )


def mount(path: str, app: Application, web: HttpSettings, cors: Mapping[str, Any]) -> dict[str, Application]:
    """Return an application by its paths. A proxy may have removed the prefix of the public URL."""
    application = build_middleware(app, web, cors) or app
    return {f"{place}{prefix}{path}": application for place in ("", METADATA) for prefix in ("", web.prefix)}


def _metadata(dispatcher: Dispatcher, resource: str, auth: AuthSettings) -> bytes:
    """Write the protected-resource metadata (RFC 9728 2). Strangers may not learn scopes if they may not discover."""
    routes = dispatcher.server.routes
    document: dict[str, Any] = {"resource": resource, "authorization_servers": [auth.token.issuer]}
    if routes.policies.anonymous_discovery:
        listed = [endpoint for endpoint in routes.endpoints.values() if endpoint.is_listed]
        document["resource_name"] = routes.service.identity.name or routes.service.identity.server_id
        document["scopes_supported"] = sorted({scope for endpoint in listed for scope in endpoint.required_scopes})
    document["bearer_methods_supported"] = ["header"]
    return msgspec.json.encode(document)


@contextmanager
def extra_needed(what: str, extra: str, *packages: str) -> Iterator[None]:
    """Raise ConfigError with install advice if an import of one of the packages fails inside the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        raise ConfigError(f"{what} needs the official SDK: pip install 'bespeak[{extra}]'") from error


_MCP_CORS: Final[Mapping[str, Any]] = {
    "allow_methods": ("GET", "POST", "DELETE"),
    "allow_headers": (
        *CORS["allow_headers"],
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
    ),
    "expose_headers": ("Mcp-Session-Id", "WWW-Authenticate"),
}


def sdk_needed() -> AbstractContextManager[None]:
    """Raise ConfigError with install advice if an import of the extra fails inside the block."""
    return extra_needed("MCP", "mcp", "mcp", "mcp_types")


def make_mcp(assembly: HttpAssembly, settings: McpSettings) -> McpApplication:
    with sdk_needed():
        from bespeak.faces.asking import Asking  # noqa: PLC0415 - slow to load
        from bespeak.faces.http.dispatched import DispatchBackend  # noqa: PLC0415
        from bespeak.faces.mcp.http import McpApplication  # noqa: PLC0415
        from bespeak.faces.mcp.server import ToolServer  # noqa: PLC0415
    server = assembly.dispatcher.server
    assert server.store is not None, "a server that is reached has a store"
    backend = DispatchBackend(assembly.dispatcher, server, "mcp")
    tools = ToolServer(backend, Asking(server.store, server.cases, ACCEPT), settings, keeps=not assembly.stateless)
    return McpApplication(tools, backend, make_guard(MCP_INTERFACE, assembly), stateless=assembly.stateless)


def mount_mcp(mcp: McpApplication, web: HttpSettings) -> dict[str, Application]:
    """Return the applications of MCP by path. The metadata is at the root, too: clients of MCP look there last."""
    places = mount(MCP_INTERFACE, mcp, web, _MCP_CORS)
    return {**places, METADATA: places[f"{METADATA}{MCP_INTERFACE}"]}


_A2A_CORS: Final[Mapping[str, Any]] = {
    "allow_methods": ("POST",),
    "allow_headers": (*CORS["allow_headers"], "a2a-version", "a2a-extensions"),
    "expose_headers": ("WWW-Authenticate",),
}
_A2A_LOGGERS: Final = ("a2a.server", "a2a.compat")


def make_a2a(assembly: HttpAssembly, settings: A2aSettings) -> A2aApplication:
    with extra_needed("A2A", "a2a", "a2a", "google", "jsonrpc", "sse_starlette"):
        from bespeak.faces.a2a.calls import SkillCalls  # noqa: PLC0415
        from bespeak.faces.a2a.http import A2aApplication, SkillHandler  # noqa: PLC0415 - slow to load
        from bespeak.faces.a2a.tasks import SkillTasks  # noqa: PLC0415
        from bespeak.faces.asking import Asking  # noqa: PLC0415
        from bespeak.faces.http.dispatched import DispatchBackend  # noqa: PLC0415
    for name in _A2A_LOGGERS:
        # The SDK logs the trace of every malformed request, which anybody can send.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if not {"open", "token", "key", "mtls"}.intersection(assembly.auth.modes):
        _logger.warning("A2A takes no signatures, and [auth] has no other mode: it serves only anonymous callers")
    server = assembly.dispatcher.server
    assert server.store is not None, "a server that is reached has a store"
    backend = DispatchBackend(assembly.dispatcher, server, "a2a")
    tasks = SkillTasks(server.store, retention=settings.retention, most=settings.most_tasks, server=server)
    calls = SkillCalls(backend, Asking(server.store, server.cases, ACCEPT, face="a2a"), tasks)

    def extended() -> Mapping[str, Any] | None:
        routes = server.routes
        if routes.policies.anonymous_discovery:
            return None
        return project_card_of(routes, assembly.web, Publishing(auth=assembly.auth, a2a=settings))

    handler = SkillHandler(calls, tasks, extended)
    return A2aApplication(handler, calls, tasks, backend, make_guard(A2A_INTERFACE, assembly))


def mount_a2a(a2a: A2aApplication, web: HttpSettings) -> dict[str, Application]:
    return mount(A2A_INTERFACE, a2a, web, _A2A_CORS)


WITHIN: Final = 0.9  # seconds for the store to answer: load balancers do not wait much longer
MOST_CONNECTIONS: Final = 32
MOST_BUFFERED: Final = 1024 * 1024


class OperationsApp:
    """ASGI application for monitoring. It calls no endpoint and is not authenticated."""

    def __init__(self, dispatcher: Dispatcher, metrics: Metrics | None, *, loopback: bool) -> None:
        self._store = dispatcher.server.store
        self._metrics = metrics
        self._origins = Origins(loopback=loopback)
        self._looking: asyncio.Task[int] | None = None  # reading of the store that has not ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        forbidden = self._origins.check_host(headers) or self._origins.check_origin(headers)
        if forbidden is not None:
            reply = _json(forbidden.status, {"error": forbidden.message})
        elif scope["method"] not in ("GET", "HEAD"):
            reply = _json(status.METHOD_NOT_ALLOWED, {"error": "use GET"})
        elif scope["path"] == "/healthz":
            # 200 if calls can be answered: this process runs, and its store can be read in time.
            reason = "" if self._store is None else await self._look(self._store)
            failed = _json(status.UNAVAILABLE, {"status": "unavailable", "reason": reason})
            reply = failed if reason else _json(status.OK, {"status": "ok"})
        elif scope["path"] == "/metrics" and self._metrics is not None:
            text, media_type = self._metrics.write()
            reply = _reply(status.OK, text, media_type)
        else:
            known = "/healthz and /metrics" if self._metrics is not None else "/healthz"
            reply = _json(status.NOT_FOUND, {"error": f"this address has {known}"})
        await send_response(reply, scope["method"], send)

    async def _look(self, store: Store) -> str:
        """Return what is wrong with the store. A reading that takes too long goes on, for the next request."""
        looking = self._looking
        if looking is None:
            looking = self._looking = asyncio.get_running_loop().create_task(store.read(ReadRevision()))
            looking.add_done_callback(self._forget)
        await asyncio.wait([looking], timeout=WITHIN)
        if not looking.done():
            return f"the store did not answer within {WITHIN:g} s"
        error = looking.exception()
        if error is not None and not isinstance(error, StoreError):
            raise error
        return "" if error is None else f"the store failed: {error}"

    def _forget(self, looking: asyncio.Task[int]) -> None:
        self._looking = None
        if not looking.cancelled():
            looking.exception()  # or asyncio reports that nobody has seen it


def _json(number: int, content: dict[str, str]) -> HttpResponse:
    return _reply(number, msgspec.json.encode(content), "application/json")


def _reply(number: int, body: bytes, media_type: str) -> HttpResponse:
    headers = [(b"content-type", media_type.encode()), (b"cache-control", b"no-store")]
    return HttpResponse(number, [*headers, (b"content-length", b"%d" % len(body))], body)


_MOST_FORM: Final = 8 * 1024
_LONGEST_REASON: Final = 1000
_ANSWER_HEADERS: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
)


class AnswerPage:
    """ASGI application of the page on which a person answers by a link: GET shows a form, POST takes the answer."""

    def __init__(self, answers: Answers, origins: Origins) -> None:
        self._answers = answers
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_response(await self._answer(scope, receive), scope["method"], send)

    async def _answer(self, scope: Scope, receive: Receive) -> HttpResponse:
        headers = read_headers(scope["headers"], 100)
        if isinstance(headers, Malformed):
            return _show_fault(headers.status, headers.message)
        forbidden = self._origins.check_host(headers)  # any Origin: only the token matters, and mail readers send null
        if forbidden is not None:
            return _show_fault(forbidden.status, forbidden.message)
        token = _first(scope["query_string"], "token")
        if scope["method"] in ("GET", "HEAD"):
            return _show(await self._answers.look(token))
        if scope["method"] != "POST":
            return _show_fault(status.METHOD_NOT_ALLOWED, "Use GET or POST.")
        body = await read_body(receive, _MOST_FORM)
        if isinstance(body, Malformed):
            return _show_fault(status.CONTENT_TOO_LARGE, "The form is too large, or incomplete.")
        reason = "".join(one for one in _first(body, "reason")[:_LONGEST_REASON] if one.isprintable())
        return _show(await self._answers.answer(token, _first(body, "answer"), reason, connection_of(scope)))


def _first(encoded: bytes, name: str) -> str:
    try:
        return parse_qs(encoded.decode("ascii"), max_num_fields=10).get(name, [""])[0]
    except ValueError:
        return ""


def _show(shown: AnswerView) -> HttpResponse:
    parts = [f"<h1>{escape(shown.title)}</h1>"]
    parts += [f"<p>{escape(shown.text)}</p>"] if shown.text else []
    parts += [f"<blockquote><pre>{escape(shown.quoted)}</pre></blockquote>"] if shown.quoted else []
    if shown.choices:
        reason = f'<p><label>In a line <input name="reason" maxlength="{_LONGEST_REASON}"></label></p>'
        choices = [(escape(value), escape(label)) for value, label in shown.choices.items()]
        buttons = " ".join(f'<button name="answer" value="{value}">{label}</button>' for value, label in choices)
        # Without an action, the form is sent to the address of the page, token included.
        asked = "" if list(shown.choices) == ["accepted"] else reason
        parts.append(f'<form method="post">{asked}{buttons}</form>')
    return _write_page(shown.status, shown.title, "".join(parts))


def _show_fault(number: int, text: str) -> HttpResponse:
    return _write_page(number, "Not possible", f"<p>{escape(text)}</p>")


def _write_page(number: int, title: str, body: str) -> HttpResponse:
    page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>{body}</html>'.encode()
    return HttpResponse(number, [*_ANSWER_HEADERS, (b"content-length", b"%d" % len(page))], page)


def mount_answers(assembly: HttpAssembly, answers: Answers) -> dict[str, Application]:
    """Return the page on which people answer by its paths; the links of mails lead there from now on."""
    web = assembly.web
    answers.links.url = web.url
    page = AnswerPage(answers, Origins(url=web.url, allowed=web.cors, loopback=assembly.loopback))
    return mount(answers.links.path, page, web, CORS)
