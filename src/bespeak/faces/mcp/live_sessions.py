"""Sessions of earlier revisions in which plain requests are answered without the SDK, and what runs in them.

The SDK keeps the sessions. Here is noted in which of them it has answered a request for tools: the next ones need not
pass through it. Now and then one does, so that the SDK sees that the session is used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from bespeak.faces.http.asgi import Headers, HttpResponse, Message, Scope, Send
from bespeak.faces.mcp.waiting import Waiting

FRESH: Final = 60.0
"""Seconds after which a request passes through the SDK again, which ends sessions that are idle for half an hour."""
_MOST: Final = 2_000
"""More sessions than are kept, for one may end while it is being answered."""
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
        if len(self._known) > _MOST:
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
