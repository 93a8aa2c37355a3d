"""Calls of skills: begun by a message, continued by another, and carried out through the gates of the service."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from a2a.types import Message, Role, SendMessageRequest, Task, TaskState
from a2a.utils import errors

from bespeak.contract.confirmation import LONGEST, ListedCall, question, too_long_to_show, unlisted
from bespeak.faces.a2a import tasks
from bespeak.faces.a2a.skills import FORM, Misread, Skill, SkillCall, Skills, read_call
from bespeak.faces.a2a.tasks import LONGEST_ID, Held, SkillTasks, TaskChange
from bespeak.faces.asking import Asking
from bespeak.faces.http.dispatched import DispatchBackend
from bespeak.faces.progress import Progress
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.runtime.call import Call, parties_of
from bespeak.runtime.extension import CANCELLED
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.registration import BODY_KEYS
from bespeak.runtime.route_table import RouteTable
from bespeak.state.store.commands.a2a_tasks import WAITING, WORKING
from bespeak.state.store.commands.cases import ACCEPTED, REJECTED, Case


class CallRefusedError(errors.A2AError):
    """A refusal that HTTP has a status for."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message, {"code": refused.code})
        self.refused = refused


@dataclass(slots=True)
class Caller:
    """Who sends a request, and what it is to be told besides the answer."""

    request: Any  # HTTP request, whose scope has the credentials
    call: Call  # the call that the gates of arrival have admitted
    parts: Sequence[Any] = field(default_factory=tuple)  # of the message; in the SDK's own, all numbers are doubles
    status: Any = None  # status of the tasks to list, as it was sent: the SDK leaves out one that it does not know
    refused: Refused | None = None  # refusal that HTTP has a status for
    lacking: tuple[str, ...] = ()  # scopes that the call of a task needs and the caller does not have

    @property
    def is_known(self) -> bool:
        return self.call.agent_id is not None

    @property
    def is_admitted(self) -> bool:
        """True if the caller may still read what is its own: its credential has not ended, and it is active."""
        authority = Authority.of(self.call.principal, self.call.request)
        return not self.is_known or not isinstance(authority.judge(self.call.server.principals), Refused)

    @property
    def owner(self) -> str:
        """Owner of the caller's tasks: the agent, or the address of an anonymous one."""
        return self.call.agent_id or f"anonymous {self.call.request.connection.address}"

    def refuse(self, refused: Refused) -> CallRefusedError:
        self.refused = refused
        return CallRefusedError(refused)


_AGAIN: Final = 1.0  # seconds after which a call is repeated whose key a process still holds that is gone
_LONGEST_CALL: Final = 256 * 1024  # maximum characters of a call that a task keeps for a later message to continue
_UNDONE: Final = "Canceled. What the call had done is undone, as far as it can be; its output tells."
_THEN: Final = "send a message with this taskId"
_ACCEPTED: Final = f"A person has accepted this call. To make it, {_THEN}."
_LOST: Final = "The server stopped while the call ran. What it began goes on; CHECK tells its state by this task's id."
_REJECTED: Final = "A person has rejected this call. It was not made."
NO_PUSH: Final = "This agent sends no push notifications; poll the task with GetTask, or subscribe to it."
_encode = msgspec.json.Encoder().encode
Content = SkillCall | str  # what a message brings


class _TaskCall(msgspec.Struct, omit_defaults=True):
    skill: str
    input: dict[str, Any]
    case: str | None = None  # id of its confirmation
    accepted: bool = False  # True if the caller was told that a person has accepted it
    as_text: bool = False  # True if the caller takes its output as a text only


_decode = msgspec.json.Decoder(_TaskCall).decode


@dataclass(slots=True)
class _CallAttempt:
    caller: Caller
    skill: Skill
    task: Task
    arguments: dict[str, Any]
    case_id: str | None = None  # confirmation that was asked for
    case: Case | None = None  # confirmation that admits the call
    as_text: bool = False

    @property
    def change(self) -> TaskChange:
        call = _TaskCall(self.skill.name, self.arguments, self.case_id, as_text=self.as_text)
        text = _encode(call).decode()
        return TaskChange(self.task, text if len(text) <= _LONGEST_CALL else None)


