"""Sessions of earlier revisions of MCP, in the memory of one process, and the answers they wait for."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.faces.http.asgi import Headers, HttpResponse, Message, Receive, Scope, Send, send_response

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MOST_SESSIONS: Final = 1_000  # sessions of a process; each takes about 40 KB
_ID: Final = b"mcp-session-id"
_NO_STREAM: Final = HttpResponse(405, [(b"allow", b"POST"), (b"content-length", b"0")], b"")
_NOT_FOUND: Final = HttpResponse(
    404,
    [(b"content-type", b"application/json")],
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Session not found"}}',
)
"""Reply of the SDK to an unknown session, and ours to the session of another agent."""


@dataclass(slots=True)
class _Session:
    """One session of an agent."""

    user: Any  # the agent that opened it, for the SDK; None for an anonymous client
    owner: str  # the agent that uses it; empty while its client is anonymous
    busy: int = 0  # requests that are being answered, among them streams for notifications


class Sessions:
    """Passes requests on to the SDK, which would refuse new sessions when there are many, until old ones are idle.

    Here the session that was unused for longest ends, of the agent that has the most: nobody can lock others out.
    """

    def __init__(
        self, manager: StreamableHTTPSessionManager, ended: Callable[[str], None], *, most: int = MOST_SESSIONS
    ) -> None:
        """Bound the sessions of `manager`; `ended` is told the id of each that ends."""
        self._manager = manager
        self._ended = ended
        self._most = most
        self._open: dict[str, _Session] = {}
        """Sessions by id, those unused for longest first. The SDK may have ended some of them."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of any era."""
        if self._manager.stateless and scope["method"] == "GET":
            await send_response(_NO_STREAM, scope["method"], send)  # nothing would ever be sent in it
            return
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == _ID), None)
        session = None if given is None else self._open.get(given)
        if given is None or session is None:
            await self._manager.handle_request(scope, receive, self._noting(scope, send))
            while len(self._open) > self._most:
                await self._end(self._longest_unused())
            return
        # A client may show its token only when it is asked for one: from then on the session is its own.
        session.owner = session.owner or _owner(scope)
        if session.owner != _owner(scope):
            await send_response(_NOT_FOUND, scope["method"], send)
            return
        self._open[given] = self._open.pop(given)
        session.busy += 1
        try:
            await self._manager.handle_request({**scope, "user": session.user}, receive, send)
        finally:
            session.busy -= 1
        if scope["method"] == "DELETE":
            self._forget(given)

    def _noting(self, scope: Scope, send: Send) -> Send:
        """Make a `send` that notes the session that an answer opens."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                for name, value in message["headers"]:
                    if name == _ID:
                        self._open[value.decode("latin-1")] = _Session(scope.get("user"), _owner(scope))
            await send(message)

        return noting

    def _longest_unused(self) -> str:
        ((owner, _),) = Counter(session.owner for session in self._open.values()).most_common(1)
        own = [(session.busy > 0, key) for key, session in self._open.items() if session.owner == owner]
        return min(own, key=lambda each: each[0])[1]

    async def _end(self, session_id: str) -> None:
        """End a session as its client would."""
        user = self._forget(session_id).user
        scope: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(_ID, session_id.encode("latin-1"))],
            "user": user,
        }
        await self._manager.handle_request(scope, _nothing, _unsent)

    def _forget(self, session_id: str) -> _Session:
        self._ended(session_id)
        return self._open.pop(session_id)


def _owner(scope: Scope) -> str:
    user = scope.get("user")
    return "" if user is None else str(user.username)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


async def _unsent(_: Message) -> None:
    pass


INTERVAL: Final = 15.0
"""Seconds of silence after which a sign of life is sent, as by the SDK: proxies close connections that are idle."""

GRACE: Final = 0.05
"""Seconds after which it is noticed that the peer has left. Most answers are ready before, and need no task for it."""
_PING: Final = b": ping\r\n\r\n"


def event(message: bytes) -> bytes:
    """Write a message as an event of a stream."""
    return b"event: message\r\ndata: %b\r\n\r\n" % message


class Waiting:
    """The rest of an answer, as an ASGI application for one request."""

    def __init__(
        self,
        answer: Coroutine[Any, Any, HttpResponse],
        stream: Headers,
        *,
        cancelled: HttpResponse | None = None,
    ) -> None:
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
        """Cancel the call, because its client says so."""
        if self._task is not None and not self._ended:
            self._ended = True
            self._task.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Await the answer in the current task and send it."""
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
        """Send signs of life until the peer leaves."""
        while True:
            try:
                async with asyncio.timeout(INTERVAL):
                    while (await receive())["type"] != "http.disconnect":
                        pass
                break
            except TimeoutError:
                await self._send_part(_PING)
        if self._cancelled is None:
            self.cancel()


