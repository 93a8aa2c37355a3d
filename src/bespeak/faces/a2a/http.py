"""A2A over HTTP, as an ASGI application: guards and credentials before the SDK's reading of JSON-RPC."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.constants import VERSION_HEADER
from starlette.requests import Request

from bespeak.contract.schema.validation import is_within
from bespeak.faces.a2a.calls import Caller, SkillCalls
from bespeak.faces.a2a.handler import CALLER, SkillHandler
from bespeak.faces.a2a.skills import SkillCall, read_call
from bespeak.faces.a2a.tasks import SkillTasks
from bespeak.faces.http.asgi import HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.dispatched import DispatchBackend, judge
from bespeak.faces.http.face import refusal
from bespeak.faces.http.guard import Guard, replayed
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.text.reading.json_data import decode_json

MOST_VALUES: Final = 50_000  # Values of one body. Protobuf needs 2 µs for each, during which nobody else is answered.
_TOO_LARGE: Final = Refused(
    status.CONTENT_TOO_LARGE, "content-too-large", f"The body has more than {MOST_VALUES} values."
)
_SENDING: Final = frozenset({"SendMessage", "SendStreamingMessage", "message/send", "message/stream"})


class A2aApplication:
    def __init__(
        self, handler: SkillHandler, calls: SkillCalls, tasks: SkillTasks, backend: DispatchBackend, guard: Guard
    ) -> None:
        self._calls = calls
        self._tasks = tasks
        self._backend = backend
        self._guard = guard
        self._dispatcher = JsonRpcDispatcher(handler, _Contexts(), enable_v0_3_compat=True)

    async def start(self) -> None:
        """Follow the tasks in the store."""
        await self._tasks.start()

    async def stop(self) -> None:
        await self._tasks.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admitted = await self._guard.admit(scope, receive)
        if isinstance(admitted, HttpResponse):
            await send_response(admitted, scope["method"], send)
            return
        inner, body = admitted
        found = await self._admit(inner, body)
        if isinstance(found, HttpResponse):
            await send_response(found, scope["method"], send)
            return
        asked, caller = found
        receive = replayed(body, receive)
        caller.request = Request(inner, receive)
        inner[CALLER] = caller
        response = await self._dispatcher.handle_requests(caller.request)
        if caller.refused is not None:
            await send_response(self._guard.refuse(asked.get("id"), caller.refused), scope["method"], send)
            return
        if caller.lacking and self._guard.challenges:
            # The task says what is missing in words; OAuth clients look here (RFC 9110 11.6.1 allows it on any answer).
            wanted = (*caller.call.principal.scopes, *caller.lacking)
            lacking = Refused(status.SCOPE_VIOLATION, "scope-violation", "The call needs more scopes.")
            response.headers["www-authenticate"] = self._guard.challenge(status.FORBIDDEN, lacking, wanted).decode()
        await response(inner, receive, send)

    async def _admit(self, scope: Scope, body: bytes) -> HttpResponse | tuple[dict[str, Any], Caller]:
        """Judge the form and the credentials of a request; return the reply to one that is refused."""
        if scope["method"] != "POST":
            return refusal(status.METHOD_NOT_ALLOWED, "method-not-allowed", "A2A is called with POST.", allow="POST")
        try:
            read = decode_json(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return _unreadable(error)
        asked: dict[str, Any] = read if isinstance(read, dict) else {}
        call = await self._backend.admit(scope, calls=False)
        if isinstance(call, Refused):
            return self._guard.refuse(asked.get("id"), call)
        if not is_within(read, parts=MOST_VALUES, characters=len(body)):
            return self._guard.refuse(asked.get("id"), _TOO_LARGE)
        parts = _member(asked, "params", "message", "parts")
        caller = Caller(None, call, parts if isinstance(parts, list) else [], _member(asked, "params", "status"))
        if (unseen := judge(call, None)) is not None:
            return self._guard.refuse(asked.get("id"), unseen)
        told = read_call(caller.parts)
        if str(asked.get("method")) in _SENDING and isinstance(told, SkillCall) and not caller.is_known:
            # An anonymous caller cannot own a task that waits for its authority.
            skill = (await self._calls.skills()).get(told.skill or "")
            lacking = None if skill is None else judge(call, skill.endpoint)
            if skill is not None and lacking is not None:
                return self._guard.refuse(asked.get("id"), lacking, skill.endpoint.required_scopes)
        return asked, caller


class _Contexts(ServerCallContextBuilder):
    def build(self, request: Request) -> ServerCallContext:
        """Pass on the caller, and the headers that say which version and extensions are meant."""
        headers = dict(request.headers)
        # A client may send the version as a parameter instead (A2A 1.0, 3.6.1).
        if (version := request.query_params.get(VERSION_HEADER)) is not None:
            headers.setdefault(VERSION_HEADER.lower(), version)
        return ServerCallContext(
            state={"headers": headers, CALLER: request.scope[CALLER]},
            requested_extensions=get_requested_extensions(request.headers.getlist(HTTP_EXTENSION_HEADER)),
        )


def _unreadable(error: Exception) -> HttpResponse:
    """Refuse a body that is not JSON, or that two readers would read differently."""
    fault = {"code": -32700, "message": f"The body is not valid JSON: {error}."}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": fault})
    return HttpResponse(200, [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))], body)


def _member(asked: Any, *path: str) -> Any:
    for name in path:
        asked = asked.get(name) if isinstance(asked, dict) else None
    return asked
