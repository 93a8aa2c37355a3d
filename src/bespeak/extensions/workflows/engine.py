"""The workflows of a server: begun by a call, driven by one process at a time, taken over after a crash."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final

import msgspec

from bespeak.errors import StoreError
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows import store as commands
from bespeak.extensions.workflows.durable import DurableEngine
from bespeak.extensions.workflows.functions import FunctionDrive
from bespeak.extensions.workflows.journal import WorkflowJournal
from bespeak.extensions.workflows.spec import Spec, decode, encode
from bespeak.extensions.workflows.steps import StepsEngine
from bespeak.extensions.workflows.store import BITS, WORKFLOW, Advance, StepRow
from bespeak.extensions.workflows.turn import end_run
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, TASK_ID
from bespeak.protocol.exchange.messages import PATIENCE, REPORT
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import JoinedCall, RoutedCall, ordered_id
from bespeak.runtime.concurrency import Pace, cancel_tasks
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.handling import OpenLimit
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.commands.records import FindNamed, FindRecord, PutRecord, Record, topic_of
from bespeak.state.store.store import Command, Conflict, Store

_logger = logging.getLogger(__name__)

LEASE: Final = 30.0
MOST_OPEN: Final = 100_000  # workflows of one agent that have not ended
_MOST_NAME: Final = 256  # characters of a Task-ID by which a workflow can be found
_ELSEWHERE: Final = 10.0  # seconds after which a run whose code is not here is due again, for other machines
_FIRST_LOOK: Final = 0.1  # seconds after which a caller hears how far its workflow is; most have ended then
_LONGEST_LOOK: Final = 2.0  # seconds between two looks
_AT_ONCE: Final = 100  # workflows that are begun without a pause, which calls have to wait for
_MOST_DRIVEN: Final = 1_000  # workflows that a process drives at the same time before it claims more


class Workflow(msgspec.Struct, frozen=True):
    record: Record
    spec: Spec
    rows: Sequence[StepRow]

    @property
    def has_ended(self) -> bool:
        return self.record.state in states.ENDED


class Workflows:
    def __init__(self, dispatcher: Dispatcher, store: Store, *, lease: float = LEASE) -> None:
        self.dispatcher = dispatcher
        self.functions: Mapping[str, Joined] = dispatcher.server.registrar.participants.get("workflow", {})
        self.store = store
        self._lease = lease
        self._driving: dict[str, asyncio.Task[Workflow | None]] = {}
        self._journals: dict[str, WorkflowJournal] = {}  # of the workflows that this process drives
        self._changed = asyncio.Event()
        self._open = OpenLimit(WORKFLOW, MOST_OPEN)
        self.pace = Pace()  # turns of the steps that run side by side

    @property
    def driven(self) -> int:
        return len(self._driving)

    async def start(self) -> None:
        """Follow the workflows of other processes; the store must be started."""
        self.store.watch(topic_of(WORKFLOW), self._tell)
        if self.store.sole:  # whoever held a lease is dead
            await self._do(commands.ReleaseWorkflows())

    async def close(self) -> None:
        """Stop driving. What has begun is due at once for others; for this server, when it starts again."""
        journals = list(self._journals.values())
        await cancel_tasks(*self._driving.values())
        left = (one for one in journals if one.state in (states.RUNNING, states.CANCELLING))
        await asyncio.gather(*(self._do(journal.write(delay=0.0)) for journal in left))

    async def begin(self, call: RoutedCall, spec: Spec) -> str | Conflict:
        """Store a workflow and start it; return its id. A repeated request with the same key means the same one."""
        planned = await self.plan(call, spec, delay=self._lease)
        if isinstance(planned, Conflict):
            return planned
        done = await self.store.do(planned)
        if isinstance(done, Conflict):
            return done.details["record_id"] if done.reason == "exists" and done.details else done
        restored = call if call.method == spec.method else restore_call(spec.authority, call.server, spec.method)
        if not isinstance(restored, Refused):
            self._drive(done[0], self._make(spec, restored, WorkflowJournal(planned.record_id, 0, self._lease)))
        return planned.record_id

    async def plan(self, call: RoutedCall, spec: Spec, *, delay: float = 0.0) -> PutRecord | Conflict:
        """Return the command that stores a workflow; without a delay, whoever finds it first drives it."""
        agent_id = spec.authority.agent_id
        if not await self._open.admits(self.store, agent_id):
            return Conflict("too-many", {"most": self._open.most})
        # The key of a joined call is that of the call that has added it.
        key = None if isinstance(call, JoinedCall) else call.request.headers.get(IDEMPOTENCY_KEY)
        task_id = spec.authority.headers.get(TASK_ID, "")
        what = spec.method if call.method == spec.method else f"{call.method} {call.path}"
        return PutRecord(
            getattr(call, "named", None) or ordered_id(spec.method.lower()),
            WORKFLOW,
            agent_id,
            states.RUNNING,
            encode(spec).decode(),
            key=None if key is None else f"{agent_id} {what} {key}",
            delay=delay,
            target=task_id if 0 < len(task_id) <= _MOST_NAME else None,
        )

    async def wait(self, workflow_id: str, within: float) -> Workflow:
        """Return a workflow when it goes no further by itself, or after some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                task = self._driving.get(workflow_id)
                found = None if task is None else await asyncio.shield(task)
                while found is None or found.record.state in (states.RUNNING, states.SLEEPING):
                    changed = self._changed
                    found = await self._kept(workflow_id)
                    record = found.record
                    if record.state == states.SLEEPING and record.due is not None and record.due - time.time() > within:
                        return found
                    if record.state in (states.RUNNING, states.SLEEPING):
                        await changed.wait()
                return found
        return await self._kept(workflow_id)

    async def follow(self, workflow_id: str, spec: Spec, within: float) -> Workflow:
        """Wait for a workflow as its caller does: one that hears of progress is told, and a patient one waits longer.

        A caller that follows work to its end, however long it takes, gets it when it has ended.
        """
        report, patience = REPORT.get(), PATIENCE.get()
        if report is None and patience is None:
            return await self.wait(workflow_id, within)
        found = await self.wait(workflow_id, min(_FIRST_LOOK, within))
        pause, clock = _FIRST_LOOK, asyncio.get_running_loop().time
        ends = clock() + (within if patience is None else patience)
        while not found.has_ended:
            changed = self._changed
            now: Advance = await self.store.read(commands.ReadAdvance(workflow_id))
            held = now.state in (states.WAITING, states.PAUSED, states.STOPPED)
            if report is not None and (now.done or held):
                # Progress has to increase: a step that waits for somebody has begun.
                total = len(spec.steps) if spec.steps and not now.last >> BITS else None
                report(now.done + 0.5 if held else now.done, total, now.state if held else now.asked or None)
            left = ends - clock()
            sleeps = now.state == states.SLEEPING and now.due is not None and now.due - time.time() > left
            if now.state in states.ENDED or left <= 0 or (patience != math.inf and (held or sleeps)):
                break
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await changed.wait()
            pause = min(pause * 1.5, _LONGEST_LOOK)
        return found if found.has_ended else await self._kept(workflow_id)

    async def _kept(self, workflow_id: str) -> Workflow:
        found = await self.find(workflow_id)
        assert found is not None, "a workflow that has begun is kept"
        return found

    async def find(self, workflow_id: str, owner: str | None = None) -> Workflow | None:
        """Return a workflow; None if there is none, or it is another's."""
        record: Record | None = await self.store.read(FindRecord((WORKFLOW,), workflow_id))
        if record is None or (owner is not None and record.owner != owner):
            return None
        return Workflow(record, decode(record.data), await self.store.read(commands.ReadSteps(workflow_id)))

    async def find_id(self, owner: str, name: str) -> list[str]:
        """Return the ids of the workflows of an agent that an id or the Task-ID of the beginning call means.

        Calls with one Task-ID may have begun several.
        """
        record: Record | None = await self.store.read(FindRecord((WORKFLOW,), name))
        if record is not None and record.owner == owner:
            return [name]
        return [found.record_id for found in await self.store.read(FindNamed((WORKFLOW,), owner, name))]

    async def heed(self, workflow_id: str) -> None:
        """Let no further step of a workflow begin before the store was asked: it has been paused."""
        journal = self._journals.get(workflow_id)
        if journal is not None:
            journal.doubt()

    async def take_over(self, records: Sequence[Record]) -> None:
        """Drive workflows that are due: their process died, their pause is over, or something was decided."""
        journals = await self.store.read(commands.ReadJournals(tuple(record.record_id for record in records)))
        loop = asyncio.get_running_loop()
        writing: list[asyncio.Task[Any]] = []
        for start in range(0, len(records), _AT_ONCE):
            callers: dict[str, tuple[Authority, RoutedCall | Refused]] = {}
            for record in records[start : start + _AT_ONCE]:
                held = self._journals.get(record.record_id)
                if held is not None and not self._driving[record.record_id].done():
                    held.adopt(record.fence, record.state)  # it was resumed or cancelled while a step runs here
                    continue
                try:
                    command = self._take(record, journals[record.record_id], callers)
                except Exception as error:  # one bad record must not keep the others
                    _logger.error("%s cannot be driven; it is tried again later", record.record_id, exc_info=error)
                    continue
                if command is not None:
                    writing.append(loop.create_task(self.store.do(command)))
            await asyncio.sleep(0)  # calls come in between, and what has ended is written meanwhile
        for done in await asyncio.gather(*writing, return_exceptions=True):
            if isinstance(done, BaseException):
                _logger.warning("a workflow continues when its lease ends: %s", done)
        # What is claimed is driven at once, because nobody renews a lease before that.
        while len(self._driving) > _MOST_DRIVEN:
            await asyncio.wait(self._driving.values(), return_when=asyncio.FIRST_COMPLETED)

    def _take(
        self, record: Record, rows: Sequence[StepRow], callers: dict[str, tuple[Authority, RoutedCall | Refused]]
    ) -> Command | None:
        """Drive a workflow; return the command that is left to do if that is all, and it needs no task."""
        spec = decode(record.data)
        journal = WorkflowJournal(record.record_id, record.fence, self._lease, rows, record.state)
        ends = record.state == states.CANCELLING or time.time() >= spec.deadline  # it is undone, which takes no code
        joined = self.functions.get(spec.workflow or "")
        is_here = joined is not None and str(spec.version) in joined.routes
        if not ends and spec.workflow is not None and not is_here:
            message = "%s began with version %d of %s, which is not here; it is left to others"
            _logger.warning(message, record.record_id, spec.version, spec.workflow)
            return journal.write(delay=random.uniform(1.0, _ELSEWHERE))  # noqa: S311 - not a secret
        # Many that fall due at the same time are of the same caller, which need not be judged again within a moment.
        authority, call = callers.get(f"{record.owner} {spec.method}", (None, None))
        if call is None or authority != spec.authority:
            call = restore_call(spec.authority, self.dispatcher.server, spec.method)
            callers[f"{record.owner} {spec.method}"] = spec.authority, call
        if not isinstance(call, Refused):
            context = copy_context()
            drive = self._make(spec, RoutedCall(call, call.route), journal)
            ended = context.run(drive.begin)
            if ended is None:
                self._drive(record, drive, context)
            return ended
        _logger.warning("%s ends: %s", record.record_id, call.message)
        # What was done stays done: to undo it, too, needs authority.
        journal.refuse_next(len(spec.steps), call)
        state = states.CANCELLED if record.state == states.CANCELLING else states.FAILED
        return end_run(spec, journal, state, self.dispatcher.server)

    def _make(self, spec: Spec, call: RoutedCall, journal: WorkflowJournal) -> DurableEngine:
        return (StepsEngine if spec.workflow is None else FunctionDrive)(self, spec, call, journal)

    def _drive(self, record: Record, drive: DurableEngine, context: Context | None = None) -> None:
        name, run = f"bespeak-{record.record_id}", self._run(record, drive)
        task = asyncio.get_running_loop().create_task(run, name=name, context=context)
        self._driving[record.record_id], self._journals[record.record_id] = task, drive.journal
        task.add_done_callback(lambda done: self._finished(record.record_id, done, drive))

    async def _run(self, record: Record, drive: DurableEngine) -> Workflow | None:
        """Drive a workflow as far as it goes; return None if another process has taken it over."""
        journal = drive.journal
        while True:
            fence = journal.fence
            if not await drive.run():
                break
            if journal.fence == fence or journal.state not in (states.RUNNING, states.CANCELLING):
                changed = msgspec.structs.replace(record, state=journal.state)
                return Workflow(changed, drive.spec, [row for _, row in sorted(journal.rows.items())])
        # Steps that were cancelled may be on their way to the store: a new claim is what they come before, or fail at.
        while (release := journal.release()) is not None:
            await self._do(release)
        return None

    def _finished(self, workflow_id: str, task: asyncio.Task[Workflow | None], drive: DurableEngine) -> None:
        drive.put_down()  # it may have been cancelled before it ran
        if self._driving.get(workflow_id) is task:
            del self._driving[workflow_id], self._journals[workflow_id]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreError):
            _logger.warning("%s continues when its lease ends: %s", workflow_id, error)
        elif error is not None:
            _logger.error("%s failed here; it is taken over when its lease ends", workflow_id, exc_info=error)
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _do(self, command: Command) -> None:
        """Run a command that somebody repeats later if the store fails."""
        try:
            await self.store.do(command)
        except StoreError as error:
            _logger.warning("could not release workflows, which continue later: %s", error)