class SkillCalls:
    def __init__(self, backend: DispatchBackend, asking: Asking, tasks: SkillTasks) -> None:
        self._backend = backend
        self._asking = asking
        self._tasks = tasks
        self._skills = Skills(())
        self._endpoints: Any = None
        self._own: WeakKeyDictionary[RouteTable, Skills] = WeakKeyDictionary()  # of callers with endpoints of their own

    async def skills(self, caller: Caller | None = None) -> Skills:
        """Return the skills of the current route table, as they exist for everyone or for a caller."""
        table = None if caller is None else self._backend.own_table(caller.call.principal)
        if table is not None:
            if table not in self._own:
                self._own[table] = Skills(table.every)
            return self._own[table]
        endpoints = await self._backend.endpoints()
        if endpoints is not self._endpoints:
            self._skills, self._endpoints = Skills(endpoints), endpoints
        return self._skills

    async def send(self, params: SendMessageRequest, caller: Caller) -> Message | Held:
        """Carry out a message: return the task it begins or continues, or the answer to one that calls nothing."""
        message = params.message
        _check(params)
        told = read_call(caller.parts)
        if isinstance(told, Misread):
            wrong = errors.ContentTypeNotSupportedError if told.is_file else errors.InvalidParamsError
            raise wrong(told.message)
        held = await self._tasks.find(caller.owner, message)
        repeated = held is not None
        if held is None and message.task_id:
            held = await self._tasks.read(caller.owner, message.task_id)
            if held is None:
                raise errors.TaskNotFoundError
            if message.context_id and message.context_id != held.task.context_id:
                raise errors.InvalidParamsError("The contextId is not that of the task; leave it out.")
        as_text = _wants_text(params)
        if held is None:
            return await self._begin(message, told, caller, as_text)
        if held.stage == WAITING:
            return await self._continue(held, message, told, caller, as_text, repeated=repeated)
        if repeated:
            return await self.resume(held, caller)
        state = TaskState.Name(held.task.status.state)
        advice = "wait for its end" if held.stage == WORKING else "send a message without taskId for another call"
        raise errors.UnsupportedOperationError(f"The task takes no messages in {state}; {advice}.")

    async def resume(self, held: Held, caller: Caller) -> Held:
        """Take up a task whose process is gone and whose work goes on: its owner makes the same call again."""
        if held.stage != WORKING or not held.stored.lapsed:
            return held
        kept = None if held.stored.call is None else _decode(held.stored.call)
        skill = None if kept is None else (await self.skills(caller)).get(kept.skill)
        task = deepcopy(held.task)
        if kept is None or skill is None:
            tasks.tell(task, TaskState.TASK_STATE_FAILED, _LOST)
            return await self._tasks.change(held, TaskChange(task, None)) or await self._tasks.reread(held)
        return await self._go_on(held, _CallAttempt(caller, skill, task, kept.input, kept.case, as_text=kept.as_text))

    async def _go_on(self, held: Held, attempt: _CallAttempt, message: Message | None = None) -> Held:
        changed = await self._tasks.change(held, attempt.change, message)
        if changed is None:  # another process or message was faster
            return await self._tasks.reread(held)
        self._run(changed, attempt)
        return changed

    async def look(self, held: Held) -> Held:
        """Return a task with what has become of its confirmation, for callers that poll it."""
        kept = _decode(held.stored.call) if held.stage == WAITING and held.stored.call is not None else None
        case = None if kept is None or kept.case is None or kept.accepted else await self._asking.find(kept.case)
        if kept is None or case is None or case.state not in (ACCEPTED, REJECTED):
            return held
        task = deepcopy(held.task)
        kept.accepted = case.state == ACCEPTED
        state = TaskState.TASK_STATE_AUTH_REQUIRED if kept.accepted else TaskState.TASK_STATE_REJECTED
        tasks.tell(task, state, _ACCEPTED if kept.accepted else _REJECTED)
        return await self._tasks.change(held, TaskChange(task, _encode(kept).decode())) or held

    async def _begin(self, message: Message, told: Content, caller: Caller, as_text: bool) -> Message | Held:
        skills = await self.skills(caller)
        if isinstance(told, str):
            return _suggest(skills, message, told)
        skill = _named(skills, told.skill)
        attempt = _CallAttempt(caller, skill, tasks.new_task(message, skill), told.arguments, as_text=as_text)
        await self._judge(attempt)
        change = attempt.change
        held = await self._tasks.open(caller.owner, message, change)
        if isinstance(held, Refused):
            raise caller.refuse(held)
        if held.task is change.task:
            self._run(held, attempt)
        return held

    async def _continue(
        self, held: Held, message: Message, told: Content, caller: Caller, as_text: bool, *, repeated: bool
    ) -> Held:
        """Try a waiting task again: with what the message brings, else with the call that it is for."""
        kept = None if held.stored.call is None else _decode(held.stored.call)
        if isinstance(told, str) and kept is None:
            raise errors.InvalidParamsError(f"The call is too long to be kept; send its data part again: {FORM}.")
        name = told.skill if isinstance(told, SkillCall) and told.skill is not None else held.task.metadata["skill"]
        skill = _named(await self.skills(caller), name)
        task = deepcopy(held.task)
        task.metadata.update({"skill": skill.name})
        if not repeated:
            tasks.remember(task, message)
        arguments = told.arguments if isinstance(told, SkillCall) else kept.input if kept is not None else {}
        same = kept is not None and (kept.skill, kept.input) == (skill.name, arguments)
        case_id = kept.case if kept is not None and same else None
        attempt = _CallAttempt(caller, skill, task, arguments, case_id, as_text=as_text)
        await self._judge(attempt)
        return await self._go_on(held, attempt, None if repeated else message)

    async def _judge(self, attempt: _CallAttempt) -> None:
        """Set the state of a task: working if its call can be made, else what is missing."""
        caller, skill, task = attempt.caller, attempt.skill, attempt.task
        if (lacking := self._backend.refuse(skill.endpoint, caller.request)) is not None:
            caller.lacking = skill.endpoint.required_scopes
            await self._backend.record(skill.endpoint, caller.request, lacking)
            tasks.refuse(task, skill, lacking)
            return
        checked: Outcome | dict[str, Any] | None = skill.check(attempt.arguments)
        if isinstance(checked, dict):
            attempt.arguments = checked
            checked = self._backend.refuse(skill.endpoint, caller.request, checked)
        if (wrong := checked) is not None:
            await self._backend.record(skill.endpoint, caller.request, wrong)
            tasks.require_input(task, skill, wrong)
            return
        if (limited := self._backend.limit(skill.endpoint, caller.request)) is not None:
            raise caller.refuse(limited)
        if self._backend.asks_person(skill.endpoint):
            await self._confirm(attempt)
        else:
            tasks.tell(task, TaskState.TASK_STATE_WORKING)

    async def _confirm(self, attempt: _CallAttempt) -> None:
        caller, skill, task = attempt.caller, attempt.skill, attempt.task
        known = None if attempt.case_id is None else await self._asking.find(attempt.case_id)
        if known is not None and known.state == REJECTED:
            tasks.tell(task, TaskState.TASK_STATE_REJECTED, _REJECTED)
            return
        calls = await self._backend.calls(skill.endpoint, attempt.arguments, caller.request)
        if isinstance(calls, Fault):
            tasks.refuse(task, skill, refused(unlisted(skill.name, calls)))
            return
        case = await self._asking.open(skill, attempt.arguments, caller.owner, parties_of(caller.call), calls)
        if isinstance(case, Outcome):
            tasks.refuse(task, skill, case)
            return
        attempt.case_id = case.case_id
        if case.state == ACCEPTED:
            attempt.case = case
            tasks.tell(task, TaskState.TASK_STATE_WORKING)
        else:
            command = self._asking.remedy(case.case_id, _THEN)
            tasks.require_confirmation(task, _question(attempt, calls), command, case.case_id)

    def _run(self, held: Held, attempt: _CallAttempt) -> None:
        if held.stage == WORKING:
            self._tasks.run(held, lambda: self._work(held, attempt))

    async def _work(self, held: Held, attempt: _CallAttempt) -> TaskChange:
        running = deepcopy(attempt.task)

        async def report_progress(done: float, total: float | None, message: str | None) -> None:
            shown = deepcopy(running)
            tasks.tell_progress(shown, done, total, message)
            self._tasks.report(running.id, shown)

        async def report_items(items: list[bytes]) -> None:
            tasks.add_items(running, items, as_text=attempt.as_text)
            self._tasks.report(running.id, deepcopy(running))

        async with Progress(report_progress, report_items, patience=math.inf):
            outcome = await self._call(attempt)
        task = attempt.task = deepcopy(attempt.task)
        case_id = outcome.confirmation_id
        ended = outcome.status == status.ACCEPTED or outcome.error.get("code", "").endswith("-cancelled")
        run = await self._tasks.find_run(held) if ended else None
        if outcome.ok:
            tasks.complete(task, outcome, as_text=attempt.as_text)
        if run is not None and run.state == CANCELLED:
            stays = outcome.error.get("code") == "job-cancelled"
            told = (outcome.error["message"], {"error": outcome.error}) if stays else (_UNDONE,)
            tasks.tell(task, TaskState.TASK_STATE_CANCELED, *told)
        elif case_id is not None:
            attempt.case_id = case_id
            command = self._asking.remedy(case_id, _THEN)
            calls = await self._backend.calls(attempt.skill.endpoint, attempt.arguments, attempt.caller.request)
            shown = () if isinstance(calls, Fault) else calls
            tasks.require_confirmation(task, _question(attempt, shown), command, case_id)
        elif not outcome.ok:
            tasks.refuse(task, attempt.skill, outcome)
        return attempt.change

    async def _call(self, attempt: _CallAttempt) -> Outcome:
        skill, request = attempt.skill, attempt.caller.request
        if attempt.case is not None:
            unusable = await self._asking.use(attempt.case, parties_of(attempt.caller.call))
            if unusable is not None:
                return unusable
        # One task makes one call, however often its messages are repeated. Some methods take the caller's own key.
        own = skill.endpoint.method in BODY_KEYS and "idempotency_key" in attempt.arguments
        headers = {} if own else {"Idempotency-Key": f"a2a-{attempt.task.id}"}
        if attempt.case is None and attempt.case_id is not None:
            headers["Confirmation-ID"] = attempt.case_id
        if names.TASK_ID not in attempt.caller.call.request.headers:
            headers[names.TASK_ID] = attempt.task.id
        call = partial(self._backend.call_counted, skill.endpoint, attempt.arguments, headers, request)
        outcome = await call()
        while outcome.error.get("code") == "idempotency-key-in-progress":  # of the process that is gone
            await asyncio.sleep(_AGAIN)
            outcome = await call()
        if outcome.error.get("confirmation_status") == ACCEPTED and "Confirmation-ID" not in headers:
            headers["Confirmation-ID"] = outcome.error["confirmation_id"]
            return await call()
        return outcome


