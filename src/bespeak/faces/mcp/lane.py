"""The fast lane: plain requests for tools, answered without the SDK.

Whatever is not plain is left to the SDK, so messages are refused by it alone. What is answered here is answered as the
SDK would, and passes the same gates: `tests/faces/mcp/differential.py` compares both ways.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

import msgspec
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.inbound import X_MCP_HEADER_KEY
from mcp_types import SERVER_INFO_META_KEY
from mcp_types.methods import serialize_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from bespeak.contract.mcp_tool import Tool
from bespeak.faces.http.asgi import Application, Headers, HttpResponse
from bespeak.faces.http.dispatched import DispatchBackend, judge, passed
from bespeak.faces.http.guard import Guard
from bespeak.faces.mcp.capability_search import Wanted
from bespeak.faces.mcp.live_sessions import LiveSessions
from bespeak.faces.mcp.plain_message import (
    CALL,
    LIST,
    MODERN,
    Envelopes,
    PlainCall,
    PlainList,
    PlainMessage,
    accepts_both,
    read_plain,
)
from bespeak.faces.mcp.plain_request import PlainRequest
from bespeak.faces.mcp.server import ToolServer
from bespeak.faces.mcp.shape import read_shape
from bespeak.faces.mcp.token_progress import TokenProgress
from bespeak.faces.mcp.waiting import Waiting
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, METHOD_GRAMMAR, is_header_value
from bespeak.protocol.exchange.messages import Connection
from bespeak.protocol.exchange.outcome import Outcome
from bespeak.runtime.call import Call
from bespeak.runtime.disclosure import may_discover

_ENCODE: Final = msgspec.json.Encoder().encode
_VERSIONS: Final = frozenset({MODERN, None, *HANDSHAKE_PROTOCOL_VERSIONS})
"""Values of MCP-Protocol-Version, which clients of the first revisions do not send."""
_DEEPEST: Final = 150
"""Opening brackets of a message that the SDK's parser of earlier revisions is certain to read."""
_CANCELLED: Final = _ENCODE({"code": REQUEST_CANCELLED, "message": "Request cancelled"})


