"""MCP over streamable HTTP, as an ASGI application: guards, credentials, and plain requests without the SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import nullcontext
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar

import mcp_types as types
import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import REQUEST_CANCELLED, check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.inbound import X_MCP_HEADER_KEY
from mcp_types import SERVER_INFO_META_KEY
from mcp_types.methods import serialize_server_result, validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from msgspec import UNSET, Raw, UnsetType, field
from pydantic import ValidationError
from starlette.requests import Request

from bespeak.contract.mcp_tool import META, Tool
from bespeak.faces.http.asgi import Application, Headers, HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.dispatched import PRINCIPAL, Begun, DispatchBackend, finish, judge, passed
from bespeak.faces.http.face import METADATA, Guard, connection_of, replayed
from bespeak.faces.http.reader import HttpHead
from bespeak.faces.http.server import PROMPTED
from bespeak.faces.http.translation import read_headers
from bespeak.faces.mcp.catalog import Wanted
from bespeak.faces.mcp.results import read_shape
from bespeak.faces.mcp.server import ToolServer
from bespeak.faces.mcp.sessions import (
    ClientMessage,
    InvalidMessage,
    McpSession,
    McpSessions,
    PendingAnswer,
    event,
    read_message,
)
from bespeak.faces.progress import Progress
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, METHOD_GRAMMAR, is_header_value
from bespeak.protocol.exchange.messages import Connection, Malformed
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Outcome, Refused
from bespeak.runtime.call import Call, may_discover

MODERN: Final = "2026-07-28"  # revision of the protocol without a handshake
CALL: Final = "tools/call"
LIST: Final = "tools/list"
RequestId = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | str  # that can be written as it was read
_ABSENT: Final = Raw()
_RESERVED: Final = b'"io.modelcontextprotocol/'
_OWN: Final = frozenset({"modelcontextprotocol", "mcp", META.removesuffix("/")})
"""Labels of prefixes in `_meta` that mean something here, or may do so one day."""
_LONGEST_ENVELOPE: Final = 4096  # bounds of what is remembered, because clients choose it
_ENCODE: Final = msgspec.json.Encoder().encode
_JSON: Final = (b"content-type", b"application/json")
_VERSIONS: Final = frozenset({MODERN, None, *HANDSHAKE_PROTOCOL_VERSIONS})
"""Values of MCP-Protocol-Version, which clients of the first revisions do not send."""
_DEEPEST: Final = 150  # opening brackets of a message that the SDK's parser of earlier revisions is certain to read
_CANCELLED: Final = _ENCODE({"code": REQUEST_CANCELLED, "message": "Request cancelled"})


class MetaEnvelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The `_meta` of a request. Clients of the modern era repeat the reserved members, and those before have none."""

    version: str | UnsetType = field(name=types.PROTOCOL_VERSION_META_KEY, default=UNSET)
    capabilities: Raw = field(name=types.CLIENT_CAPABILITIES_META_KEY, default=_ABSENT)
    client: Raw = field(name=types.CLIENT_INFO_META_KEY, default=_ABSENT)
    level: Raw = field(name=types.LOG_LEVEL_META_KEY, default=_ABSENT)
    token: RequestId | UnsetType = field(name="progressToken", default=UNSET)
    key: str | None = field(name=f"{META}idempotency-key", default=None)
    traceparent: str | UnsetType = UNSET
    tracestate: str | UnsetType = UNSET
    baggage: str | UnsetType = UNSET

    @property
    def reserved(self) -> int:
        given = (self.version is not UNSET) + (self.capabilities is not _ABSENT)
        return given + (self.client is not _ABSENT) + (self.level is not _ABSENT)


class _OpenMetaEnvelope(MetaEnvelope, frozen=True, forbid_unknown_fields=False, gc=False):
    """An envelope with members of other vendors."""


EnvelopeT = TypeVar("EnvelopeT", bound=MetaEnvelope)


class _Params(msgspec.Struct, Generic[EnvelopeT], frozen=True, forbid_unknown_fields=True, gc=False):
    name: str | UnsetType = UNSET
    arguments: dict[str, Any] | UnsetType | None = UNSET
    envelope: EnvelopeT = field(name="_meta", default=MetaEnvelope())  # type: ignore[assignment]  # both are alike empty


