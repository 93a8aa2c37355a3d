"""The tasks of an agent: kept in the store, worked on in this process, and followed from any.

A process holds a lease on the tasks it works on. The task of a process that was killed is told to have failed as
soon as its lease is over, unless its call has begun a workflow or a job, which goes on: then it is taken up again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec
from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.types import Artifact, Message, Part, Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from a2a.utils.errors import InvalidParamsError, TaskNotCancelableError, TaskNotFoundError
from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]  # protobuf has no annotations

from bespeak.contract.mcp_tool import Granting, error_members
from bespeak.contract.schema.validation import is_within
from bespeak.errors import StoreError
from bespeak.faces.a2a.skills import Skill, write_large
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_JSON
from bespeak.protocol.exchange.refusal import Outcome, Refused
from bespeak.runtime.concurrency import cancel_tasks, wait_at_most
from bespeak.runtime.server import Server
from bespeak.state.store.commands import a2a_tasks
from bespeak.state.store.commands.a2a_tasks import FINISHED, WAITING, WORKING
from bespeak.state.store.commands.idempotency import FindKey, RecordKey
from bespeak.state.store.commands.records import FindNamed, Record
from bespeak.state.store.store import Conflict, Store, level_of

WAITING_STATES: Final = frozenset({TaskState.TASK_STATE_AUTH_REQUIRED, TaskState.TASK_STATE_INPUT_REQUIRED})
MOST_KEPT: Final = 256 * 1024  # bytes of a task in the store; a larger output is only sent to the caller that waits
_MOST_VALUES: Final = 10_000  # In a data part: Protobuf needs 10 µs for each, so a larger output is a text.
_LACKING: Final = frozenset({status.AUTHORIZATION_REQUIRED, status.UNAUTHORIZED, status.SCOPE_VIOLATION})
"""Statuses after which nothing was done, and the same call may succeed with other authority."""
_GRANTING: Final = Granting(
    scopes=lambda _: "then send a message with this taskId", identity="then send a message with this taskId"
)


def new_task(message: Message, skill: Skill) -> Task:
    task = Task(id=str(uuid.uuid4()), context_id=message.context_id or str(uuid.uuid4()))
    task.metadata.update({"skill": skill.name})
    remember(task, message)
    return task


def remember(task: Task, message: Message) -> None:
    """Append a message to the history of a task, unless it is too long."""
    if message.ByteSize() <= 64 * 1024:
        added = task.history.add()
        added.CopyFrom(message)
        added.task_id, added.context_id = task.id, task.context_id
        del task.history[:-20]


def tell(task: Task, state: TaskState, text: str = "", data: Any = None) -> None:
    """Set the status of a task. The message of the last one becomes history."""
    if task.status.HasField("message"):
        remember(task, task.status.message)
    task.status.Clear()
    task.status.state = state
    task.status.timestamp.GetCurrentTime()
    if text:
        task.status.message.CopyFrom(agent_message(task.context_id, text, data, task_id=task.id))


def tell_progress(task: Task, done: float, total: float | None, message: str | None) -> None:
    amount = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    news = {"done": done, **({} if total is None else {"total": total}), **({"message": message} if message else {})}
    tell(task, TaskState.TASK_STATE_WORKING, ": ".join(filter(None, (amount, message))), {"progress": news})


def agent_message(context_id: str, text: str, data: Any = None, *, task_id: str = "") -> Message:
    """Make a message of the agent: words, and data if there are any."""
    parts = [new_text_part(text)]
    if data is not None:
        parts.append(_data_part(data))
    return Message(
        message_id=str(uuid.uuid4()), context_id=context_id, task_id=task_id, role=Role.ROLE_AGENT, parts=parts
    )


def stage_of(task: Task) -> str:
    if task.status.state in WAITING_STATES:
        return WAITING
    return WORKING if task.status.state == TaskState.TASK_STATE_WORKING else FINISHED


def add_items(task: Task, items: list[bytes], *, as_text: bool) -> None:
    """Add items to the output of a call that is not complete; the complete output replaces them."""
    if not task.artifacts:
        task.artifacts.append(Artifact(artifact_id="output", name="output"))
    write = _text_part if as_text else _data_part
    task.artifacts[0].parts.extend(write(msgspec.json.decode(item)) for item in items)


def complete(task: Task, outcome: Outcome, *, as_text: bool) -> None:
    _note_mapping(task, outcome)
    output = outcome.output
    part = _text_part(output) if as_text or isinstance(output, str) else _data_part(output)
    task.artifacts.append(Artifact(artifact_id="output", name="output", parts=[part]))
    tell(task, TaskState.TASK_STATE_COMPLETED, outcome.warning or "")


def refuse(task: Task, skill: Skill, outcome: Outcome) -> None:
    """Tell that a call was refused or failed, and what can be done about it."""
    _note_mapping(task, outcome)
    error = error_members(skill.endpoint, outcome, _GRANTING)
    ended = TaskState.TASK_STATE_FAILED if outcome.status >= status.SERVER_ERROR else TaskState.TASK_STATE_REJECTED
    state = TaskState.TASK_STATE_AUTH_REQUIRED if outcome.status in _LACKING else ended
    tell(task, state, _words(error), {"error": error})


def _note_mapping(task: Task, outcome: Outcome) -> None:
    if outcome.mapping is not None:
        task.metadata.update({"semantic_mapping": outcome.mapping})


def require_input(task: Task, skill: Skill, outcome: Outcome) -> None:
    """Tell what is wrong with the arguments; the caller can send others."""
    error = error_members(skill.endpoint, outcome, _GRANTING)
    text = f'{_words(error)} Send a message with this taskId and a data part {{"input": {{...}}}}.'
    tell(task, TaskState.TASK_STATE_INPUT_REQUIRED, text, {"error": error, "skill": skill.entry})


def require_confirmation(task: Task, question: str, command: str, case_id: str) -> None:
    """Ask for a person's confirmation, which no message can give (A2A 1.0, 7.6)."""
    error = {
        "code": "confirmation-required",
        "message": "A person must confirm this call. No message of a client confirms it.",
        "confirmation_id": case_id,
        "remedy": command,
    }
    tell(task, TaskState.TASK_STATE_AUTH_REQUIRED, f"{question}\n\n{error['message']} {command}", {"error": error})


