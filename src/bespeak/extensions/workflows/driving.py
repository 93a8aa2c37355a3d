"""Driving a workflow: its steps through the dispatcher, each noted in the journal, until it ends or has to wait."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from decimal import Decimal
from types import CoroutineType
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.extensions.workflows.journal import (
    SETTLED,
    TAKEN,
    StepJournal,
    WorkflowJournal,
    answered,
    confirmation_of,
    failed_row,
    faulty_row,
    interrupted_row,
)
from bespeak.extensions.workflows.spec import (
    INPUT,
    Room,
    Spec,
    StepSpec,
    expressions_in,
    find_step,
    resolve,
    variables_of,
)
from bespeak.extensions.workflows.store import (
    CANCELLED,
    CANCELLING,
    COMPLETED,
    DONE,
    FAILED,
    NOT_UNDONE,
    PAUSED,
    PENDING,
    RUNNING,
    SKIPPED,
    STARTED,
    UNDONE,
    WAITING,
    ReadSteps,
    StepRow,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import BUDGET_LIMIT, CONFIRMATION_ID
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.bindings.participant import METHOD, path_of
from bespeak.runtime.call import Call, Composing, RoutedCall, StepCall, parties_of
from bespeak.runtime.composition.step import UNDOES
from bespeak.runtime.concurrency import Pace
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.expressions.pool import ExpressionFault
from bespeak.runtime.extension import ANNOUNCE, SPENT
from bespeak.runtime.handling import to_json
from bespeak.runtime.identity.authority import restore_call
from bespeak.runtime.route import Route
from bespeak.state.store.commands.cases import ACCEPTED, ESCALATION, REJECTED, OpenCase, ReadCase
from bespeak.state.store.store import Conflict, Store, level_of

_logger = logging.getLogger(__name__)

KEPT: Final = 30 * 86400.0  # seconds for which a workflow that has ended can be looked up
ATTEMPTS: Final = 5  # attempts of a step with on_failure retry, the first included
_AT_ONCE: Final = 16  # calls of a batch that run at the same time
_FIRST_DELAY: Final = 0.2
_SHORT: Final = 1.0  # seconds up to which a repeated step is waited for here; a longer delay is left to the server
_LONGEST_DELAY: Final = 60.0
# Seconds by which the clock of the loop may be ahead: what has timed out is past its deadline by any clock.
_AFTER: Final = 0.005
_RECHECK: Final = 60.0  # seconds after which a workflow that waits looks for its decision by itself
_LOST: Final = "idempotency-lease-lost"
_UNAVAILABLE: Final = "store-unavailable"
_TRANSIENT: Final = frozenset({status.TIMEOUT, status.RATE_LIMITED, status.UNAVAILABLE, status.SERVER_ERROR})
_GONE: Final = Refused(status.NOT_FOUND, "procedure-not-found", "The procedure is not registered any more.")
_BARRED: Final = -1  # a revision of the agents for a caller that must not act; it is judged again before every step


class LostError(Exception):
    """Raised inside a drive whose workflow another process has taken over."""


class DeadlineError(Exception):
    """Raised inside a drive whose workflow has no time left for another step."""


class Drive:
    """One process's turn at a workflow."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        store: Store,
        spec: Spec,
        call: RoutedCall,
        journal: WorkflowJournal,
        *,
        pace: Pace,
    ) -> None:
        self._dispatcher = dispatcher
        self._store = store
        self.spec = spec
        self._call = call
        self.journal = journal
        self._pace = pace
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._room = Room()
        self._agents = call.server.agents.revision
        call.composing = Composing(dispatcher.new_id(), {}, is_keyed=False)

    async def run(self) -> bool:
        """Do what is left, until it ends, waits or is paused; return False if another process has taken it over."""
        bound = asyncio.timeout(max(self.spec.deadline - time.time(), 0.0) + _AFTER)
        self._renew_later()
        try:
            try:
                async with bound:
                    await self._do()
            except (TimeoutError, DeadlineError) as error:
                if isinstance(error, TimeoutError) and not bound.expired():
                    raise
                await self._time_out()
        except LostError:
            return False
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._renewing is not None:
                self._renewing.cancel()
        return self.journal.state != TAKEN

    async def _do(self) -> None:
        if self.journal.state in (PAUSED, WAITING):
            await self._write(RUNNING)
        self._count_spent()
        for row in tuple(self.journal.rows.values()):
            if row.state == STARTED:
                self.journal.add(interrupted_row(row))
        if self.journal.state == CANCELLING:
            await self._undo(len(self.spec.steps) + 1)
            await self._end(CANCELLED)
        elif self.spec.parallel:
            await self._together()
        else:
            await self._one_by_one()

    async def _time_out(self) -> None:
        """End a workflow whose time has run out: a chain is undone, like one that fails."""
        # A step that was cancelled may be on its way to the store. It comes before this write, and then it is known.
        await self._write(self.journal.state)
        for row in await self._store.read(ReadSteps(self.journal.workflow_id)):
            self.journal.rows[row.number] = row
        if not self.spec.parallel:
            await self._undo(len(self.spec.steps) + 1)
        await self._end(CANCELLED if self.journal.state == CANCELLING else FAILED)

    def _count_spent(self) -> None:
        """Count the cost of the steps of earlier drives: Budget-Limit is for the whole workflow."""
        composing = self._call.composing
        if BUDGET_LIMIT not in self._call.request.headers or composing is None:
            return
        composing.spent.clear()
        spent: Callable[[Endpoint, Any], Iterable[tuple[str, Decimal]]] = self._call.server.hooks[SPENT]
        for number, row in self.journal.rows.items():
            step = self.spec.steps[number - 1]
            counts = row.state in (DONE, UNDONE) and step.procedure is None
            found = find_step(self._call, step.method, step.sought) if counts else None
            if isinstance(found, RoutedCall):
                for unit, amount in spent(found.route.endpoint, self.journal.output(number)):
                    composing.spent[unit] = composing.spent.get(unit, Decimal()) + amount

    def _renew_later(self) -> None:
        """Keep the lease if a step takes long. Most drives end before, and need no task for it."""

        def begin() -> None:
            self._renewing = loop.create_task(self._renew())

        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.journal.lease / 3, begin)

    async def _renew(self) -> None:
        fence = self.journal.fence
        try:
            done = await self._store.do(self.journal.renew())
            if isinstance(done, Conflict) and self.journal.fence == fence:
                self.journal.state = TAKEN  # no further step begins here
                return
            if not isinstance(done, Conflict):
                self.journal.learn(done[0])
        except StoreError as error:
            _logger.log(level_of(error), "could not renew the lease of %s: %s", self.journal.workflow_id, error)
        self._renew_later()

    async def _one_by_one(self) -> None:
        for number, step in enumerate(self.spec.steps, 1):
            row = self.journal.rows.get(number)
            if row is not None and row.state in SETTLED:
                continue
            if not await self._may_begin():
                return
            held = await self._holds(step.when, number) if step.when is not None and row is None else True
            if isinstance(held, Fault):
                policy = step.on_failure or self.spec.on_failure
                goes_on = await self._give_up(number, faulty_row(number, 1, held), policy)
            elif held:
                goes_on = await self._take(number, step, row)
            else:
                self.journal.add(StepRow(number, 1, SKIPPED, 0, "null"))
                continue
            if not goes_on:
                return
        await self._end(COMPLETED)

    async def _together(self) -> None:
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(number: int, step: StepSpec, row: StepRow | None) -> None:
            async with slots:
                await self._pace.wait(self.spec.authority.agent_id)
                if await self._may_begin():
                    await self._take(number, step, row)

        try:
            async with asyncio.TaskGroup() as group:
                for number, step in enumerate(self.spec.steps, 1):
                    row = self.journal.rows.get(number)
                    if row is None or row.state not in (*SETTLED, FAILED):
                        group.create_task(one(number, step, row))
        except BaseExceptionGroup as failures:
            for kind in (LostError, StoreError, DeadlineError):
                found: BaseException | None = failures.subgroup(kind)
                while isinstance(found, BaseExceptionGroup):
                    found = found.exceptions[0]
                if found is not None:
                    raise found from None
            raise
        if self.journal.state == RUNNING:
            failed = any(row.state == FAILED for row in self.journal.rows.values())
            await self._end(FAILED if failed and not self.spec.partial else COMPLETED)

    async def _may_begin(self) -> bool:
        """Return True if a further step may begin: the workflow is neither paused nor cancelled, and has time left."""
        if self.journal.state == RUNNING and time.time() >= self.spec.deadline:
            # The timeout of `run` comes too late if no step has waited since, or the deadline passed between drives.
            raise DeadlineError
        if self.journal.state == RUNNING and self.journal.is_doubtful:
            await self._write(RUNNING)
        return self.journal.state == RUNNING

    async def _take(self, number: int, step: StepSpec, earlier: StepRow | None) -> bool:
        """Carry out a step; return False if the workflow goes no further now."""
        policy = step.on_failure or self.spec.on_failure
        attempt = 1 if earlier is None else earlier.attempt
        repeats = policy == "retry" and attempt < ATTEMPTS and earlier is not None and earlier.code in _TRANSIENT
        if earlier is not None and earlier.state == FAILED and not repeats:
            return await self._fail(number)  # a process died while it was undoing the earlier steps
        if earlier is not None and earlier.state in (FAILED, PENDING):
            attempt += 1
        if earlier is not None and earlier.state == WAITING:
            decided = await self._decision(earlier)
            if decided is not None and decided.state == FAILED:
                return await self._give_up(number, decided, policy)
            if decided is not None:
                return await self._wait(decided)
        while True:
            row = await self._attempt(number, step, attempt, earlier)
            if row is None:
                return self.journal.state == RUNNING
            if row.state == WAITING:
                return await self._wait(row)
            if policy != "retry" or row.code not in _TRANSIENT or attempt >= ATTEMPTS:
                return await self._give_up(number, row, policy)
            if not await self._delay(row):
                return False
            attempt += 1

    async def _delay(self, row: StepRow) -> bool:
        """Wait before another attempt of a step; return False if that is not made now and here."""
        self.journal.add(row)
        delay = min(_FIRST_DELAY * 2 ** (row.attempt - 1), _LONGEST_DELAY)
        if delay > _SHORT:
            await self._write(RUNNING, delay=delay)
            return False
        await asyncio.sleep(delay)
        return await self._may_begin()

    async def _attempt(self, number: int, step: StepSpec, attempt: int, earlier: StepRow | None) -> StepRow | None:
        """Call the endpoint of a step once; return None if it succeeded, which the journal says, or a row if not."""
        found = await self._prepare(step, number, self._outputs(number, propagated=self.spec.propagates))
        if isinstance(found, Fault):
            return faulty_row(number, attempt, found)
        if isinstance(found, Refused):
            return failed_row(number, attempt, self._dispatcher.refuse(self._call, found))
        route, given = found
        reads = route.endpoint.semantic.impact == "informational"
        row = StepRow(number, attempt, DONE, status.OK, "null")
        if not reads and self.spec.propagates and self.journal.has_pending:
            # What was read is noted before it is used: read again after a crash, it could be something else, and the
            # step would have two inputs under one key.
            await self._write(RUNNING)
            if self.journal.state != RUNNING:
                return None
        if step.procedure is not None and not route.endpoint.semantic.is_idempotent:
            self.journal.add(msgspec.structs.replace(row, state=STARTED, code=0))
            await self._write(RUNNING)
        # A step that changes nothing may be repeated after a crash, so it needs no commit of its own.
        key = f"{self.journal.workflow_id}-{number}"
        kept = KEPT if number == len(self.spec.steps) and not self.spec.parallel else None
        journal = None if reads else StepJournal(self.journal, row, key, builtin=route.builtin, kept=kept)
        called = self._dispatcher.run_step(
            self._parent(confirmation_of(earlier)), route, given, step.path_for(given), str(number), journal=journal
        )
        done = await _answer_of(called)
        response = done.response
        assert response is not None, "the step has been answered"
        if not status.is_success(response.status):
            return failed_row(number, attempt, response)
        if reads:
            output = answered(response, builtin=route.builtin) if done.output is None else to_json(done.output)
            self.journal.add(msgspec.structs.replace(row, output=output))
        return None

    async def _wait(self, row: StepRow) -> bool:
        self.journal.add(row)
        await self._write(WAITING, delay=self.spec.authority.within(self._call.server.principals, _RECHECK))
        return False

    async def _give_up(self, number: int, row: StepRow, policy: str) -> bool:
        """Act on a step that failed for good; return True if the workflow goes on."""
        if self._agents == _BARRED and row.code not in _TRANSIENT:
            policy = "abort"  # nobody can decide that a step begins without authority
        if policy == "escalate" and row.code:
            return await self._wait(await self._escalate(row))
        self.journal.add(row if policy != "skip" else msgspec.structs.replace(row, state=SKIPPED))
        if policy == "skip" or self.spec.parallel or self.spec.partial:
            return True
        # Noted before anything is undone, so that a crash does not run the step again.
        await self._write(RUNNING)
        return await self._fail(number) if self.journal.state == RUNNING else False

    async def _fail(self, number: int) -> bool:
        await self._undo(number)
        await self._end(FAILED)
        return False

    async def _undo(self, number: int) -> None:
        """Undo the steps before one, the last one first."""
        for before in range(number - 1, 0, -1):
            step, row = self.spec.steps[before - 1].compensate, self.journal.rows.get(before)
            if step is None or row is None or row.state != DONE:
                continue
            failed = await self._undo_step(step, row, number)
            for attempt in range(1, ATTEMPTS):
                if failed is None or failed.code not in _TRANSIENT:
                    break
                await asyncio.sleep(_FIRST_DELAY * 2 ** (attempt - 1))
                failed = await self._undo_step(step, row, number)
            if failed is not None:  # somebody must know that it is still done
                told = await self._escalate(failed)
                self.journal.add(msgspec.structs.replace(told, state=NOT_UNDONE))

    async def _undo_step(self, step: StepSpec, row: StepRow, number: int) -> StepRow | None:
        """Call what undoes a step; return None if it is undone, else the row of the failure."""
        found = await self._prepare(step, number, self._outputs(number))
        if isinstance(found, Fault):
            return faulty_row(row.number, row.attempt, found)
        if isinstance(found, Refused):
            return failed_row(row.number, row.attempt, self._dispatcher.refuse(self._call, found))
        route, given = found
        undone = msgspec.structs.replace(row, state=UNDONE)
        key = f"{self.journal.workflow_id}-{row.number}-undo"
        journal = StepJournal(self.journal, undone, key, builtin=route.builtin, answers=False)
        called = self._dispatcher.run_step(
            self._call, route, given, step.path_for(given), f"{row.number} undone", flags=UNDOES, journal=journal
        )
        response = (await _answer_of(called)).response
        assert response is not None, "the step has been answered"
        return None if status.is_success(response.status) else failed_row(row.number, row.attempt, response)

    async def _escalate(self, row: StepRow) -> StepRow:
        agent_id, case_id = self.spec.authority.agent_id, f"esc-{secrets.token_hex(16)}"
        recipient, announce = self._call.server.cases.default_recipient, self._call.server.hooks[ANNOUNCE]
        error = msgspec.json.decode(row.output)
        subject = to_json({"workflow_id": self.journal.workflow_id, "step": row.number, "error": error})
        await self._store.do(
            OpenCase(
                case_id=case_id,
                kind=ESCALATION,
                agent_id=agent_id,
                recipient=recipient,
                digest=f"{self.journal.workflow_id}-{row.number}-{row.attempt}",
                subject=subject,
                announcement=announce(self._call.server, case_id, agent_id, recipient, msgspec.Raw(subject.encode())),
                parties=parties_of(self._call),
            )
        )
        told = to_json({**error, "escalation_id": case_id})
        return msgspec.structs.replace(row, state=WAITING, output=told, waits_for=case_id)

    async def _decision(self, row: StepRow) -> StepRow | None:
        """Return None if a waiting step may be tried again, the row of its failure, or its own if it still waits."""
        case_id = msgspec.json.decode(row.output).get("escalation_id")
        if case_id is None:
            return None  # a confirmation: the call itself tells
        case = await self._store.read(ReadCase(case_id))
        if case is None or case.state == REJECTED:
            return msgspec.structs.replace(row, state=FAILED, code=0)
        return None if case.state == ACCEPTED else row

    def _parent(self, confirmation: str | None) -> RoutedCall:
        """Return the call on whose behalf a step runs, with the confirmation that it waited for."""
        outer = self._call
        if confirmation is None:
            return outer
        headers = {**outer.request.headers, CONFIRMATION_ID: confirmation}
        call = Call(msgspec.structs.replace(outer.request, headers=headers), outer.server)
        call.principal, call.routes = outer.principal, outer.routes
        parent = RoutedCall(call, outer.route)
        parent.composing = outer.composing
        return parent

    async def _holds(self, text: str, number: int) -> bool | Fault:
        found = await self._evaluate(text, self._outputs(number, propagated=self.spec.propagates), number)
        if isinstance(found, (bool, Fault)):
            return found
        return ExpressionFault(f"`when` must be true or false; got {to_json(found)[:80]}.")

    async def _evaluate(self, text: str, outputs: Mapping[str, Any], number: int) -> Any | Fault:
        """Evaluate an expression of a step. An earlier step that returned nothing is null."""
        names = variables_of((*map(self.spec.name_of, range(1, number)), *outputs))
        given = {variable: outputs.get(name) for variable, name in names.items()}
        return await self._call.server.expressions.evaluate(text, given, self.spec.authority.agent_id)

    async def _prepare(
        self, step: StepSpec, number: int, outputs: Mapping[str, Any]
    ) -> tuple[Route, dict[str, Any]] | Fault | Refused:
        refused = self._heed_agents()
        if refused is not None:
            return refused
        if step.procedure is not None:
            procedure = self._call.routes.steps.get((METHOD, path_of(step.procedure)))
            return _GONE if procedure is None else (procedure, dict(self.spec.given or {}))
        computed = {}
        for text in expressions_in(step.parameters):
            computed[text] = found = await self._evaluate(text, outputs, number)
            fault = found if isinstance(found, Fault) else self._room.take(found)
            if fault is not None:
                return fault
        given = resolve(step.parameters, outputs, computed, self._room)
        if isinstance(given, Fault):
            return given
        found = find_step(self._call, step.method, step.sought)
        if isinstance(found, Refused):
            return found
        return found.route, found.route.fill_captures(given, found.captures)

    def _heed_agents(self) -> Refused | None:
        """Take up what has become of the caller's authority; refuse if it must not act any more."""
        outer = self._call
        if outer.server.agents.revision == self._agents and self.spec.authority.lasts(outer.server.principals):
            return None
        self._agents = outer.server.agents.revision
        restored = restore_call(self.spec.authority, outer.server, self.spec.method)
        if isinstance(restored, Refused):
            self._agents = _BARRED
            return restored
        restored.composing, self._call = outer.composing, restored
        return None

    def _outputs(self, before: int, *, propagated: bool = True) -> Mapping[str, Any]:
        """Return the outputs of earlier steps by name and by number, and the input."""
        made: dict[str, Any] = {} if self.spec.given is None else {INPUT: self.spec.given}
        if not propagated:
            return made
        for number in range(1, before):
            row = self.journal.rows.get(number)
            if row is not None and row.state in (DONE, UNDONE):
                made[str(number)] = made[self.spec.name_of(number)] = self.journal.output(number)
        return made

    async def _end(self, state: str) -> None:
        await self._write(state, kept=KEPT)

    async def _write(self, state: str, *, delay: float | None = None, kept: float | None = None) -> None:
        done = await self._store.do(self.journal.write(state, delay=delay, kept=kept))
        if isinstance(done, Conflict):
            raise LostError
        self.journal.learn(done[0])


async def _answer_of(called: StepCall | Coroutine[Any, Any, StepCall]) -> StepCall:
    """Wait for a step; raise an exception if its outcome cannot be known here, and whoever drives next repeats it."""
    done: StepCall = await called if type(called) is CoroutineType else called  # type: ignore[assignment]
    code = None if done.response is None else done.response.code
    if code == _LOST:
        raise LostError
    if code == _UNAVAILABLE:
        raise StoreUnavailableError(f"the outcome of step {done.number} could not be noted")
    return done