def _question(attempt: _CallAttempt, calls: tuple[ListedCall, ...]) -> str:
    """Return the question about a call. One that is too long is read where the case is decided."""
    text = question(attempt.skill, attempt.arguments, calls)
    if len(text) <= LONGEST:
        return text
    return f"{too_long_to_show(attempt.skill, text, '').message} `bespeak cases show {attempt.case_id}` has all of it."


def _check(params: SendMessageRequest) -> None:
    message = params.message
    if params.configuration.HasField("task_push_notification_config"):
        raise errors.PushNotificationNotSupportedError(NO_PUSH)
    if message.role != Role.ROLE_USER:
        raise errors.InvalidParamsError("The role of a message to an agent is ROLE_USER.")
    for name in ("message_id", "context_id", "task_id"):
        value = getattr(message, name)
        if len(value) > LONGEST_ID or not value.isprintable():
            raise errors.InvalidParamsError(f"{name} must be at most {LONGEST_ID} printable characters.")


def _named(skills: Skills, name: str | None) -> Skill:
    if name is None:
        raise errors.InvalidParamsError(f"The data part does not name a skill: {FORM}.")
    skill = skills.get(name)
    if skill is None:
        known = ", ".join(each.name for each in skills.suggest(name.replace("_", " ")))
        message = f"There is no skill {name[:80]!r}. The agent card has all of them; perhaps: {known}."
        raise errors.InvalidParamsError(message)
    return skill


def _suggest(skills: Skills, message: Message, text: str) -> Message:
    """Answer a text. It is never carried out: what it means would be a guess."""
    found = skills.suggest(text)
    names = ", ".join(skill.name for skill in found)
    words = f"Texts are not carried out. Send a data part that names a skill: {FORM}. Skills that may fit: {names}."
    data = {"dataPart": FORM, "skills": [skill.entry for skill in found]}
    return tasks.agent_message(message.context_id or str(uuid.uuid4()), words, data)


def _wants_text(params: SendMessageRequest) -> bool:
    modes = [mode.partition(";")[0].strip().lower() for mode in params.configuration.accepted_output_modes]
    return (
        bool(modes)
        and not {"application/json", "application/*", "*/*"} & set(modes)
        and any(mode.startswith("text") for mode in modes)
    )
