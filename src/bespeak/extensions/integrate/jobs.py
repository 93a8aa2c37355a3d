"""Jobs: long work of data methods, answered with 202 and carried on in the background, also after a crash.

A job is a record. Its work is an async generator of steps, each of which is committed in one transaction with the
checkpoint from which the work would go on: what a process that was killed has committed is there once, and what it has
not is done again by another one. A work looks like this, and is listed in `Jobs` under its method:

    async def copy(call: RoutedCall, job: Job) -> Steps:
        at = job.checkpoint or 0                     # JSON; None at the beginning
        while rows := await read_some(job.given, at):
            at += len(rows)
            yield Step(lambda _: Progress(at, at), (PutRows(rows),))
        yield Step(lambda _: Progress(at, at, result={"rows": at}))

Its handler returns `await begin(call, {...})`. The caller finds the job by its id or by the Task-ID of the call.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from bespeak.extensions.messages.posting import Posting, post
from bespeak.extensions.messages.recipients import verify_callback
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.messages import PATIENCE, REPORT
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.background import ClaimLoop
from bespeak.runtime.call import RoutedCall, StepCall
from bespeak.runtime.extension import CANCELLED, Cancelling, RecordKind
from bespeak.runtime.gates.authority import scope_gate
from bespeak.runtime.handling import OpenLimit, RefusedError, effects, may_pass_later, new_id, refusal, to_json
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import (
    ChangeRecord,
    ClaimDue,
    FindRecord,
    NextDue,
    PutRecord,
    Record,
    RenewRecords,
)
from bespeak.state.store.store import Command, Conflict, Result, Statement, Store
from bespeak.state.store.store import Steps as CommandSteps

_logger = logging.getLogger(__name__)

JOB: Final = "job"
QUEUED: Final = "queued"  # nothing has been committed yet
RUNNING: Final = "running"
DONE: Final = "done"
FAILED: Final = "failed"
KEPT: Final = 30 * 86400.0  # seconds for which a job can be looked up after its end
MOST_JOBS: Final = 16  # jobs of one agent that have not ended, each of which may keep a source
_PARTS_KEPT: Final = 7 * 86400.0  # seconds after which parts of a job that was never begun are removed
_AT_ONCE: Final = 4  # jobs of one process that run
_LEASE: Final = 30.0
_TURN: Final = 10.0  # seconds after which a job makes room if others wait
_MOST_CLAIMS: Final = 5  # claims without progress after which a job has failed
_FIRST_DELAY: Final = 1.0
_LONGEST_DELAY: Final = 300.0
_FIRST_LOOK: Final = 0.1  # seconds until a caller that follows a job looks again
_LONGEST_LOOK: Final = 2.0
_DROPPED: Final = 8  # parts that are removed in one transaction


class Job(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a job."""

    job_id: str
    method: str
    sender: str  # server_id, from which the callback is told
    authority: Authority
    given: dict[str, Any]  # what the work needs to know; it never changes
    checkpoint: Any = None  # where the work goes on; None at the beginning
    done: int = 0
    total: int | None = None  # number that `done` will reach; None if it is not known
    unit: str = ""  # what is counted: bytes, rows
    counts: dict[str, Any] = {}  # what has been committed so far, for its owner
    callback: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None  # code and message of the last failure
    refused: int = status.SERVER_ERROR  # status of the failure that has ended it
    claim: int = 0  # claim with which the last step was committed

    @property
    def told(self) -> dict[str, Any]:
        """What CHECK and a callback tell of it."""
        progress: dict[str, Any] = {"done": self.done}
        progress |= {} if self.total is None else {"total": self.total}
        progress |= {"unit": self.unit} if self.unit else {}
        parts = (("counts", self.counts or None), ("result", self.result), ("error", self.error))
        return {"method": self.method, "progress": progress, **{name: one for name, one in parts if one is not None}}


decode_job = msgspec.json.Decoder(Job).decode


class Progress(msgspec.Struct, frozen=True):
    """How far a work has come with a step."""

    checkpoint: Any
    done: int
    total: int | None = None
    counts: dict[str, Any] = {}
    unit: str = ""
    result: dict[str, Any] | None = None  # the receipt, with which the job ends


