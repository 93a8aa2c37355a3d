"""The methods of A2A: messages that call skills, and the tasks of their callers."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import parse_lenient, validate_proto_required_fields
from a2a.utils.task import (
    ListTasksCursor,
    apply_history_length,
    decode_list_tasks_cursor,
    encode_list_tasks_cursor,
    validate_history_length,
    validate_page_size,
)

from bespeak.errors import StoreError
from bespeak.faces.a2a.calls import Caller, SkillCalls
from bespeak.faces.a2a.tasks import LONGEST_ID, Held, Tasks
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused, unauthorized
from bespeak.state.store.commands.a2a_tasks import FINISHED, WAITING, WORKING
from bespeak.state.store.store import level_of

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
_NO_PUSH: Final = "This agent sends no push notifications; poll the task with GetTask, or subscribe to it."

Result = TypeVar("Result")
Cards = Callable[[], Mapping[str, Any] | None]
"""Returns the card for identified agents; None if the public one has everything."""


class SkillHandler(RequestHandler):
    """Answers the methods of A2A, whatever version they are called in."""

    def __init__(self, calls: SkillCalls, tasks: Tasks, cards: Cards) -> None:
        self._calls = calls
        self._tasks = tasks
        self._cards = cards

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """Carry out a message, and wait for the end of its call unless the caller does not want to."""
        return await _guarded(self._send(params, context), context)

    async def _send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        held = await self._begin(params, context)
        if isinstance(held, Message):
            return held
        if not params.configuration.return_immediately:
            held = await self._tasks.settle(held)
        return apply_history_length(held.task, params.configuration)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any, None]:
        """Carry out a message, and yield its task with every change until it ends or waits."""
        held = await _guarded(self._begin(params, context), context)
        if isinstance(held, Message):
            yield held
            return
        async for event in self._tasks.follow(held, stages=_BUSY):
            yield apply_history_length(event, params.configuration) if isinstance(event, Task) else event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Any, None]:
        """Yield a task and its changes until it ends, or the caller may not read it any more."""
        held = await _guarded(self._read(params, context), context)
        if held.stage == FINISHED:
            raise UnsupportedOperationError("The task is finished; read it with GetTask.")
        caller = _caller(context)
        async for event in self._tasks.follow(held, stages=_OPEN):
            # The request itself was admitted, and its answer begins with the task.
            if not isinstance(event, Task) and not caller.is_admitted:
                return
            yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task:
        """Return a task of the caller."""
        validate_history_length(params)

        async def look() -> Held:
            return await self._calls.look(await self._read(params, context))

        return apply_history_length((await _guarded(look(), context)).task, params)

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task:
        """Cancel a task of the caller."""

        async def cancel() -> Task:
            return (await self._tasks.cancel(await self._read(params, context))).task

        return await _guarded(cancel(), context)

    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return tasks of the caller, the last changed first."""
        validate_history_length(params)
        if params.HasField("page_size"):
            validate_page_size(params.page_size)
        return await _guarded(self._list(params, context), context)

    async def _list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        caller = _caller(context)
        if not caller.is_known:
            # Callers behind one address are not the same.
            raise caller.refuse(unauthorized("agent-id-missing", "Only identified agents can list their tasks."))
        if len(params.context_id) > LONGEST_ID or not params.context_id.isprintable():
            raise InvalidParamsError(f"contextId must be at most {LONGEST_ID} printable characters.")
        if not _is_state(caller.status):
            raise InvalidParamsError(f"status must be one of {', '.join(TaskState.keys())}.")
        size = params.page_size or _PAGE
        wanted: dict[str, Any] = {"context_id": params.context_id or None, "status": params.status or None}
        if params.HasField("status_timestamp_after"):
            wanted["since"] = params.status_timestamp_after.ToNanoseconds() / 1e9
        if params.page_token:
            cursor = decode_list_tasks_cursor(params.page_token)
            if cursor is None:
                raise InvalidParamsError("The page token is not one that this agent has given.")
            wanted["after"] = ((cursor.timestamp_ns or 0) / 1e9, cursor.task_id)
        total, found = await self._tasks.list(caller.owner, size + 1, **wanted)
        shown: list[Task] = []
        room = _MOST_LISTED
        for held in found[:size]:
            task = apply_history_length(held.task, params)
            if not params.include_artifacts:
                task.ClearField("artifacts")
            room -= task.ByteSize()
            if shown and room < 0:
                break
            shown.append(task)
        more = ""
        if len(found) > len(shown):
            last = shown[-1]
            more = encode_list_tasks_cursor(ListTasksCursor(last.status.timestamp.ToNanoseconds(), last.id))
        return ListTasksResponse(tasks=shown, next_page_token=more, page_size=size, total_size=total)

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Return the card for identified agents, if the public one has less."""
        card = self._cards()
        if card is None:
            raise UnsupportedOperationError("The public agent card has everything.")
        return parse_lenient(dict(card), AgentCard())

    async def on_create_task_push_notification_config(self, params: Any, context: ServerCallContext) -> Any:
        """Refuse: a server that calls the URLs of its callers can be sent anywhere."""
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def on_get_task_push_notification_config(self, params: Any, context: ServerCallContext) -> Any:
        """Refuse: there are none."""
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def on_list_task_push_notification_configs(self, params: Any, context: ServerCallContext) -> Any:
        """Refuse: there are none."""
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def on_delete_task_push_notification_config(self, params: Any, context: ServerCallContext) -> None:
        """Refuse: there are none."""
        raise PushNotificationNotSupportedError(_NO_PUSH)

    async def _begin(self, params: SendMessageRequest, context: ServerCallContext) -> Message | Held:
        validate_proto_required_fields(params)
        validate_history_length(params.configuration)
        return await self._calls.send(params, _caller(context))

    async def _read(self, params: Any, context: ServerCallContext) -> Held:
        validate_proto_required_fields(params)
        held = await self._tasks.read(_caller(context).owner, params.id)
        if held is None:
            raise TaskNotFoundError
        return held


def _is_state(status: Any) -> bool:
    """Return True for the name or the number of a state of tasks, and for none."""
    known = TaskState.items()
    if isinstance(status, str):
        return any(status == name for name, _ in known)
    return status is None or (type(status) is int and any(status == number for _, number in known))


def _caller(context: ServerCallContext) -> Caller:
    caller: Caller = context.state[CALLER]
    return caller


async def _guarded(work: Awaitable[Result], context: ServerCallContext) -> Result:
    """Await a result. What goes wrong inside is logged here: the SDK would send its text to the caller."""
    try:
        return await work
    except A2AError:
        raise
    except StoreError as error:
        _logger.log(level_of(error), "the store cannot be reached: %s", error)
        raise _caller(context).refuse(_UNAVAILABLE) from None
    except Exception as error:
        _logger.error("A method of A2A failed", exc_info=error)
        raise InternalError("The service failed; the operator's log has the reason.") from None