def bounded(task: Task) -> Task:
    """Return the task as it is kept: without an output that is too large."""
    if task.ByteSize() <= MOST_KEPT:
        return task
    kept = deepcopy(task)
    kept.ClearField("artifacts")
    text = f"The output is larger than {MOST_KEPT // 1024} KiB. It was sent to the caller that waited, and is not kept."
    tell(kept, task.status.state, text)
    return kept


def _words(error: Mapping[str, Any]) -> str:
    return " ".join(str(error[name]) for name in ("message", "remedy") if error.get(name))


def _data_part(value: Any) -> Part:
    if not is_within(value, parts=_MOST_VALUES, characters=MOST_KEPT):
        return _text_part(value)
    try:
        return new_data_part(write_large(value), MEDIA_JSON)
    except ParseError:  # nested deeper than protobuf reads
        return _text_part(value)


def _text_part(value: Any) -> Part:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return new_text_part(text, None if isinstance(value, str) else MEDIA_JSON)


_logger = logging.getLogger(__name__)
LEASE: Final = 30.0  # seconds after which the task of a process that was killed counts as interrupted
MOST_RUNNING: Final = 1000  # maximum number of calls that run in one process, whether somebody waits for them or not
LONGEST_ID: Final = 256  # maximum characters of an id; all of them must be printable
_LOOK: Final = 5.0  # seconds after which a task that runs elsewhere is looked at without a notice
_PATIENCE: Final = 10.0  # seconds for which a cancellation is awaited
_INTERRUPTED: Final = (
    "The server stopped while the call ran. Whether it was carried out is not known: find out before you call again."
)
_CANCELED: Final = "Canceled. What the call had done until then may remain."
_UNCALLED: Final = "Canceled before the call was made."
_FAILED: Final = "The service failed; the operator's log has the reason."
Work = Callable[[], Coroutine[Any, Any, "TaskChange"]]  # carries out the call of a task; returns the task afterwards


@dataclass(frozen=True, slots=True)
class TaskChange:
    task: Task
    call: str | None  # JSON of the call that the task is for


@dataclass(frozen=True, slots=True)
class Held:
    stored: a2a_tasks.A2aTask
    task: Task  # the whole task; an output that is too large to be kept is only here
    owner: str
    news: int = 0  # Number of reports of progress since the task was stored. They are not stored.

    @property
    def stage(self) -> str:
        """State of the task, as the store sees it."""
        return self.stored.state


@dataclass(slots=True)
class _Running:
    held: Held
    call: asyncio.Task[TaskChange]  # the work itself; it may be cancelled at any time, even before its first step
    work: asyncio.Task[None]  # Task that awaits the call and stores its end. It is never cancelled.
    canceled: bool = False