class Step(msgspec.Struct, frozen=True):
    """A part of a work: commands, and the progress that their results mean. Both are committed together."""

    progress: Callable[[Sequence[Any]], Progress]  # gets the results of the commands; it runs in their transaction
    commands: tuple[Command, ...] = ()


Steps = AsyncGenerator[Step, None]
Work = Callable[[RoutedCall, Job], Steps]
"""Does a job from its checkpoint on, and ends with a step that has a result. What it holds open is closed by `finally`.

It raises RefusedError to fail; a failure that may pass (503, 429, 408) is tried again later. It may be closed after any
step, and begun again from the checkpoint. `call` has the authority that is left of the caller's.
"""


class StepConflictError(Exception):
    """A command of a step could not be carried out, so nothing of it has happened; raised at the `yield`."""

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(conflict.reason)
        self.conflict = conflict


class HoldJob(Command, frozen=True):
    """Lock a job for a step; a Conflict if it has ended, or another process has claimed it."""

    guards = True
    job_id: str
    fence: int

    def steps(self) -> CommandSteps:
        sql = "SELECT 1 FROM records WHERE record_id = ? AND fence = ? AND state IN (?, ?) {lock}"
        found = yield Statement(sql, (self.job_id, self.fence, QUEUED, RUNNING))
        return None if found else Conflict("claim-lost")


class PutPart(Command, frozen=True):
    """Keep bytes for a job until it ends. They may be put before the job is begun."""

    job_id: str
    number: int
    data: bytes

    def steps(self) -> CommandSteps:
        yield Statement(
            "INSERT INTO job_parts (job_id, number, data, expires) VALUES (?, ?, ?, {now} + ?)",
            (self.job_id, self.number, self.data, _PARTS_KEPT),
        )
        return None


class ReadPart(Command, frozen=True):
    """Read bytes that were kept for a job; None behind the last ones."""

    job_id: str
    number: int

    def steps(self) -> Result[bytes | None]:
        sql = "SELECT data FROM job_parts WHERE job_id = ? AND number = ?"
        rows = yield Statement(sql, (self.job_id, self.number))
        return rows[0][0] if rows else None


class DropParts(Command, frozen=True):
    job_id: str

    def steps(self) -> CommandSteps:
        yield Statement("DELETE FROM job_parts WHERE job_id = ?", (self.job_id,))
        return None


class DropEnded(Command, frozen=True):
    """Remove parts of jobs that have ended; return their number. What one transaction removes is in memory."""

    limit: int

    def steps(self) -> Result[int]:
        rows = yield Statement(
            "DELETE FROM job_parts WHERE (job_id, number) IN (SELECT p.job_id, p.number FROM job_parts AS p "
            "JOIN records AS r ON r.record_id = p.job_id WHERE r.due IS NULL LIMIT ?) RETURNING 1",
            (self.limit,),
        )
        return len(rows)


async def begin(
    call: RoutedCall,
    given: dict[str, Any],
    *,
    job_id: str = "",
    total: int | None = None,
    callback: str | None = None,
    told: Mapping[str, Any] | None = None,
) -> Effects:
    """Begin a job of the method of a call: 202 with `told`, its id, its state and how to look at it.

    A callback is verified first. `job_id` is needed only if parts were put under it; see `new_job_id`.
    """
    jobs: Jobs = call.server.part("jobs")
    if not await jobs.limit.admits(call.store, call.agent_id or ""):
        message = (
            f"The agent has {MOST_JOBS} jobs that have not ended, the maximum; wait until one ends, or CANCEL one."
        )
        raise refusal(status.RATE_LIMITED, "too-many-jobs", message, retry_after=60)
    if callback is not None:
        await verify_callback(call, callback)
    job = Job(
        job_id=job_id or new_job_id(call.method),
        method=call.method,
        sender=call.server.registrar.service.identity.server_id,
        authority=Authority.of(call.principal, call.request),
        given=given,
        total=total,
        callback=callback,
    )
    record = PutRecord(
        *(job.job_id, JOB, call.agent_id or "", QUEUED, to_json(job)),
        delay=0.0,
        # Steps have the Task-ID of the call that makes them, which means that call.
        target=None if isinstance(call, StepCall) else call.request.headers.get(TASK_ID),
    )
    look = {"method": "CHECK", "path": "/", "parameters": {"target": job.job_id}}
    shown = {"job_id": job.job_id, "status": QUEUED, **(told or {})}
    shown |= {"look": look} if "CHECK" in call.routes.allowed else {}
    return effects([record], lambda _: Envelope(shown, status.ACCEPTED), {})