class Lane:
    """Answers plain requests for one MCP application; returns None for all others."""

    def __init__(
        self, tools: ToolServer, backend: DispatchBackend, guard: Guard, sessions: LiveSessions | None = None
    ) -> None:
        """Answer for an application; without `sessions`, clients of earlier revisions have none."""
        self._tools = tools
        self._backend = backend
        self._guard = guard
        self._sessions = sessions
        self._envelopes = Envelopes()
        self._stamp = {SERVER_INFO_META_KEY: tools.server.server_info_stamp}
        self._known: Mapping[str, Tool] = {}
        self._plain: dict[str, Tool] = {}
        self._listings: dict[bool, bytes] = {}

    def take(
        self, pairs: Headers, headers: Mapping[str, str], body: bytes, connection: Connection
    ) -> HttpResponse | Application | None:
        """Answer a POST, at once or by an application that awaits the answer; return None if it is not plain.

        `headers` are the `pairs` by name.
        """
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
        if not (self._is_consistent(message, headers) if is_modern else _is_earlier(message, body)):
            return None
        sent = passed(headers)
        call = self._backend.identify(sent, connection)
        # Credentials that are refused, keys that have to be fetched, or strangers, for whom no name is looked up.
        if not isinstance(call, Call) or not may_discover(call):
            return None
        wanted = None if isinstance(message, PlainList) else self._find(message)
        if wanted is None and isinstance(message, PlainCall):
            return None
        if wanted is None and self._backend.own_table(call.principal) is not None:
            return None
        session = None
        if not is_modern and self._sessions is not None:
            session = self._sessions.find(headers.get("mcp-session-id"), call.agent_id)
            if session is None:
                return None
        request = PlainRequest(message, call, sent, is_modern, session)
        return self._list(request) if wanted is None else self._call(request, wanted)

    def _find(self, message: PlainCall) -> Wanted | None:
        """Find what a call reaches, by its name or by the search; return None if the call is not plain."""
        params = message.params
        key, arguments = params.envelope.key, params.arguments or {}
        if not (key is None or is_header_value(key)):
            return None
        tool = self._plain.get(params.name)
        if tool is not None:
            return Wanted(tool, arguments) if _is_valid(tool, arguments) else None
        search, named = self._tools.catalog.search, arguments.get("name")
        if params.name != search.caller.name or not isinstance(named, str) or named not in self._plain:
            return None
        wanted = search.unwrap(arguments)
        if isinstance(wanted, Outcome) or read_shape(wanted.tool, wanted.shape) is not None:
            return None
        return wanted if _is_valid(wanted.tool, wanted.arguments) else None

    def _is_consistent(self, message: PlainMessage, headers: Mapping[str, str]) -> bool:
        """Return True if a message of the modern era has a valid envelope, and headers that repeat its contents."""
        if isinstance(message, PlainCall):
            named = headers.get("mcp-method") == CALL and headers.get("mcp-name") == message.params.name
        else:
            named = headers.get("mcp-method") == LIST
        return named and self._envelopes.accept(message.params.envelope)

    def _list(self, request: PlainRequest) -> HttpResponse:
        """List the tools."""
        refused = self._backend.count(request.call)
        if refused is not None:
            return self._guard.refuse(request.message.id, refused)
        listing = self._listings.get(request.is_modern)
        if listing is None:
            listed = self._tools.listing().model_dump(by_alias=True, mode="json", exclude_none=True)
            version = MODERN if request.is_modern else LATEST_HANDSHAKE_VERSION
            listing = self._write(request, serialize_server_result(LIST, version, listed))
            self._listings[request.is_modern] = listing
        return request.reply(b"result", listing)

    def _call(self, request: PlainRequest, wanted: Wanted) -> HttpResponse | Application | None:
        """Call a tool, unless the caller is to be challenged."""
        tool = wanted.tool
        if self._guard.challenges and judge(request.call, tool.endpoint) is not None:
            return None
        envelope = request.message.params.envelope
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
                return request.reply(b"result", self._write(request, self._result(request, wanted, begun)))
        except Exception as error:  # noqa: BLE001 - it is logged
            return request.reply(b"result", self._write(request, self._tools.fail(tool, error)))
        answer = self._finish(request, wanted, begun, progress)
        if request.session is None:
            waiting = Waiting(answer, request.stream)
        else:
            cancelled = request.reply(b"error", _CANCELLED)
            waiting = request.session.follow(request.message.id, answer, request.stream, cancelled)
        if progress is not None:
            progress.follow(waiting)
        return waiting

    def _begin(
        self, request: PlainRequest, wanted: Wanted, own: Mapping[str, str] | None = None
    ) -> Outcome | Coroutine[Any, Any, Outcome]:
        sent, connection = {**request.sent, **(own or {})}, request.call.request.connection
        return self._backend.begin(wanted.tool.endpoint, wanted.arguments, sent, connection)

    async def _finish(
        self,
        request: PlainRequest,
        wanted: Wanted,
        begun: Outcome | Coroutine[Any, Any, Outcome],
        progress: TokenProgress | None,
    ) -> HttpResponse:
        """Await a call that has begun."""

        async def call_again(own: Mapping[str, str]) -> Outcome:
            again = self._begin(request, wanted, {name.lower(): value for name, value in own.items()})
            return again if isinstance(again, Outcome) else await again

        try:
            async with progress or nullcontext():  # the handler may begin only now, after the store has been asked
                outcome = begun if isinstance(begun, Outcome) else await begun
                outcome = await self._tools.confirm(outcome, call_again)
            result = self._result(request, wanted, outcome)
        except Exception as error:  # noqa: BLE001 - it is logged
            result = self._tools.fail(wanted.tool, error)
        return request.reply(b"result", self._write(request, result))

    def _result(self, request: PlainRequest, wanted: Wanted, outcome: Outcome) -> dict[str, Any]:
        return self._tools.results.write(wanted.tool, outcome, wanted.arguments, request.call.agent_id or "")

    def _write(self, request: PlainRequest, result: dict[str, Any]) -> bytes:
        """Write a result, with the members that the SDK adds to all of those of the modern era."""
        if request.is_modern:
            result["_meta"] = {**result.get("_meta", {}), **self._stamp}
            result["resultType"] = "complete"
        return _ENCODE(result)

    def _is_current(self) -> bool:
        """Return True if the tools are those of the present endpoints; the SDK's way reads them anew."""
        tools = self._tools.known
        if tools is not self._known:
            self._known = tools
            self._listings.clear()
            self._plain = {name: tool for name, tool in tools.items() if self._is_free(tool)}
        return self._backend.is_current

    def _is_free(self, tool: Tool) -> bool:
        """Return True if nobody is asked before a tool is called, and no header has to repeat an argument."""
        repeats = X_MCP_HEADER_KEY.encode() in _ENCODE(tool.endpoint.input_schema)
        return not (repeats or self._tools.asks(tool) or self._backend.is_confirmed(tool.endpoint))


def _is_valid(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Return True if the arguments of a call are valid."""
    try:
        return tool.input is not None and tool.input.is_valid(arguments)
    except ValueError:  # nested too deeply for the validator
        return False


def _is_earlier(message: PlainMessage, body: bytes) -> bool:
    """Return True if a message has nothing of the modern era, and is not nested too deeply for the SDK's parser."""
    return not message.params.envelope.reserved and body.count(b"{") + body.count(b"[") < _DEEPEST