class _Message(msgspec.Struct, Generic[EnvelopeT], frozen=True, forbid_unknown_fields=True, gc=False):
    jsonrpc: Literal["2.0"]
    id: RequestId
    method: Literal["tools/call", "tools/list"]
    params: _Params[EnvelopeT] = _Params()


class PlainMessage(msgspec.Struct, frozen=True, gc=False):
    """A call that continues nothing (no answer of a user, no state of an earlier request), or a list's first page."""

    id: RequestId
    name: str | None  # of the tool to call; None for the list of tools
    arguments: dict[str, Any]
    envelope: MetaEnvelope


_decode: Final = msgspec.json.Decoder(_Message[MetaEnvelope]).decode
_decode_foreign: Final = msgspec.json.Decoder(_Message[_OpenMetaEnvelope]).decode
_MEMBERS: Final = frozenset(MetaEnvelope.__struct_encode_fields__)


def read_plain(body: bytes) -> PlainMessage | None:
    """Read a message; return None if it is not plain."""
    message: _Message[Any]
    try:
        try:
            message = _decode(body)
        except msgspec.ValidationError:
            message = _read_foreign(body)
        params = message.params
        if not body.isascii():
            body.decode()  # raw members are not decoded
        if body.count(_RESERVED) != params.envelope.reserved or b"\\" in body:
            _parse(body)  # a raw member may occur twice, and both are parsed
    except (ValueError, RecursionError):
        return None
    if message.method == CALL and params.name is not UNSET:
        return PlainMessage(message.id, params.name, params.arguments or {}, params.envelope)
    is_list = message.method == LIST and params.name is UNSET and params.arguments is UNSET
    return PlainMessage(message.id, None, {}, params.envelope) if is_list else None


def _parse(text: bytes) -> Any:
    """Parse JSON as it is parsed on the way to the SDK, and then by it. Raises ValueError if either refuses it."""
    msgspec.json.decode(text)
    return json.loads(text)


def _read_foreign(body: bytes) -> _Message[_OpenMetaEnvelope]:
    """Read a message with members of other vendors in `_meta`, which nobody here reads. Raises ValueError otherwise."""
    message = _decode_foreign(body)
    for name in _parse(body).get("params", {}).get("_meta", ()):
        prefix, slash, _ = name.partition("/")
        is_foreign = slash and prefix.isascii() and _OWN.isdisjoint(prefix.lower().split("."))
        if not (is_foreign or name in _MEMBERS):
            raise ValueError("A member of _meta is reserved.")
    return message


@lru_cache(64)
def accepts_both(accept: str) -> bool:
    """Return True if a client takes JSON and event streams, by the SDK's rule."""
    if not accept.isascii():
        return False
    return all(check_accept_headers(Request({"type": "http", "headers": [(b"accept", accept.encode())]})))


def accepts(envelope: MetaEnvelope) -> bool:
    """Return True if the SDK accepts an envelope of the modern era; it is asked once."""
    if envelope.version != MODERN or envelope.capabilities is _ABSENT:
        return False
    capabilities, client, level = bytes(envelope.capabilities), bytes(envelope.client), bytes(envelope.level)
    is_short = len(capabilities) + len(client) + len(level) <= _LONGEST_ENVELOPE
    return is_short and _is_valid_envelope(capabilities, client, level)


@lru_cache(256)
def _is_valid_envelope(capabilities: bytes, client: bytes, level: bytes) -> bool:
    keys = types.CLIENT_CAPABILITIES_META_KEY, types.CLIENT_INFO_META_KEY, types.LOG_LEVEL_META_KEY
    try:
        meta = {key: _parse(text) for key, text in zip(keys, (capabilities, client, level), strict=True) if text}
        params = {"name": "x", "_meta": {types.PROTOCOL_VERSION_META_KEY: MODERN, **meta}}
        validate_client_request(CALL, MODERN, params)
        types.CallToolRequestParams.model_validate(params, by_name=False)
    except (ValidationError, ValueError, RecursionError):
        return False
    return True


_STREAM: Final[Headers] = [
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"content-type", b"text/event-stream"),
    (b"x-accel-buffering", b"no"),
]


