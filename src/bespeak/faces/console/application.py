"""The console as an ASGI application: its files, its JSON API behind a guard, and exchanges as they happen."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from math import log2
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from bespeak.faces.http.asgi import HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.dispatched import DispatchBackend
from bespeak.faces.http.face import Origins, connection_of
from bespeak.faces.http.site import NO_STORE, Page
from bespeak.faces.http.translation import read_body, read_headers
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.exchange.refusal import Fault, Refused, gate_of
from bespeak.runtime.call import Call
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.exchange import Exchange

PATH: Final = "/console"
TOKEN: Final = "console-token"  # noqa: S105 - the name of a header
READ_SCOPE: Final = "console:read"
ACT_SCOPE: Final = "console:act"
_MOST_BODY: Final = 1024 * 1024
_MOST_FIELDS: Final = 20
_JSON: Final = "application/json"
_REPORTS_PER_LOOK: Final = 8  # so that a watcher is admitted again every two seconds
_SAME_SITE: Final = ("same-origin", "none")  # what browsers say of requests by the page itself, or by a person


class Visit(NamedTuple):
    """A request of the JSON API: its parameters, or the members of its body."""

    given: Mapping[str, Any]
    connection: Connection
    headers: Mapping[str, str]
    caller: Call | None = None  # verified caller; None for the holder of the token


class View(NamedTuple):
    """One resource of the JSON API."""

    answer: Callable[[Visit], Awaitable[Any]]
    """Returns JSON data or a text; a Fault if the request is not valid, or a Refused."""
    acts: bool = False  # True if it changes something or calls an endpoint: POST, for those who may act
    asks: bool = False  # True if it takes a body and changes nothing: POST, for those who may read
    change: Callable[[Visit], Awaitable[Any]] | None = None  # answers POST at a resource that is also read by GET

    def for_method(self, method: str) -> View:
        """Return what answers a method here."""
        return View(self.change, acts=True) if self.change is not None and method == "POST" else self


class Access:
    """Who may use the console: the holder of the token of this start, or a caller whose scopes say so."""

    def __init__(self, backend: DispatchBackend, origins: Origins, token: str | None) -> None:
        """Admit by `token`; without one, by the credentials of callers."""
        self._backend = backend
        self._origins = origins
        self._token = token

    @property
    def identity(self) -> str:
        """How the console knows its user: by a `token`, or by `credentials`."""
        return "token" if self._token is not None else "credentials"

    def rights(self, caller: Call | None) -> list[str]:
        """Return what an admitted caller may do: `read`, and perhaps `act`."""
        may_act = caller is None or not caller.principal.scopes.missing((ACT_SCOPE,))
        return ["read", "act"] if may_act else ["read"]

    async def admit(
        self, scope: Scope, headers: Mapping[str, str], wanted: str, *, again: bool = False
    ) -> Call | Refused | None:
        """Return the verified caller, or None for the holder of the token; `wanted` is the scope that is needed.

        A request that is judged `again`, while its answer is under way, is not counted against the rates again.
        """
        if (refused := self.check_page(headers)) is not None:
            return refused
        if self._token is not None:
            if hmac.compare_digest(headers.get(TOKEN, "").encode(), self._token.encode()):
                return None
            message = "The console needs the token of this start; open the link that the command has printed."
            return Refused(status.UNAUTHORIZED, "console-token-wrong", message)
        found = await self._backend.admit(scope, calls=again)
        if isinstance(found, Refused):
            return found
        if found.principal.verified is None or found.principal.scopes.missing((wanted,)):
            message = f"The console needs a credential whose scopes contain {wanted}."
            return Refused(status.FORBIDDEN, "console-scope-missing", message)
        return found

    def check_page(self, headers: Mapping[str, str]) -> Refused | None:
        """Return why a request by a page of another host, or under another name of this one, is refused."""
        forbidden = self._origins.check_host(headers) or self._origins.check_origin(headers)
        if forbidden is not None:
            return Refused(*forbidden)
        if headers.get("sec-fetch-site", "none") not in _SAME_SITE:
            return Refused(status.FORBIDDEN, "origin-not-allowed", "Pages of other sites may not use the console.")
        return None


class ConsoleApplication:
    """Serves the files of the console to everybody, and its JSON API to those whom `access` admits."""

    def __init__(self, access: Access, files: Mapping[str, Page], views: Mapping[str, View], live: Live) -> None:
        """Serve `files` by name, `index.html` at the folder itself, and `views` by name below `api/`."""
        self._access = access
        self._files = files
        self._views = views
        self._live = live

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths of the application."""
        below = ["", *self._files, *(f"api/{name}" for name in (*self._views, "live"))]
        return (PATH, *(f"{PATH}/{name}" for name in below))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = read_headers(scope["headers"], 100)
        if isinstance(headers, Malformed):
            reply = _refuse(Refused(headers.status, headers.code, headers.message))
        else:
            found = await self._serve(scope, headers, receive, send)
            if found is None:
                return
            reply = found
        await send_response(reply, scope["method"], send)

    async def _serve(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, send: Send
    ) -> HttpResponse | None:
        """Answer a request; return None if the answer was a stream, which has been sent."""
        path: str = scope["path"]
        name = path[path.rindex(PATH) + len(PATH) :]
        if not name.startswith("/api/"):
            return self._file(name, scope["method"], headers)
        name = name.removeprefix("/api/")
        view = self._views.get(name)
        view = None if view is None else view.for_method(scope["method"])
        acts = view is not None and view.acts
        admitted = await self._access.admit(scope, headers, ACT_SCOPE if acts else READ_SCOPE)
        refused, caller = (admitted, None) if isinstance(admitted, Refused) else (None, admitted)
        method = "POST" if acts or (view is not None and view.asks) else "GET"
        if refused is None and scope["method"] != method:
            refused = _not_allowed(method, f"Use {method} here.")
        if refused is not None:
            return _refuse(refused)
        given = await self._read(scope, headers, receive, has_body=method == "POST")
        if isinstance(given, Refused):
            return _refuse(given)
        if name == "live":
            return await self._watch(scope, headers, given, send)
        assert view is not None, "the mounted paths are those of the views"
        answer = await view.answer(Visit(given, connection_of(scope), headers, caller))
        if isinstance(answer, Fault):
            answer = Refused(status.BAD_REQUEST, "invalid-arguments", answer.message, {"at": answer.at})
        return _refuse(answer) if isinstance(answer, Refused) else _reply(status.OK, answer)

    def _file(self, name: str, method: str, headers: Mapping[str, str]) -> HttpResponse:
        if (refused := self._access.check_page({**headers, "sec-fetch-site": "none"})) is not None:
            return _refuse(refused)
        if method not in ("GET", "HEAD"):
            return _refuse(_not_allowed("GET, HEAD", "A file can only be read."))
        if not name:  # relative addresses on the page begin at the folder
            return HttpResponse(307, [(b"location", b"console/"), (b"content-length", b"0")], b"")
        return self._files[name.removeprefix("/") or "index.html"].answer(headers)

    async def _read(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive, *, has_body: bool
    ) -> Mapping[str, Any] | Refused:
        if not has_body:
            try:
                pairs = parse_qsl(scope["query_string"].decode("ascii"), True, max_num_fields=_MOST_FIELDS)
            except ValueError:
                return Refused(status.BAD_REQUEST, "invalid-query", "The query is not valid.")
            return dict(pairs)
        # A form of another site cannot send this type without asking first.
        if headers.get("content-type", "").partition(";")[0].strip() != _JSON:
            return Refused(415, "payload-type-conflict", f"Send the body as {_JSON}.")
        body = await read_body(receive, _MOST_BODY, headers.get("content-length", ""))
        if isinstance(body, Malformed):
            return Refused(body.status, body.code, body.message)
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (ValueError, RecursionError) as error:
            return Refused(status.BAD_REQUEST, "invalid-body", f"The body must be a JSON object: {error}.")

    async def _watch(
        self, scope: Scope, headers: Mapping[str, str], given: Mapping[str, Any], send: Send
    ) -> HttpResponse | None:
        try:
            wanted = msgspec.convert(given, Wanted)
        except msgspec.ValidationError as error:
            return _refuse(Refused(status.BAD_REQUEST, "invalid-query", f"The filter is not valid: {error}."))
        if self._live.is_full:
            return _refuse(Refused(status.RATE_LIMITED, "too-many-watchers", "Too many pages watch already."))
        head = [(b"content-type", b"text/event-stream"), NO_STORE, (b"x-content-type-options", b"nosniff")]
        async with self._live.watch(wanted) as reports:
            await send({"type": "http.response.start", "status": 200, "headers": head})
            try:
                number = 0
                async for report in reports:
                    number += 1
                    if number % _REPORTS_PER_LOOK == 0 and await self._has_ended(scope, headers):
                        break
                    # A comment shows in time that nobody reads any more.
                    event = b": \n\n" if report is None else b"event: exchanges\ndata: %b\n\n" % _encode(report)
                    await send({"type": "http.response.body", "body": event, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            except OSError:
                return None  # the page has gone
        return None

    async def _has_ended(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Return True if the credential of a watcher is not valid any more: revoked, expired, or of fewer scopes."""
        return isinstance(await self._access.admit(scope, headers, READ_SCOPE, again=True), Refused)


_encode = msgspec.json.Encoder(enc_hook=str).encode


def _reply(number: int, content: Any) -> HttpResponse:
    is_text = isinstance(content, str)
    body = content.encode() if is_text else _encode(content)
    headers = [
        (b"content-type", b"text/plain; charset=utf-8" if is_text else b"application/json; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"x-content-type-options", b"nosniff"),
        NO_STORE,
    ]
    return HttpResponse(number, headers, body)


def _refuse(refused: Refused) -> HttpResponse:
    number = status.to_http(refused.status, None)
    reply = _reply(number, {"error": {"code": refused.code, "message": refused.message, **refused.details}})
    more = [(name.lower().encode(), value.encode()) for name, value in refused.headers]
    return reply._replace(headers=[*reply.headers, *more])


def _not_allowed(methods: str, message: str) -> Refused:
    return Refused(status.METHOD_NOT_ALLOWED, "method-not-allowed", message, headers=(("Allow", methods),))


INTERVAL: Final = 0.25  # seconds between two reports to a watcher
MOST_SHOWN: Final = 20  # exchanges of one report; the others are counted
MOST_WATCHERS: Final = 8
_PRECISION: Final = 8  # buckets of durations between a power of two and the next one


class Wanted(msgspec.Struct, frozen=True):
    """What a watcher wants to see; an empty text stands for everything."""

    agent: str = ""
    method: str = ""
    path: str = ""
    status: str = ""  # a number, or its beginning: `4` for every status from 400 to 499
    gate: str = ""

    def admits(self, exchange: Exchange) -> bool:
        response = exchange.response
        return (
            (not self.method or exchange.method == self.method)
            and (not self.path or self.path in exchange.path)
            and (not self.status or str(response.status).startswith(self.status))
            and (not self.agent or (exchange.call.agent_id or "").startswith(self.agent))
            and (not self.gate or _gate(exchange) == self.gate)
        )


class Durations(Counter[int]):
    """A histogram of durations whose buckets grow by an eighth of a power of two: any quantile to within 5 %."""

    def add(self, seconds: float) -> None:
        self[round(_PRECISION * log2(max(1.0, seconds * 1_000_000)))] += 1

    def quantile(self, share: float) -> float | None:
        """Return a quantile in milliseconds; None without durations."""
        wanted = share * self.total()
        for bucket, count in sorted(self.items()):
            wanted -= count
            if wanted <= 0:
                return round(2 ** (bucket / _PRECISION) / 1000, 3)
        return None


class Watcher:
    """What one page watches: counts since the last report, and the exchanges to show of them."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._begin()

    def _begin(self) -> None:
        self._seen = 0
        self._shown: list[Exchange] = []
        self._at: list[float] = []
        self._counts: Counter[str] = Counter()
        self._durations = Durations()

    def see(self, exchange: Exchange) -> None:
        if not self._wanted.admits(exchange):
            return
        self._seen += 1
        self._counts[_outcome(exchange)] += 1
        if exchange.seconds is not None:
            self._durations.add(exchange.seconds)
        if len(self._shown) < MOST_SHOWN:
            self._shown.append(exchange)
            self._at.append(time.time())

    def report(self) -> dict[str, Any] | None:
        """Return what happened since the last report and begin anew; None if nothing did."""
        if not self._seen:
            return None
        report = {
            "seen": self._seen,
            "counts": {name: self._counts[name] for name in ("ok", "refused", "failed")},
            "ms": {"p50": self._durations.quantile(0.5), "p99": self._durations.quantile(0.99)},
            "shown": [_show(exchange, at) for exchange, at in zip(self._shown, self._at, strict=True)],
        }
        self._begin()
        return report


class Live:
    """The watchers of one server. Without any, exchanges cost nothing."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._watchers: list[Watcher] = []

    @property
    def is_full(self) -> bool:
        return len(self._watchers) >= MOST_WATCHERS

    def _see(self, exchange: Exchange) -> None:
        for watcher in self._watchers:
            watcher.see(exchange)

    @asynccontextmanager
    async def watch(self, wanted: Wanted) -> AsyncIterator[AsyncIterator[dict[str, Any] | None]]:
        """Watch for the duration of a block: yields a report, or None where nothing happened, at every interval."""
        watcher = Watcher(wanted)
        if not self._watchers:
            self._dispatcher.subscribe(self._see)
        self._watchers.append(watcher)
        try:
            yield _reports(watcher)
        finally:
            self._watchers.remove(watcher)
            if not self._watchers:
                self._dispatcher.unsubscribe(self._see)


async def _reports(watcher: Watcher) -> AsyncIterator[dict[str, Any] | None]:
    while True:
        await asyncio.sleep(INTERVAL)
        yield watcher.report()


def _outcome(exchange: Exchange) -> str:
    number = exchange.response.status
    return "failed" if number >= status.SERVER_ERROR else "ok" if status.is_success(number) else "refused"


def _gate(exchange: Exchange) -> str | None:
    """Return the gate that refused; a 262 says in its body which condition is not met."""
    code, body = exchange.response.code, exchange.response.body
    if code is None or exchange.response.status != status.AUTHORIZATION_REQUIRED:
        return None if code is None else gate_of(code)
    return gate_of(code, msgspec.json.decode(body, type=_Refusal).error.get("type"))


class _Refusal(msgspec.Struct):
    error: dict[str, Any] = {}


def _show(exchange: Exchange, at: float) -> dict[str, Any]:
    code = exchange.response.code
    return {
        **exchange.particulars,
        "at": round(at, 3),
        "ms": None if exchange.seconds is None else round(exchange.seconds * 1000, 3),
        "code": code,
        "gate": _gate(exchange),
        "face": exchange.call.request.connection.face,
        "replayed": exchange.replayed,
    }