class SkillTasks:
    """The tasks of one process, and a view of all others in the store."""

    def __init__(self, store: Store, *, retention: float, most: int, server: Server | None = None) -> None:
        """Keep tasks in `store` for `retention` seconds after their last change, at most `most` of one owner."""
        self._store = store
        self._server = server  # whose calls may begin workflows and jobs; None if they cannot
        self._retention = retention
        self._most = most
        self._running: dict[str, _Running] = {}
        self._waiting: set[asyncio.Event] = set()
        self._renewing: asyncio.Task[None] | None = None
        self._renew_now = asyncio.Event()

    async def start(self) -> None:
        """Follow the store. Work of an earlier process with the same store is over."""
        self._store.watch(a2a_tasks.TOPIC, self._wake)
        self._store.watch(a2a_tasks.CANCELS, self._renew_now.set)
        if self._store.sole:
            await self._store.do(a2a_tasks.AbandonTasks())
        self._renewing = asyncio.create_task(self._renew())

    async def stop(self) -> None:
        """Stop all work; the tasks are told to be interrupted."""
        works = [running.work for running in self._running.values()]
        for running in self._running.values():
            running.call.cancel()
        await cancel_tasks(self._renewing)
        await asyncio.gather(*works, return_exceptions=True)

    async def find(self, owner: str, message: Message) -> Held | None:
        """Find the task of a message that was sent before."""
        scope, key, digest = _identify(owner, message)
        found = await self._store.read(FindKey(scope, key))
        if found is None:
            return None
        if found.request_hash != digest:
            raise InvalidParamsError("This messageId was used for another message; give each message its own.")
        held = await self.read(owner, found.answer.decode())
        if held is None:
            raise TaskNotFoundError("The task of this message is no longer kept; send it with a new messageId.")
        return held

    async def read(self, owner: str, task_id: str) -> Held | None:
        """Read a task of an owner. One whose process is gone has failed."""
        if len(task_id) > LONGEST_ID or not task_id.isprintable():
            return None
        running = self._running.get(task_id)
        if running is not None and running.held.owner == owner:
            return running.held
        stored: a2a_tasks.A2aTask | None = await self._store.read(a2a_tasks.ReadTask(task_id, owner))
        return None if stored is None else await self._seen(_hold(stored, owner))

    async def list(self, owner: str, limit: int, **wanted: Any) -> tuple[int, list[Held]]:
        """Return the number of an owner's tasks, and some of them; `wanted` are fields of ListTasks."""
        total, rows = await self._store.read(a2a_tasks.ListTasks(owner, limit, **wanted))
        return total, [await self._seen(_hold(row, owner)) for row in rows]

    async def open(self, owner: str, message: Message, change: TaskChange) -> Held | Refused:
        """Store a new task. If its message was sent before, return the task of that one."""
        if len(self._running) >= MOST_RUNNING:
            text = f"{MOST_RUNNING} calls are running, the maximum; try again later."
            return Refused(status.UNAVAILABLE, "too-many-running", text, headers=(("Retry-After", "2"),))
        stored = _to_store(change, revision=1)
        recorded = self._record(owner, message, stored.task_id)
        lease = LEASE if stored.state == a2a_tasks.WORKING else 0.0
        done = await self._store.do(a2a_tasks.OpenTask(recorded, stored, owner, lease, self._retention, self._most))
        if not isinstance(done, Conflict):
            return Held(stored, change.task, owner)
        if done.reason == "known":
            held = await self.find(owner, message)
            assert held is not None, "its message is known"
            return held
        text = f"The agent has {done.details['most']} unfinished tasks, the maximum; cancel some or wait."
        return Refused(status.RATE_LIMITED, "too-many-tasks", text, headers=(("Retry-After", "60"),))

    async def change(self, held: Held, change: TaskChange, message: Message | None = None) -> Held | None:
        """Store a changed task, with the message that changed it; return None if another change came first."""
        stored = _to_store(change, revision=held.stored.revision)
        lease = LEASE if stored.state == a2a_tasks.WORKING else 0.0
        first = () if message is None else (self._record(held.owner, message, stored.task_id),)
        done = await self._store.do(*first, a2a_tasks.SaveTask(stored, lease, self._retention))
        if isinstance(done, Conflict):
            return None
        return Held(msgspec.structs.replace(stored, revision=done[-1]), change.task, held.owner)

    def run(self, held: Held, work: Work) -> None:
        """Work on a task, whether somebody waits for it or not."""
        task_id = held.stored.task_id
        call = asyncio.create_task(work())
        self._running[task_id] = _Running(held, call, asyncio.create_task(self._carry_out(task_id, call)))

    def report(self, task_id: str, task: Task) -> None:
        """Show a running task to those who look at it in this process. Progress is not worth a write."""
        if (running := self._running.get(task_id)) is not None:
            running.held = replace(running.held, task=task, news=running.held.news + 1)
            self._wake()

    async def find_run(self, held: Held) -> Record | None:
        """Return the workflow or job that the call of a task has begun, whose Task-ID is its id; None without one."""
        known = {} if self._server is None else self._server.kinds
        followed = tuple(kind for kind, how in known.items() if how.followed)
        found: Sequence[Record] = ()
        if followed:
            found = await self._store.read(FindNamed(followed, held.owner, held.stored.task_id))
        return found[0] if found else None

    async def _cancel_run(self, record: Record) -> None:
        """Cancel a workflow or job as CANCEL does, which undoes a workflow. One that has ended stays as it is."""
        assert self._server is not None, "it has begun something"
        await self._store.do(*self._server.cancelling[record.kind].commands(record))

    async def settle(self, held: Held) -> Held:
        """Wait until nobody works on a task."""
        if held.stage != a2a_tasks.WORKING:
            return held
        async for later in self._later(held):
            held = later
            if held.stage != a2a_tasks.WORKING:
                break
        return held

    async def follow(
        self, held: Held, *, stages: frozenset[str]
    ) -> AsyncIterator[Task | TaskArtifactUpdateEvent | TaskStatusUpdateEvent]:
        """Yield a task and its changes, as long as it is in one of the stages."""
        yield held.task
        if held.stage not in stages:
            return
        async for later in self._later(held):
            if (later.stored.revision, later.news) != (held.stored.revision, held.news):
                for event in _artifact_events(held, later):
                    yield event
                yield TaskStatusUpdateEvent(
                    task_id=later.task.id, context_id=later.task.context_id, status=later.task.status
                )
            held = later
            if held.stage not in stages:
                break

    async def cancel(self, held: Held) -> Held:
        """Cancel a task; return it as it is then, which may be unchanged if its call cannot be stopped."""
        if held.stage == a2a_tasks.FINISHED:
            raise TaskNotCancelableError(f"The task is finished: {TaskState.Name(held.task.status.state)}.")
        if (running := self._running.get(held.stored.task_id)) is not None:
            await self._cancel_here(running)
        elif held.stage == a2a_tasks.WAITING:
            changed = await self.change(held, _ended(held, TaskState.TASK_STATE_CANCELED, _UNCALLED))
            return changed or await self.reread(held)
        else:
            await self._store.do(a2a_tasks.RequestCancel(held.stored.task_id))
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self.settle(held)
        except TimeoutError:
            return await self.reread(held)

    async def _cancel_here(self, running: _Running) -> None:
        """Stop the call of a task; if it follows a workflow or job, cancel that, and let the call tell how it ends."""
        running.canceled = True
        run = await self.find_run(running.held)
        if run is None:
            running.call.cancel()
        else:
            await self._cancel_run(run)

    async def reread(self, held: Held) -> Held:
        """Read a task again. Raises TaskNotFoundError if it is gone."""
        found = await self.read(held.owner, held.stored.task_id)
        if found is None:
            raise TaskNotFoundError
        return found

    async def _later(self, held: Held) -> AsyncIterator[Held]:
        """Yield a task again whenever it may have changed, at once if it is not worked on here."""
        running = self._running.get(held.stored.task_id)
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            if running is not None:
                running.work.add_done_callback(lambda _: event.set())
                while not running.work.done():
                    await event.wait()
                    event.clear()
                    yield running.held
                yield running.held
                held = running.held
            while True:
                event.clear()
                try:
                    found = await self.read(held.owner, held.stored.task_id)
                except StoreError as error:
                    message = "the task %s cannot be read; looking again later: %s"
                    _logger.log(level_of(error), message, held.stored.task_id, error)
                    found = held
                if found is None:
                    return
                yield found
                await wait_at_most(_LOOK, event)
        finally:
            self._waiting.discard(event)

    async def _carry_out(self, task_id: str, call: asyncio.Task[TaskChange]) -> None:
        """Await the work of a task and store how it ended, whatever happens."""
        running = self._running[task_id]
        try:
            change = await call
        except asyncio.CancelledError:
            if await self._leave(running):
                del self._running[task_id]
                return
            state = TaskState.TASK_STATE_CANCELED if running.canceled else TaskState.TASK_STATE_FAILED
            change = _ended(running.held, state, _CANCELED if running.canceled else _INTERRUPTED)
        except Exception as error:
            _logger.error("The task %s failed", task_id, exc_info=error)
            change = _ended(running.held, TaskState.TASK_STATE_FAILED, _FAILED)
        try:
            running.held = await self.change(running.held, change) or running.held
        except StoreError as error:
            # Callers that wait get the answer; for all others the lease ends, and the task is told to be interrupted.
            _logger.warning("the end of the task %s cannot be stored: %s", task_id, error)
            running.held = Held(_to_store(change, running.held.stored.revision), change.task, running.held.owner)
        finally:
            del self._running[task_id]

    async def _leave(self, running: _Running) -> bool:
        """Return True for a task that goes on without its call: only this process stops, not its workflow or job."""
        try:
            run = await self.find_run(running.held)
            if run is not None and running.canceled:  # it had just begun
                await self._cancel_run(run)
        except StoreError as error:
            _logger.log(level_of(error), "what the task %s has begun is not known: %s", running.held.task.id, error)
            return False
        return run is not None and not running.canceled

    async def _seen(self, held: Held) -> Held:
        """Return a task, which has failed if its process is gone and no workflow or job goes on with it."""
        if not held.stored.lapsed or await self.find_run(held) is not None:
            return held
        changed = await self.change(held, _ended(held, TaskState.TASK_STATE_FAILED, _INTERRUPTED))
        if changed is not None:
            return changed
        stored: a2a_tasks.A2aTask | None = await self._store.read(a2a_tasks.ReadTask(held.stored.task_id, held.owner))
        return held if stored is None else _hold(stored, held.owner)

    def _record(self, owner: str, message: Message, task_id: str) -> RecordKey:
        scope, key, digest = _identify(owner, message)
        return RecordKey(scope, key, digest, task_id.encode(), self._retention)

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()

    async def _renew(self) -> None:
        """Prolong the leases of running tasks, and cancel those that are to be."""
        while True:
            await wait_at_most(LEASE / 3, self._renew_now)
            self._renew_now.clear()
            if not self._running:
                continue
            try:
                done = await self._store.do(a2a_tasks.RenewTasks(tuple(self._running), LEASE, self._retention))
            except StoreError as error:
                _logger.log(level_of(error), "the leases of tasks cannot be prolonged: %s", error)
                continue
            for task_id in () if isinstance(done, Conflict) else done[0]:
                if (running := self._running.get(task_id)) is not None:
                    await self._cancel_here(running)