def new_job_id(method: str) -> str:
    return new_id(method.lower())


async def _describe(_: Server, record: Record) -> Mapping[str, Any]:
    return decode_job(record.data).told


def _tell(job: Job, owner: str, state: str) -> tuple[Command, ...]:
    """Return the command that tells the callback of a job its end."""
    if job.callback is None:
        return ()
    told = {"job_id": job.job_id, "status": state, **job.told}
    # One job ends once, so that its callback can recognise a posting that comes twice.
    return (post(job.callback, Posting(f"posting-{job.job_id}", "callback", job.sender, told, recipient=owner)),)


async def follow(call: RoutedCall, job_id: str) -> Envelope | Refused | None:
    """Wait for the end of a job as its caller does, who hears of progress; return None if its patience ends before."""
    report, clock, store = REPORT.get(), asyncio.get_running_loop().time, call.server.store
    assert store is not None, "jobs are records"
    ends, pause = clock() + (PATIENCE.get() or 0.0), _FIRST_LOOK
    behind = last = 0  # what was counted before the count began anew: bytes that are fetched, then rows
    while True:
        record: Record | None = await store.read(FindRecord((JOB,), job_id))
        if record is None or record.owner != call.agent_id:
            return None
        job = decode_job(record.data)
        if record.state == DONE:
            return Envelope(job.result or {})
        error, reached = job.error or {}, {"job_id": job_id, "counts": job.counts}
        if record.state == FAILED:
            details = {**error.get("details", {}), **reached}
            return Refused(job.refused, error["code"], error["message"], details)
        if record.state == CANCELLED:
            message = f"{job_id} was cancelled. What it had done stays, and CHECK tells how much that is."
            return Refused(status.CONFLICT, "job-cancelled", message, reached)
        behind, last = (behind + last if job.done < last else behind), job.done
        if report is not None and (job.done or error):
            # Progress has to increase: a job that waits for another attempt has begun with the next part.
            done = behind + job.done + (0.5 if error else 0)
            report(done, None if job.total is None else behind + job.total, error.get("message") or job.unit or None)
        if clock() >= ends:
            return None
        await asyncio.sleep(min(pause, ends - clock()))
        pause = min(pause * 1.5, _LONGEST_LOOK)


JOB_KIND: Final = RecordKind(
    # What was committed before stays: CHECK shows what that is.
    cancelling=Cancelling(
        (QUEUED, RUNNING), also=lambda record: _tell(decode_job(record.data), record.owner, CANCELLED)
    ),
    named=True,
    followed=True,
    describe=_describe,
)