class PlainRequest(NamedTuple):
    message: PlainMessage
    call: Call
    sent: dict[str, str]  # headers that apply to the call
    is_modern: bool
    session: McpSession | None  # session of an earlier revision; None if there are none

    def reply(self, member: bytes, value: bytes) -> HttpResponse:
        body = b'{"jsonrpc":"2.0","id":%b,"%b":%b}' % (_ENCODE(self.message.id), member, value)
        if self.is_modern:
            return HttpResponse(200, [(b"content-length", b"%d" % len(body)), _JSON], body)
        body = event(body)
        return HttpResponse(200, [*self.stream, (b"content-length", b"%d" % len(body))], body)

    @property
    def stream(self) -> Headers:
        return _STREAM if self.session is None else [*_STREAM, (b"mcp-session-id", self.session.session_id.encode())]


class TokenProgress(Progress):
    """Sends notifications before the answer that a call waits for."""

    def __init__(self, token: int | str) -> None:
        super().__init__(self._notify)
        self._name = token
        self._waiting: asyncio.Future[PendingAnswer] = asyncio.get_running_loop().create_future()

    def follow(self, waiting: PendingAnswer) -> None:
        self._waiting.set_result(waiting)

    async def _notify(self, done: float, total: float | None, message: str | None) -> None:
        news = {"progressToken": self._name, "progress": done, "total": total, "message": message}
        params = {name: value for name, value in news.items() if value is not None}
        notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await (await self._waiting).notify(_ENCODE(notification))


