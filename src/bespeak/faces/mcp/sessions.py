"""Bounded sessions of the earlier revisions of MCP, which live in the memory of one process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bespeak.faces.http.asgi import HttpResponse, Message, Receive, Scope, Send, send_response

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MOST: Final = 1_000
"""Sessions of a process; each takes about 40 KB."""
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

    user: Any
    """The agent that opened it, for the SDK; None for an anonymous client."""
    owner: str
    """The agent that uses it; empty while its client is anonymous."""
    busy: int = 0
    """Requests that are being answered, among them streams for notifications."""


class Sessions:
    """Passes requests on to the SDK, which would refuse new sessions when there are many, until old ones are idle.

    Here the session that was unused for longest ends, of the agent that has the most: nobody can lock others out.
    """

    def __init__(
        self, manager: StreamableHTTPSessionManager, ended: Callable[[str], None], *, most: int = MOST
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