FRESH: Final = 60.0
"""Seconds after which a request passes through the SDK again, which ends sessions that are idle for half an hour."""
_MOST_LIVE: Final = 2_000  # more sessions than are kept, for one may end while it is being answered
_NOTED: Final = frozenset({"tools/call", "tools/list"})
"""Methods that the SDK answers with a result only after the handshake."""


class _Answered(msgspec.Struct):
    result: msgspec.Raw


_read = msgspec.json.Decoder(_Answered).decode


class LiveSession:
    """One session."""

    def __init__(self, session_id: str, agent_id: str | None, seen: float) -> None:
        self.session_id = session_id
        self.agent_id = agent_id
        self.seen = seen
        """Time of the last answer of the SDK."""
        self._running: dict[str, Waiting] = {}

    def follow(
        self,
        request_id: int | str,
        answer: Coroutine[Any, Any, HttpResponse],
        stream: Headers,
        cancelled: HttpResponse,
    ) -> Waiting:
        """Await an answer that can be cancelled in another request, with the answer to that."""
        key = str(request_id)

        async def run() -> HttpResponse:
            try:
                return await answer
            finally:
                if self._running.get(key) is waiting:  # a later request may have the same id
                    del self._running[key]

        waiting = self._running[key] = Waiting(run(), stream, cancelled=cancelled)
        return waiting

    def cancel(self, request_id: int | str) -> None:
        """Cancel a call, if it runs."""
        waiting = self._running.pop(str(request_id), None)
        if waiting is not None:
            waiting.cancel()

    def close(self) -> None:
        """Cancel all calls."""
        for request_id in list(self._running):
            self.cancel(request_id)


class LiveSessions:
    """The sessions of one server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, LiveSession] = {}

    def find(self, session_id: str | None, agent_id: str | None) -> LiveSession | None:
        """Return the session of an agent; None if the SDK has not answered in it of late."""
        session = self.of(session_id, agent_id)
        return None if session is None or self._clock() - session.seen > FRESH else session

    def of(self, session_id: str | None, agent_id: str | None) -> LiveSession | None:
        """Return the session of an agent, however long ago the SDK has answered in it."""
        session = None if session_id is None else self._known.get(session_id)
        return session if session is not None and session.agent_id == agent_id else None

    def _note(self, session_id: str, agent_id: str | None) -> None:
        """Note that the SDK has answered a request for tools of an agent."""
        session = self._known.get(session_id) or LiveSession(session_id, agent_id, 0.0)
        session.seen = self._clock()
        session.agent_id = agent_id  # a client may begin to show its credentials
        self._known[session_id] = session
        if len(self._known) > _MOST_LIVE:
            del self._known[next(iter(self._known))]

    def observe(self, scope: Scope, method: str, agent_id: str | None, send: Send) -> Send:
        """Make a `send` that notes what the SDK's answer to a message with a `method` tells about a session."""
        header = _header(scope)
        if header is None:
            return send
        session_id, is_live = header[1].decode("latin-1"), False

        async def observed(message: Message) -> None:
            nonlocal is_live
            if message["type"] == "http.response.start":
                is_live = header in message["headers"]
                if message["status"] == 404 and self.of(session_id, agent_id) is not None:
                    self.forget(session_id)
            elif is_live and method in _NOTED and _is_result(message.get("body", b"")):
                self._note(session_id, agent_id)
            await send(message)

        return observed

    def cancel(self, scope: Scope, agent_id: str | None, request_id: object) -> None:
        """Cancel a call in the session of a request."""
        header = _header(scope)
        session = None if header is None else self.of(header[1].decode("latin-1"), agent_id)
        if session is not None and isinstance(request_id, (int, str)):
            session.cancel(request_id)

    def forget(self, session_id: str) -> None:
        """Note that the SDK has ended a session."""
        session = self._known.pop(session_id, None)
        if session is not None:
            session.close()


def _header(scope: Scope) -> tuple[bytes, bytes] | None:
    return next((pair for pair in scope["headers"] if pair[0] == b"mcp-session-id"), None)


def _is_result(part: bytes) -> bool:
    """Return True if a part of a stream is an event with the result of a request."""
    try:
        return part.startswith(b"event: message") and bool(_read(part.partition(b"data: ")[2]))
    except msgspec.DecodeError:
        return False