class FastLane:
    """Answers plain requests for one MCP application; returns None for all others."""

    def __init__(self, tools: ToolServer, backend: DispatchBackend, guard: Guard, sessions: McpSessions | None) -> None:
        """Answer for an application; without `sessions`, clients of earlier revisions have none."""
        self._tools = tools
        self._backend = backend
        self._guard = guard
        self._sessions = sessions
        self._stamp = {SERVER_INFO_META_KEY: tools.server.server_info_stamp}
        self._known: Mapping[str, Tool] = {}
        self._plain: dict[str, Tool] = {}
        self._listings: dict[bool, bytes] = {}

    def take(
        self, pairs: Headers, headers: Mapping[str, str], body: bytes, connection: Connection
    ) -> HttpResponse | Application | None:
        """Answer a POST, at once or by an application; return None if it is not plain. `headers` are the `pairs`."""
        version = headers.get("mcp-protocol-version")
        content_type = headers.get("content-type", "")
        if (
            version not in _VERSIONS
            or len(pairs) != len(headers)  # of repeated headers, the SDK reads one
            or METHOD_GRAMMAR in headers  # it may have been added to those that were sent
            or not (content_type == "application/json" or content_type.startswith("application/json;"))
            or not accepts_both(headers.get("accept", ""))
            or self._guard.forbid(headers) is not None
        ):
            return None
        message = read_plain(body)
        if message is None or not self._is_current():
            return None
        is_modern = version == MODERN
        if not (_is_consistent(message, headers) if is_modern else _is_earlier(message, body)):
            return None
        sent = passed(headers)
        call = self._backend.identify(sent, connection)
        # Credentials that are refused, keys that have to be fetched, or strangers, for whom no name is looked up.
        if not isinstance(call, Call) or not may_discover(call):
            return None
        wanted = None if message.name is None else self._find(message.name, message)
        if wanted is None and (message.name is not None or self._backend.own_table(call.principal) is not None):
            return None
        session = None
        if not is_modern and self._sessions is not None:
            session = self._sessions.find(headers.get("mcp-session-id"), call.agent_id)
            if session is None:
                return None
        request = PlainRequest(message, call, sent, is_modern, session)
        return self._list(request) if wanted is None else self._call(request, wanted)

    def _find(self, name: str, message: PlainMessage) -> Wanted | None:
        """Find what a call reaches, by its name or by the search; return None if the call is not plain."""
        key, arguments = message.envelope.key, message.arguments
        if not (key is None or is_header_value(key)):
            return None
        wanted: Wanted | Outcome
        if (tool := self._plain.get(name)) is not None:
            wanted = Wanted(tool, arguments)
        else:
            search, named = self._tools.catalog.search, arguments.get("name")
            if name != search.caller.name or not isinstance(named, str) or named not in self._plain:
                return None
            wanted = search.unwrap(arguments)
            if isinstance(wanted, Outcome) or read_shape(wanted.tool, wanted.shape) is not None:
                return None
        return wanted if _are_valid_arguments(wanted.tool, wanted.arguments) else None

    def _list(self, request: PlainRequest) -> HttpResponse:
        if (refused := self._backend.count(request.call)) is not None:
            return self._guard.refuse(request.message.id, refused)
        listing = self._listings.get(request.is_modern)
        if listing is None:
            listed = self._tools.listing().model_dump(by_alias=True, mode="json", exclude_none=True)
            version = MODERN if request.is_modern else LATEST_HANDSHAKE_VERSION
            listing = self._write(request, serialize_server_result(LIST, version, listed))
            self._listings[request.is_modern] = listing
        return request.reply(b"result", listing)

    def _call(self, request: PlainRequest, wanted: Wanted) -> HttpResponse | Application | None:
        tool = wanted.tool
        if self._guard.challenges and judge(request.call, tool.endpoint) is not None:
            return None
        envelope = request.message.envelope
        if envelope.key is not None:
            request.sent[IDEMPOTENCY_KEY] = envelope.key
        progress = None if envelope.token is msgspec.UNSET else TokenProgress(envelope.token)
        try:
            begin = partial(self._begin, request, wanted)
            begun = begin() if progress is None else progress.run(begin)
            if (
                isinstance(begun, Outcome)
                and begun.confirmation_id is None
                and (progress is None or not progress.is_told)
            ):
                return self._reply(request, wanted, begun)
        except Exception as error:  # noqa: BLE001 - it is logged
            return request.reply(b"result", self._write(request, self._tools.fail(tool, error)))
        answer = self._finish(request, wanted, begun, progress)
        if request.session is None:
            waiting = PendingAnswer(answer, request.stream)
        else:
            cancelled = request.reply(b"error", _CANCELLED)
            waiting = request.session.follow(request.message.id, answer, request.stream, cancelled)
        if progress is not None:
            progress.follow(waiting)
        return waiting

    def _begin(self, request: PlainRequest, wanted: Wanted, own: Mapping[str, str] = MappingProxyType({})) -> Begun:
        sent, connection = {**request.sent, **own}, request.call.request.connection
        return self._backend.begin(wanted.tool.endpoint, wanted.arguments, sent, connection)

    async def _finish(
        self, request: PlainRequest, wanted: Wanted, begun: Begun, progress: TokenProgress | None
    ) -> HttpResponse:
        async def call_again(own: Mapping[str, str]) -> Outcome:
            return await finish(self._begin(request, wanted, own))

        try:
            async with progress or nullcontext():  # the handler may begin only now, after the store has been asked
                outcome = await self._tools.confirm(await finish(begun), call_again)
            return self._reply(request, wanted, outcome)
        except Exception as error:  # noqa: BLE001 - it is logged
            return request.reply(b"result", self._write(request, self._tools.fail(wanted.tool, error)))

    def _reply(self, request: PlainRequest, wanted: Wanted, outcome: Outcome) -> HttpResponse:
        caller = request.call.agent_id or ""
        result = self._tools.results.write(wanted.tool, outcome, wanted.arguments, caller)
        return request.reply(b"result", self._write(request, result))

    def _write(self, request: PlainRequest, result: dict[str, Any]) -> bytes:
        """Write a result, with the members that the SDK adds to all of those of the modern era."""
        if request.is_modern:
            result["_meta"] = {**result.get("_meta", {}), **self._stamp}
            result["resultType"] = "complete"
        return _ENCODE(result)

    def _is_current(self) -> bool:
        """Return True if the tools are those of the present endpoints; the SDK's way reads them anew."""
        tools = self._tools.catalog.tools
        if tools is not self._known:
            self._known = tools
            self._listings.clear()
            self._plain = {name: tool for name, tool in tools.items() if self._is_free(tool)}
        return self._backend.is_current

    def _is_free(self, tool: Tool) -> bool:
        """Return True if nobody is asked before a tool is called, and no header has to repeat an argument."""
        repeats = X_MCP_HEADER_KEY.encode() in _ENCODE(tool.endpoint.input_schema)
        return not (repeats or self._tools.asks(tool) or self._backend.is_confirmed(tool.endpoint))


def _are_valid_arguments(tool: Tool, arguments: dict[str, Any]) -> bool:
    try:
        return tool.input is not None and tool.input.is_valid(arguments)
    except ValueError:  # nested too deeply for the validator
        return False


def _is_consistent(message: PlainMessage, headers: Mapping[str, str]) -> bool:
    if message.name is None:
        return headers.get("mcp-method") == LIST and accepts(message.envelope)
    named = headers.get("mcp-method") == CALL and headers.get("mcp-name") == message.name
    return named and accepts(message.envelope)


