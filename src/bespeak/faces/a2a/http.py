"""A2A over HTTP: its methods, and the ASGI application with guards and credentials before the SDK's JSON-RPC."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

import msgspec
from a2a import types
from a2a.extensions.common import HTTP_EXTENSION_HEADER, get_requested_extensions
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils import errors
from a2a.utils import task as paging
from a2a.utils.constants import VERSION_HEADER
from a2a.utils.proto_utils import parse_lenient, validate_proto_required_fields
from starlette.requests import Request

from bespeak.contract.schema.validation import is_within
from bespeak.errors import StoreError
from bespeak.faces.a2a.calls import NO_PUSH, Caller, SkillCalls
from bespeak.faces.a2a.skills import SkillCall, read_call
from bespeak.faces.a2a.tasks import LONGEST_ID, Held, SkillTasks
from bespeak.faces.http.asgi import HttpResponse, Receive, Scope, Send, send_response
from bespeak.faces.http.dispatched import DispatchBackend, judge
from bespeak.faces.http.face import Guard, refusal, replayed
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.state.store.commands.a2a_tasks import FINISHED, WAITING, WORKING
from bespeak.state.store.store import level_of
from bespeak.text.reading.json_data import decode_json

_logger = logging.getLogger(__name__)
CALLER: Final = "bespeak.caller"  # key of the caller in the state of a call context
_PAGE: Final = 50
_MOST_LISTED: Final = 4 * 1024 * 1024  # bytes of tasks on one page
_OPEN: Final = frozenset({WORKING, WAITING})
_BUSY: Final = frozenset({WORKING})
_UNAVAILABLE: Final = Refused(
    status.UNAVAILABLE,
    "store-unavailable",
    "This server cannot reach its store. Try again later, with the same messageId if you sent a message.",
    headers=(("Retry-After", "2"),),
)
Context = ServerCallContext
Events = AsyncGenerator[Any, None]
Result = TypeVar("Result")
ParamsT = TypeVar("ParamsT")
Cards = Callable[[], Mapping[str, Any] | None]  # The card for identified agents; None if the public one has everything.


def _guarded(
    method: Callable[[SkillHandler, ParamsT, Context], Awaitable[Result]],
) -> Callable[[SkillHandler, ParamsT, Context], Coroutine[Any, Any, Result]]:
    """Log here what goes wrong inside a method: the SDK would send its text to the caller."""

    @wraps(method)
    async def guarded(self: SkillHandler, params: ParamsT, context: Context) -> Result:
        try:
            return await method(self, params, context)
        except errors.A2AError:
            raise
        except StoreError as error:
            _logger.log(level_of(error), "the store cannot be reached: %s", error)
            raise _caller(context).refuse(_UNAVAILABLE) from None
        except Exception as error:
            _logger.error("A method of A2A failed", exc_info=error)
            raise errors.InternalError("The service failed; the operator's log has the reason.") from None

    return guarded


class SkillHandler(RequestHandler):
    """Answers the methods of A2A, whatever version they are called in."""

    def __init__(self, calls: SkillCalls, tasks: SkillTasks, cards: Cards) -> None:
        self._calls = calls
        self._tasks = tasks
        self._cards = cards

    @_guarded
    async def on_message_send(self, params: types.SendMessageRequest, context: Context) -> types.Task | types.Message:
        """Carry out a message, and wait for the end of its call unless the caller does not want to."""
        held = await self._begin(params, context)
        if isinstance(held, types.Message):
            return held
        if not params.configuration.return_immediately:
            held = await self._tasks.settle(held)
        return paging.apply_history_length(held.task, params.configuration)

    async def on_message_send_stream(self, params: types.SendMessageRequest, context: Context) -> Events:
        """Carry out a message, and yield its task with every change until it ends or waits."""
        held = await self._begin(params, context)
        if isinstance(held, types.Message):
            yield held
            return
        async for event in self._tasks.follow(held, stages=_BUSY):
            yield paging.apply_history_length(event, params.configuration) if isinstance(event, types.Task) else event

    async def on_subscribe_to_task(self, params: types.SubscribeToTaskRequest, context: Context) -> Events:
        """Yield a task and its changes until it ends, or the caller may not read it any more."""
        held = await self._read(params, context)
        if held.stage == FINISHED:
            raise errors.UnsupportedOperationError("The task is finished; read it with GetTask.")
        caller = _caller(context)
        async for event in self._tasks.follow(held, stages=_OPEN):
            # The request itself was admitted, and its answer begins with the task.
            if not isinstance(event, types.Task) and not caller.is_admitted:
                return
            yield event

    @_guarded
    async def on_get_task(self, params: types.GetTaskRequest, context: Context) -> types.Task:
        paging.validate_history_length(params)
        return paging.apply_history_length((await self._calls.look(await self._read(params, context))).task, params)

    @_guarded
    async def on_cancel_task(self, params: types.CancelTaskRequest, context: Context) -> types.Task:
        return (await self._tasks.cancel(await self._read(params, context))).task

    @_guarded
    async def on_list_tasks(self, params: types.ListTasksRequest, context: Context) -> types.ListTasksResponse:
        """Return tasks of the caller, the last changed first."""
        paging.validate_history_length(params)
        if params.HasField("page_size"):
            paging.validate_page_size(params.page_size)
        caller = _caller(context)
        if not caller.is_known:
            # Callers behind one address are not the same.
            raise caller.refuse(unauthorized("agent-id-missing", "Only identified agents can list their tasks."))
        if len(params.context_id) > LONGEST_ID or not params.context_id.isprintable():
            raise errors.InvalidParamsError(f"contextId must be at most {LONGEST_ID} printable characters.")
        if not _is_state(caller.status):
            raise errors.InvalidParamsError(f"status must be one of {', '.join(types.TaskState.keys())}.")
        size = params.page_size or _PAGE
        wanted: dict[str, Any] = {"context_id": params.context_id or None, "status": params.status or None}
        if params.HasField("status_timestamp_after"):
            wanted["since"] = params.status_timestamp_after.ToNanoseconds() / 1e9
        if params.page_token:
            cursor = paging.decode_list_tasks_cursor(params.page_token)
            if cursor is None:
                raise errors.InvalidParamsError("The page token is not one that this agent has given.")
            wanted["after"] = ((cursor.timestamp_ns or 0) / 1e9, cursor.task_id)
        total, found = await self._tasks.list(caller.owner, size + 1, **wanted)
        shown: list[types.Task] = []
        room = _MOST_LISTED
        for held in found[:size]:
            task = paging.apply_history_length(held.task, params)
            if not params.include_artifacts:
                task.ClearField("artifacts")
            room -= task.ByteSize()
            if shown and room < 0:
                break
            shown.append(task)
        more = ""
        if len(found) > len(shown):
            last = shown[-1]
            cursor = paging.ListTasksCursor(last.status.timestamp.ToNanoseconds(), last.id)
            more = paging.encode_list_tasks_cursor(cursor)
        return types.ListTasksResponse(tasks=shown, next_page_token=more, page_size=size, total_size=total)

    async def on_get_extended_agent_card(
        self, params: types.GetExtendedAgentCardRequest, context: Context
    ) -> types.AgentCard:
        """Return the card for identified agents, if the public one has less."""
        card = self._cards()
        if card is None:
            raise errors.UnsupportedOperationError("The public agent card has everything.")
        return parse_lenient(dict(card), types.AgentCard())

    async def _refuse_push(self, params: Any, context: Context) -> Any:
        """Refuse: a server that calls the URLs of its callers can be sent anywhere."""
        raise errors.PushNotificationNotSupportedError(NO_PUSH)

    on_create_task_push_notification_config = on_get_task_push_notification_config = _refuse_push
    on_list_task_push_notification_configs = on_delete_task_push_notification_config = _refuse_push

    @_guarded
    async def _begin(self, params: types.SendMessageRequest, context: Context) -> types.Message | Held:
        validate_proto_required_fields(params)
        paging.validate_history_length(params.configuration)
        return await self._calls.send(params, _caller(context))

    @_guarded
    async def _read(self, params: Any, context: Context) -> Held:
        validate_proto_required_fields(params)
        held = await self._tasks.read(_caller(context).owner, params.id)
        if held is None:
            raise errors.TaskNotFoundError
        return await self._calls.resume(held, _caller(context))


def _is_state(status: Any) -> bool:
    """Return True for the name or the number of a state of tasks, and for none."""
    known = types.TaskState.items()
    if isinstance(status, str):
        return any(status == name for name, _ in known)
    return status is None or (type(status) is int and any(status == number for _, number in known))


def _caller(context: Context) -> Caller:
    caller: Caller = context.state[CALLER]
    return caller


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
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # or two readers would differ
            fault = {"code": -32700, "message": f"The body is not valid JSON: {error}."}
            told = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": fault})
            lines = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(told))]
            return HttpResponse(200, lines, told)
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
        wanted = read_call(caller.parts)
        if str(asked.get("method")) in _SENDING and isinstance(wanted, SkillCall) and not caller.is_known:
            # An anonymous caller cannot own a task that waits for its authority.
            skill = (await self._calls.skills()).get(wanted.skill or "")
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


def _member(asked: Any, *path: str) -> Any:
    for name in path:
        asked = asked.get(name) if isinstance(asked, dict) else None
    return asked
