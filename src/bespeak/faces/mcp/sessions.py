"""Messages of MCP clients, sessions of earlier revisions in the memory of one process, and the answers they wait for.

The SDK accepts more than JSON (NaN, half a character, UTF-16), leaves some messages unanswered, and shows clients of
earlier revisions the report of its validator. So a message is read here before the SDK reads it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from msgspec import UNSET, UnsetType

from bespeak.faces.http.asgi import Headers, HttpResponse, Message, Receive, Scope, Send, send_response

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class Params(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    requestId: Any = None  # noqa: N815 - the name on the wire


class _Error(msgspec.Struct):
    code: int
    message: str


class ClientMessage(msgspec.Struct):
    """A request, a notification, or the answer to a question."""

    jsonrpc: Literal["2.0"]
    method: str = ""
    id: Any = UNSET
    params: Params | None = None
    result: dict[str, Any] | UnsetType = UNSET
    error: _Error | UnsetType = UNSET

    @property
    def is_valid(self) -> bool:
        """True if the members belong together, and the id is one."""
        if self.method:
            return self.id is UNSET or is_id(self.id)
        return self.error is not UNSET or (self.result is not UNSET and is_id(self.id))


class InvalidMessage(NamedTuple):
    """The JSON-RPC error that answers what is not a message."""

    code: int
    message: str
    id: str | int | None

    def encode(self) -> bytes:
        error = {"code": self.code, "message": self.message}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": self.id, "error": error})


class _Identified(msgspec.Struct):
    id: Any = None


_read_message: Final = msgspec.json.Decoder(ClientMessage).decode
_identify: Final = msgspec.json.Decoder(_Identified).decode


def read_message(data: bytes) -> ClientMessage | InvalidMessage:
    """Read a message, and all of it: what is passed on must be JSON."""
    try:
        msgspec.json.decode(data)
        message = _read_message(data)
    except msgspec.ValidationError as error:
        return InvalidMessage(INVALID_REQUEST, f"This is not one JSON-RPC message: {error}", _id_of(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return InvalidMessage(PARSE_ERROR, "This is not JSON in UTF-8", None)
    if not message.is_valid:
        return InvalidMessage(INVALID_REQUEST, "This is not one JSON-RPC message with a valid id", _valid(message.id))
    return message


def is_id(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _id_of(data: bytes) -> str | int | None:
    try:
        return _valid(_identify(data).id)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # it is found wrong at its first fault
        return None


def _valid(value: Any) -> str | int | None:
    return value if is_id(value) else None


Answer = Coroutine[Any, Any, HttpResponse]
INTERVAL: Final = 15.0  # seconds of silence before a sign of life, as by the SDK: proxies close idle connections
GRACE: Final = 0.05  # seconds until the peer's leaving is noticed: most answers are ready before, and need no task


def event(message: bytes) -> bytes:
    return b"event: message\r\ndata: %b\r\n\r\n" % message


class PendingAnswer:
    """The rest of an answer, as an ASGI application for one request."""

    def __init__(self, answer: Answer, stream: Headers, *, cancelled: HttpResponse | None = None) -> None:
        """Await an answer, whose body is a message or an event; `stream` are the headers of an event stream.

        If the peer leaves, the call is cancelled, unless there is an answer to `cancelled` calls: then the client says
        so in another request.
        """
        self._answer = answer
        self._stream = stream
        self._cancelled = cancelled
        self._task: asyncio.Task[Any] | None = None
        self._send: Send
        self._called = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._begun = False
        self._ended = False

    async def notify(self, message: bytes) -> None:
        """Send a message before the answer, which makes it a stream of events."""
        await self._called.wait()
        await self._send_part(event(message))

    def cancel(self) -> None:
        if self._task is not None and not self._ended:
            self._ended = True
            self._task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        task = self._task = asyncio.current_task()
        assert task is not None
        self._send = send
        self._called.set()
        later = asyncio.get_running_loop().call_later(GRACE, self._begin_watch, receive)
        try:
            try:
                reply = await self._answer
            finally:
                later.cancel()
                if self._watching is not None:
                    self._watching.cancel()
        except asyncio.CancelledError:
            if not self._ended:
                raise
            task.uncancel()
            if self._cancelled is None:
                return
            reply = self._cancelled
        self._ended = True
        if self._begun:
            body = reply.body if reply.body.startswith(b"event:") else event(reply.body)
            await send({"type": "http.response.body", "body": body, "more_body": False})
        else:
            await send_response(reply, "POST", send)

    async def _send_part(self, part: bytes) -> None:
        if not self._begun:
            self._begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": list(self._stream)})
        await self._send({"type": "http.response.body", "body": part, "more_body": True})

    def _begin_watch(self, receive: Receive) -> None:
        self._watching = asyncio.create_task(self._watch(receive))

    async def _watch(self, receive: Receive) -> None:
        while True:
            try:
                async with asyncio.timeout(INTERVAL):
                    while (await receive())["type"] != "http.disconnect":
                        pass
                break
            except TimeoutError:
                await self._send_part(b": ping\r\n\r\n")
        if self._cancelled is None:
            self.cancel()


MOST_SESSIONS: Final = 1_000  # sessions of a process; each takes about 40 KB
FRESH: Final = 60.0  # seconds after which a request passes through the SDK again, which ends idle sessions
_NOTED: Final = frozenset({"tools/call", "tools/list"})  # answered with a result only after the handshake
_ID: Final = b"mcp-session-id"
_NO_STREAM: Final = HttpResponse(405, [(b"allow", b"POST"), (b"content-length", b"0")], b"")
_NOT_FOUND: Final = HttpResponse(  # Reply of the SDK to an unknown session, and ours to the session of another agent.
    404,
    [(b"content-type", b"application/json")],
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}',
)


class McpSession:
    """A session, and the calls in it that are answered without the SDK."""

    def __init__(self, session_id: str, user: Any, owner: str) -> None:
        self.session_id = session_id
        self.user = user  # the agent that opened it, for the SDK; None for an anonymous client
        self.owner = owner  # the agent that uses it; empty while its client is anonymous
        self.busy = 0  # requests that the SDK is answering, among them streams for notifications
        self.seen = -math.inf  # when the SDK last answered a request of the owner for tools
        self._running: dict[str, PendingAnswer] = {}

    def follow(self, request_id: int | str, answer: Answer, stream: Headers, cancelled: HttpResponse) -> PendingAnswer:
        """Await an answer that can be cancelled in another request, with the answer to that."""
        key = str(request_id)

        async def run() -> HttpResponse:
            try:
                return await answer
            finally:
                if self._running.get(key) is waiting:  # a later request may have the same id
                    del self._running[key]

        waiting = self._running[key] = PendingAnswer(run(), stream, cancelled=cancelled)
        return waiting

    def cancel(self, request_id: object) -> None:
        waiting = self._running.pop(str(request_id), None) if isinstance(request_id, (int, str)) else None
        if waiting is not None:
            waiting.cancel()

    def close(self) -> None:
        for request_id in list(self._running):
            self.cancel(request_id)


@dataclass(eq=False)
class McpSessions:
    """Passes requests on to the SDK, which would refuse new sessions when there are many, until old ones are idle."""

    # Here the session that was unused for longest ends, of the agent that has the most: nobody can lock others out.

    _manager: StreamableHTTPSessionManager
    _ended: Callable[[str], None]  # is told the id of each session that ends
    _: KW_ONLY
    most: int = MOST_SESSIONS
    clock: Callable[[], float] = time.monotonic
    # By id, those unused for longest first; the SDK may have ended some.
    _open: dict[str, McpSession] = field(init=False, default_factory=dict)

    def find(self, session_id: str | None, agent_id: str | None) -> McpSession | None:
        """Return the session of an agent; None if the SDK has not answered in it of late."""
        session = self._open.get(session_id or "")
        if session is None or session.owner != (agent_id or "") or self.clock() - session.seen > FRESH:
            return None
        return session

    async def handle(self, scope: Scope, asked: ClientMessage, receive: Receive, send: Send) -> None:
        if self._manager.stateless and scope["method"] == "GET":
            await send_response(_NO_STREAM, scope["method"], send)  # nothing would ever be sent in it
            return
        header = next((pair for pair in scope["headers"] if pair[0] == _ID), None)
        session = None if header is None else self._open.get(header[1].decode("latin-1"))
        if header is None or session is None:
            await self._manager.handle_request(scope, receive, self._noting(scope, send))
            while len(self._open) > self.most:
                ((most, _),) = Counter(one.owner for one in self._open.values()).most_common(1)
                theirs = [one for one in self._open.values() if one.owner == most]
                await self._end(min(theirs, key=lambda one: one.busy > 0))
            return
        owner = _owner(scope)
        if owner and not session.owner:
            # A client may show its token only when it is asked for one: from then on the session is its own.
            session.owner, session.seen = owner, -math.inf
        if session.owner != owner:
            await send_response(_NOT_FOUND, scope["method"], send)
            return
        if asked.method == "notifications/cancelled" and asked.params is not None:
            session.cancel(asked.params.requestId)
        self._open[session.session_id] = self._open.pop(session.session_id)
        session.busy += 1
        try:
            observed = self._observing(session, header, asked.method, send)
            await self._manager.handle_request({**scope, "user": session.user}, receive, observed)
        finally:
            session.busy -= 1
        if scope["method"] == "DELETE":
            self._forget(session)

    def _noting(self, scope: Scope, send: Send) -> Send:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                for name, value in message["headers"]:
                    if name == _ID:
                        session_id = value.decode("latin-1")
                        self._open[session_id] = McpSession(session_id, scope.get("user"), _owner(scope))
            await send(message)

        return noting

    def _observing(self, session: McpSession, header: tuple[bytes, bytes], method: str, send: Send) -> Send:
        """Make a `send` that notes what the SDK's answer to a message with a `method` tells about its session."""
        is_live = False

        async def observing(message: Message) -> None:
            nonlocal is_live
            if message["type"] == "http.response.start":
                is_live = header in message["headers"]
                if message["status"] == 404:
                    self._forget(session)
            elif is_live and method in _NOTED and _is_result(message.get("body", b"")):
                session.seen = self.clock()
            await send(message)

        return observing

    async def _end(self, session: McpSession) -> None:
        self._forget(session)
        scope: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(_ID, session.session_id.encode("latin-1"))],
            "user": session.user,
        }
        await self._manager.handle_request(scope, _nothing, _unsent)

    def _forget(self, session: McpSession) -> None:
        if self._open.pop(session.session_id, None) is not None:
            self._ended(session.session_id)
            session.close()


def _owner(scope: Scope) -> str:
    user = scope.get("user")
    return "" if user is None else str(user.username)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _unsent(_: Message) -> None:
    pass


class _Answered(msgspec.Struct):
    result: msgspec.Raw


def _is_result(part: bytes) -> bool:
    try:
        return part.startswith(b"event: message") and bool(_read_answer(part.partition(b"data: ")[2]))
    except msgspec.DecodeError:
        return False


_read_answer: Final = msgspec.json.Decoder(_Answered).decode