def _is_earlier(message: PlainMessage, body: bytes) -> bool:
    """Return True if a message has nothing of the modern era, and is not nested too deeply for the SDK's parser."""
    return not message.envelope.reserved and body.count(b"{") + body.count(b"[") < _DEEPEST


_INTERVAL: Final = 1.0  # seconds between looks for new endpoints, which other processes may have added to the store
_NOTHING: Final = ClientMessage("2.0")  # a request without a body: not a POST, or for the SDK to refuse


class McpApplication:
    def __init__(self, tools: ToolServer, backend: DispatchBackend, guard: Guard, *, stateless: bool = False) -> None:
        """Create the application; `stateless` keeps no sessions, for servers of several processes."""
        self.tools = tools
        self._backend = backend
        self._guard = guard
        tools.server.announces = not stateless
        self._manager = StreamableHTTPSessionManager(
            tools.server, stateless=stateless, max_request_body_size=guard.limits.body
        )
        self._sessions = McpSessions(self._manager, tools.audience.forget)
        self._lane = FastLane(tools, backend, guard, None if stateless else self._sessions)
        self._running: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()

    async def start(self) -> None:
        """Keep sessions and announce changed tools, in a task of its own: the SDK wants both ends in one task."""
        await self.tools.refresh()  # the instructions name what there is
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running = asyncio.create_task(self._run(started))
        await started

    async def stop(self) -> None:
        self._stopping.set()
        if self._running is not None:
            await self._running

    async def _run(self, started: asyncio.Future[None]) -> None:
        async with self._manager.run():
            watching = asyncio.create_task(self.tools.watch(_INTERVAL))
            started.set_result(None)
            await self._stopping.wait()
            watching.cancel()

    def answer(self, head: HttpHead, body: bytes, peer: Connection) -> HttpResponse | Application | None:
        """Answer a plain request without the SDK; return None for any other one."""
        if head.http_method != "POST" or head.path.startswith(METADATA) or isinstance(head.headers, Malformed):
            return None
        return self._lane.take(head.pairs, head.headers, body, peer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admitted = await self._guard.admit(scope, receive)
        if isinstance(admitted, HttpResponse):
            await send_response(admitted, scope["method"], send)
            return
        scope, body = admitted
        asked = read_message(body) if body else _NOTHING
        answer: HttpResponse | Application | None = None
        if scope["method"] == "POST" and not scope.get("state", {}).get(PROMPTED):
            headers = read_headers(scope["headers"], self._guard.limits.headers)
            assert not isinstance(headers, Malformed), "the guard has read them"
            answer = self._lane.take(scope["headers"], headers, body, connection_of(scope))
        answer = answer or await self._admit(scope, asked)
        if isinstance(answer, HttpResponse):
            await send_response(answer, scope["method"], send)
        elif answer is not None:
            await answer(scope, receive, send)
        else:
            assert isinstance(asked, ClientMessage), "others are refused"
            await self._sessions.handle(scope, asked, replayed(body, receive), send)

    async def _admit(self, scope: Scope, asked: ClientMessage | InvalidMessage) -> HttpResponse | None:
        """Judge credentials and scopes; return the refusal. The SDK refuses a message that contradicts its headers."""
        params = asked.params if isinstance(asked, ClientMessage) and asked.method == "tools/call" else None
        call = await self._backend.admit(scope, calls=params is not None)
        # A caller that may not discover gets one answer, for which no name is looked up and every request counts.
        stranger = isinstance(call, Call) and not may_discover(call)
        tool = None
        if params is not None and not stranger and (isinstance(call, Call) or self._backend.is_public):
            tool = await self.tools.find_called(params.name, bytes(params.arguments))
        required = () if tool is None else tool.endpoint.required_scopes
        if isinstance(call, Call) and params is not None and tool is None:
            call = self._backend.count(call) or call
        if isinstance(call, Refused):
            return self._guard.refuse(asked.id, call, required)
        if isinstance(asked, InvalidMessage):
            return HttpResponse(status.BAD_REQUEST, [(b"content-type", b"application/json")], asked.encode())
        found = judge(call, None if tool is None else tool.endpoint)
        if found is not None and (tool is None or self._guard.challenges):
            return self._guard.refuse(asked.id, found, (*call.principal.scopes, *required))
        principal: Principal = scope[PRINCIPAL]
        if principal.agent_id is not None:
            # The SDK then binds the sessions of earlier revisions to the agent.
            scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=principal.agent_id, scopes=[]))
        return None
