"""The workflows of a server: begun by a call, driven by one process at a time, taken over after a crash."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.workflows.driving import KEPT, Drive
from bespeak.runtime.workflows.journal import WorkflowJournal
from bespeak.runtime.workflows.spec import Spec, decode, encode
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.cases import TOPIC as CASES
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record, topic_of
from bespeak.state.store.commands.steps import (
    CANCELLING,
    ENDED,
    FAILED,
    PAUSED,
    RUNNING,
    WAITING,
    WORKFLOW,
    ReadSteps,
    StepRow,
    WakeWaiting,
)
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

LEASE: Final = 30.0
MOST_OPEN: Final = 10_000
"""Workflows that one agent may have."""
_MOST_DRIVEN: Final = 1_000
"""Workflows that one process drives at the same time."""


class Workflow(msgspec.Struct, frozen=True):
    """A workflow and its journal."""

    record: Record
    spec: Spec
    rows: Sequence[StepRow]

    @property
    def has_ended(self) -> bool:
        """True if no step will run any more."""
        return self.record.state in ENDED


class Workflows:
    """Begins, drives and finds workflows."""

    def __init__(self, dispatcher: Dispatcher, store: Store, *, lease: float = LEASE) -> None:
        self._dispatcher = dispatcher
        self._store = store
        self._lease = lease
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._waking: asyncio.Task[None] | None = None

    @property
    def driven(self) -> int:
        """Number of workflows that this process drives now."""
        return len(self._driving)

    def start(self) -> None:
        """Follow the decisions and the workflows of other processes."""
        self._store.watch(CASES, self._wake)
        self._store.watch(topic_of(WORKFLOW), self._tell)

    async def close(self) -> None:
        """Stop driving; what has begun is taken over when its lease ends."""
        tasks = [*self._driving.values(), *([self._waking] if self._waking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def begin(self, call: RoutedCall, spec: Spec) -> str | Conflict:
        """Store a workflow and start it; return its id. A repeated request with the same key means the same one."""
        agent_id = spec.authority.agent_id
        key = call.request.headers.get(IDEMPOTENCY_KEY)
        workflow_id = f"{spec.method.lower()}-{secrets.token_hex(16)}"
        done = await self._store.do(
            PutRecord(
                workflow_id,
                WORKFLOW,
                agent_id,
                RUNNING,
                encode(spec).decode(),
                key=None if key is None else f"{agent_id} {spec.method} {key}",
                delay=self._lease,
                most=MOST_OPEN,
            )
        )
        if isinstance(done, Conflict):
            return done.details["record_id"] if done.reason == "exists" and done.details else done
        self._drive(spec, call, WorkflowJournal(workflow_id, 0, self._lease))
        return workflow_id

    async def wait(self, workflow_id: str, within: float) -> Workflow:
        """Return a workflow when it goes no further by itself, or after some seconds."""
        try:
            async with asyncio.timeout(within):
                task = self._driving.get(workflow_id)
                if task is not None:
                    await asyncio.shield(task)
                while True:
                    changed = self._changed
                    found = await self.find(workflow_id)
                    assert found is not None, "a workflow that has begun is kept"
                    if found.record.state != RUNNING:
                        return found
                    await changed.wait()
        except TimeoutError:
            pass
        found = await self.find(workflow_id)
        assert found is not None
        return found

    async def find(self, workflow_id: str, owner: str | None = None) -> Workflow | None:
        """Return a workflow; None if there is none, or it is another's."""
        record: Record | None = await self._store.read(FindRecord((WORKFLOW,), workflow_id))
        if record is None or (owner is not None and record.owner != owner):
            return None
        return Workflow(record, decode(record.data), await self._store.read(ReadSteps(workflow_id)))

    async def take_over(self, records: Sequence[Record]) -> None:
        """Drive workflows that are due: their process died, their pause is over, or something was decided."""
        for record in records:
            if record.state in (PAUSED, WAITING):
                resumed = ChangeRecord(
                    record.record_id, (WORKFLOW,), (record.state,), RUNNING, fence=record.fence, delay=self._lease
                )
                if isinstance(await self._store.do(resumed), Conflict):
                    continue
            spec = decode(record.data)
            rows = await self._store.read(ReadSteps(record.record_id))
            state = CANCELLING if record.state == CANCELLING else RUNNING
            journal = WorkflowJournal(record.record_id, record.fence, self._lease, rows, state)
            call = spec.authority.restore(self._dispatcher.server, spec.method)
            if isinstance(call, Refused):
                _logger.warning("%s ends: %s", record.record_id, call.message)
                await self._store.do(journal.write(FAILED, kept=KEPT))
                continue
            self._drive(spec, call, journal)
            while len(self._driving) >= _MOST_DRIVEN:
                await asyncio.wait(self._driving.values(), return_when=asyncio.FIRST_COMPLETED)

    def _drive(self, spec: Spec, call: RoutedCall, journal: WorkflowJournal) -> None:
        drive = Drive(self._dispatcher, self._store, spec, call, journal)
        task = asyncio.get_running_loop().create_task(drive.run(), name=f"bespeak-{journal.workflow_id}")
        self._driving[journal.workflow_id] = task
        task.add_done_callback(lambda done: self._finished(journal.workflow_id, done))

    def _finished(self, workflow_id: str, task: asyncio.Task[None]) -> None:
        if self._driving.get(workflow_id) is task:
            del self._driving[workflow_id]
        if not task.cancelled() and task.exception() is not None:
            _logger.error(
                "%s failed here; it is taken over when its lease ends", workflow_id, exc_info=task.exception()
            )
        self._tell()

    def _tell(self) -> None:
        """Wake everyone who waits for a workflow."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _wake(self) -> None:
        if self._waking is None or self._waking.done():
            self._waking = asyncio.get_running_loop().create_task(self._wake_waiting())

    async def _wake_waiting(self) -> None:
        await self._store.do(WakeWaiting())


def receipt_steps(workflow: Workflow) -> list[dict[str, Any]]:
    """Return what became of each step, for a receipt. Steps that have not begun are pending."""
    known = {row.number: row for row in workflow.rows}
    made = []
    for number, step in enumerate(workflow.spec.steps, 1):
        entry: dict[str, Any] = {"step": number, "method": step.method, "path": step.path, "status": "pending"}
        if step.name is not None:
            entry["name"] = step.name
        row = known.get(number)
        if row is not None:
            entry |= {"status": row.state, "attempts": row.attempt}
            if row.code:
                entry["code"] = row.code
            if row.state in ("done", "undone") or row.output != "null":
                entry["output" if row.state in ("done", "undone") else "error"] = msgspec.Raw(row.output.encode())
        made.append(entry)
    return made