class Jobs(ClaimLoop):
    """Carries on the jobs of a service, some at a time, in this process."""

    def __init__(self, server: Server, store: Store, works: Mapping[str, Work]) -> None:
        super().__init__(store, "jobs", _LEASE)
        self.limit = OpenLimit(JOB, MOST_JOBS)
        self._server = server
        self._works = works
        self._is_crowded = False  # True if jobs wait for a place

    def give_back(self, record: Record) -> Command:
        """Return the command by which a job goes on in any process, from its last checkpoint."""
        return _change(record, RUNNING, delay=0.0)

    async def claim(self) -> float:
        """Begin as many jobs as may run, and remove parts of those that have ended."""
        free = _AT_ONCE - len(self.held(JOB))
        claimed = await self._store.do(ClaimDue(JOB, free, _LEASE)) if free else ((),)
        assert not isinstance(claimed, Conflict)
        for record in claimed[0]:
            self.begin(JOB, record, self._carry(record))
        due: float = (await self._store.read(NextDue((JOB,)))).get(JOB, math.inf)
        self._is_crowded = due <= 0 and len(self.held(JOB)) >= _AT_ONCE
        dropped: Any = [_DROPPED]
        while dropped[0] >= _DROPPED:
            dropped = await self._store.do(DropEnded(_DROPPED))
        return math.inf if self._is_crowded else due

    async def keep_leases(self) -> None:
        held = self.held(JOB)
        await self._store.do(RenewRecords(QUEUED, held, _LEASE), RenewRecords(RUNNING, held, _LEASE))

    async def _carry(self, record: Record) -> None:
        """Carry on a job that this process has claimed, until it ends or makes room for another."""
        job: Job | None = decode_job(record.data)
        until = asyncio.get_running_loop().time() + _TURN
        while job is not None:
            call, work = self._restore(job), self._works.get(job.method)
            if isinstance(call, Refused):
                await self._fail(record, job, call)
            elif work is None or record.fence - job.claim > _MOST_CLAIMS:
                message = f"It was begun {_MOST_CLAIMS} times without progress; the operator's log may have the reason."
                await self._fail(record, job, Refused(status.SERVER_ERROR, "interrupted", message))
            else:
                job = await self._advance(record, job, call, work(call, job), until)
                continue
            return

    def _restore(self, job: Job) -> RoutedCall | Refused:
        """Return the call with the authority that is left now; its refusal if none is."""
        call = restore_call(job.authority, self._server, job.method)
        return call if isinstance(call, Refused) else scope_gate(call) or call

    async def _advance(self, record: Record, job: Job, call: RoutedCall, steps: Steps, until: float) -> Job | None:
        """Commit steps one by one; return the job if its authority has changed, None if it goes no further here."""
        conflict: Conflict | None = None
        async with aclosing(steps):
            while True:
                now = self._restore(job)  # before the next part begins, which may change things elsewhere
                if isinstance(now, Refused) or now.principal.scopes != call.principal.scopes:
                    return job
                try:
                    step = await (steps.asend(None) if conflict is None else steps.athrow(StepConflictError(conflict)))
                except RefusedError as error:
                    await self._pause(record, job, error.refused)
                    return None
                now = self._restore(job)
                if isinstance(now, Refused) or now.principal.scopes != call.principal.scopes:
                    return job
                crowded = self._is_crowded and asyncio.get_running_loop().time() > until
                note = _Note(record, job, step, 0.0 if crowded else _LEASE)
                done = await self._store.do(HoldJob(record.record_id, record.fence), *step.commands, then=note)
                conflict = done if isinstance(done, Conflict) else None
                if conflict is None:
                    job = note.job
                    if crowded or job.result is not None:
                        return None
                elif not conflict.position:
                    return None  # it was cancelled, or another process has claimed it

    async def _pause(self, record: Record, job: Job, refused: Refused) -> None:
        """Try a job again later after a failure that may pass; end it after any other."""
        attempt = max(record.fence - job.claim, 1)
        if not may_pass_later(refused) or attempt >= _MOST_CLAIMS:
            await self._fail(record, job, refused)
            return
        failed = msgspec.structs.replace(job, error={"code": refused.code, "message": refused.message})
        delay = min(_FIRST_DELAY * 2 ** (attempt - 1), _LONGEST_DELAY)
        await self._store.do(_change(record, RUNNING, data=to_json(failed), delay=delay))

    async def _fail(self, record: Record, job: Job, refused: Refused) -> None:
        details = {"details": refused.details} if refused.details else {}
        error = {"code": refused.code, "message": refused.message, **details}
        ended = msgspec.structs.replace(job, error=error, refused=refused.status)
        _logger.warning("%s has failed: %s", record.record_id, error)
        await self._store.do(*_end(record, ended, FAILED))


class _Note:
    """Makes the commands that note a step, from the results of its own."""

    def __init__(self, record: Record, job: Job, step: Step, delay: float) -> None:
        self._record, self.job, self._step, self._delay = record, job, step, delay
        self._before = job

    def __call__(self, results: Sequence[Any]) -> Sequence[Command]:
        made = self._step.progress(results[1:])
        named = {name: getattr(made, name) for name in made.__struct_fields__}
        self.job = msgspec.structs.replace(self._before, **named, error=None, claim=self._record.fence)
        if made.result is not None:
            return _end(self._record, self.job, DONE)
        return (_change(self._record, RUNNING, data=to_json(self.job), delay=self._delay),)


def _end(record: Record, job: Job, state: str) -> tuple[Command, ...]:
    ended = _change(record, state, data=to_json(job), lifetime=KEPT)
    return ended, *_tell(job, record.owner, state)


def _change(record: Record, state: str, **fields: Any) -> ChangeRecord:
    return ChangeRecord(record.record_id, (JOB,), (QUEUED, RUNNING), state, fence=record.fence, **fields)