def _identify(owner: str, message: Message) -> tuple[str, str, bytes]:
    scope = hashlib.blake2b(owner.encode(), digest_size=12).hexdigest()
    key = hashlib.blake2b(message.message_id.encode(), digest_size=16).hexdigest()
    return f"a2a {scope}", key, hashlib.sha256(message.SerializeToString(deterministic=True)).digest()


def _to_store(change: TaskChange, revision: int) -> a2a_tasks.A2aTask:
    task = change.task
    return a2a_tasks.A2aTask(
        task_id=task.id,
        context_id=task.context_id,
        state=stage_of(task),
        status=int(task.status.state),
        call=None if stage_of(task) == a2a_tasks.FINISHED else change.call,
        document=bounded(task).SerializeToString(),
        revision=revision,
        updated=task.status.timestamp.ToNanoseconds() / 1e9,
    )


def _artifact_events(held: Held, later: Held) -> Iterator[TaskArtifactUpdateEvent]:
    """Yield what is new of the artifacts: while a call runs, items to append; in the end, each as a whole."""
    ended = later.stage != a2a_tasks.WORKING
    sent = {artifact.artifact_id: len(artifact.parts) for artifact in held.task.artifacts}
    for artifact in later.task.artifacts:
        known = 0 if ended else sent.get(artifact.artifact_id, 0)
        part = deepcopy(artifact)
        del part.parts[:known]
        if part.parts and (held.stage == a2a_tasks.WORKING or artifact.artifact_id not in sent):
            of = {"task_id": later.task.id, "context_id": later.task.context_id}
            yield TaskArtifactUpdateEvent(**of, artifact=part, append=known > 0, last_chunk=ended)


def _hold(stored: a2a_tasks.A2aTask, owner: str) -> Held:
    return Held(stored, Task.FromString(stored.document), owner)


def _ended(held: Held, state: TaskState, text: str) -> TaskChange:
    task = deepcopy(held.task)
    tell(task, state, text)
    return TaskChange(task, held.stored.call)
