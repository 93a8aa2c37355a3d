"""Durable programs: what a workflow awaits is noted, and a program that runs again is given what the journal has.

A program asks for calls, Python functions, times, signals and decisions. Each is one row of the journal, written in the
transaction of the step itself. A program that has to wait is dropped: its record is due when the time has come.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from types import CoroutineType
from typing import Any, Final

import msgspec

from bespeak.contract.handler import Refusal
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.journal import (
    SETTLED,
    TAKEN,
    Note,
    StepError,
    StepJournal,
    answered,
    digest_of,
    failed_row,
    interrupted_row,
    raised,
    said_of,
    written,
)
from bespeak.extensions.workflows.store import END, ReadSteps, StepRow
from bespeak.extensions.workflows.turn import (
    BARRED,
    CONTROL,
    TRANSIENT,
    DeadlineError,
    DiffersError,
    LostError,
    ParkedError,
    Scope,
    Terms,
    Turn,
    answer_of,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.composition.engine import Asked, Failed, Program
from bespeak.runtime.composition.step import APART
from bespeak.runtime.handling import to_json
from bespeak.state.store.store import Command

_logger = logging.getLogger(__name__)

MOST_ROWS: Final = 100_000  # things that one workflow may await
MOST_BYTES: Final = 32 * 1024 * 1024  # bytes of all that it has been answered
_RECHECK: Final = 600.0  # seconds after which a step that waits for a decision looks for it by itself
_STOPPED_FOR: Final = 300.0  # seconds after which a workflow that was stopped is tried again: the code may be another
_decode = msgspec.json.Decoder().decode


class DurableEngine(Turn):
    """One process's turn at a workflow. A subclass says what the program is."""

    @property
    def flushes(self) -> bool:
        """False if calls do not depend on what was read before them."""
        return True

    @abstractmethod
    def program(self) -> Program:
        """Return the program from its beginning. Raises an exception to fail, DiffersError to stop."""

    @abstractmethod
    def result_row(self, value: Any) -> StepRow | None:
        """Return the row that keeps what the program has returned; None to keep nothing."""

    def failure_row(self, error: Mapping[str, Any], code: int) -> StepRow | None:
        """Return the row that says that the program has failed; None if a row of a step says so."""
        return StepRow(END, 1, states.FAILED, code, to_json(error), "end", ended=time.time())

    def begin(self) -> Command | None:
        """Run the program until it has to wait; return the command that ends the workflow if it never has to.

        What is left of it is done by `run`. A workflow that has slept often ends at once, and then needs no task.
        """
        rows = self.journal.rows
        is_plain = self.journal.state == states.RUNNING and END not in rows and time.time() < self.spec.deadline
        if not is_plain or any(row.state == states.STARTED for row in rows.values()):
            return None
        self._count_spent()
        try:
            found = self._start()
            if type(found) is CoroutineType:
                self._rest = found
                return None
            self._conclude(found)
        except Exception as error:  # noqa: BLE001 - `run` finds it
            self._rest = _fail_later(error)
            return None
        return self.ending(states.COMPLETED)

    async def run(self) -> bool:
        """Do what is left, until it ends, waits or is paused; return False if another process has taken it over."""
        self._bounded = task = asyncio.current_task()
        self._renew_later()
        try:
            try:
                await self._do()
            except (asyncio.CancelledError, DeadlineError) as error:
                stops = isinstance(error, asyncio.CancelledError) and not self._is_overdue
                if stops or (self._is_overdue and task is not None and task.uncancel()):
                    raise  # the server stops
                await self._time_out()
        except ParkedError:
            pass
        except LostError:
            return False
        finally:
            self.put_down()
        return self.journal.state != TAKEN

    def put_down(self) -> None:
        """Drop the program. What it does in `finally` is not carried out; it does it again when it runs again."""
        if self._timer is not None:
            self._timer.cancel()
        if self._renewing is not None:
            self._renewing.cancel()
        self._ahead, self._is_away, self._cut = None, False, {}
        program, self._begun = self._begun, None
        if self._rest is not None:
            self._rest.close()
            self._rest = None
        self._leaves, self._waits = 1, {}
        if program is not None:
            close(program)

    async def _do(self) -> None:
        if self._rest is not None:
            await self._work()
            return
        rows = self.journal.rows
        if self.journal.state in (states.PAUSED, states.WAITING, states.SLEEPING):
            await self._write(states.RUNNING)
        self._count_spent()
        for row in tuple(rows.values()):
            if row.state == states.STARTED:
                self.journal.add(interrupted_row(row))
        end = rows.get(END)
        if self.journal.state == states.CANCELLING:
            await self._take_back(states.CANCELLED)
        elif end is not None and end.state == states.FAILED:
            await self._take_back(states.FAILED)  # a process died while it was undoing
        elif time.time() >= self.spec.deadline:
            raise DeadlineError
        else:
            await self._work()

    def _start(self) -> Any:
        """Run the program from its beginning; return its value, or a coroutine of it."""
        self._misfit = None
        self._unseen = {number for number in self.journal.rows if number > 0}
        self._size = sum(len(row.output) for row in self.journal.rows.values())
        self._root = Scope()
        self._begun = self.program()
        return self.advance(self._begun, self._root)

    async def _work(self) -> None:
        rest, self._rest = self._rest, None
        try:
            value = self._start() if rest is None else rest
            value = await value if type(value) is CoroutineType else value
            if self.journal.state != states.COMPLETED:
                self._conclude(value)
        except DiffersError as error:
            await self._stop(error)
        except CONTROL:
            raise
        except Exception as error:  # noqa: BLE001 - the program has failed
            await self._fail(error)
        else:
            if self.journal.state == states.RUNNING:
                await self._write(states.COMPLETED)

    def _conclude(self, value: Any) -> None:
        if self._misfit is not None:
            raise self._misfit
        left = min(self._unseen, default=None)
        if left is not None and self.is_code:
            noted = self.journal.rows[left].asked
            raise DiffersError(f"the code has ended, and the journal has {noted!r} as number {left}")
        if (row := self.result_row(value)) is not None:
            self.journal.add(row)

    async def _stop(self, error: DiffersError) -> None:
        """Stop a workflow whose code does not fit: nothing is undone, and it goes on when the code fits again."""
        _logger.error("%s is stopped: %s", self.journal.workflow_id, error)
        said = to_json({"code": "code-differs", "message": f"{error}."})
        self.journal.add(StepRow(END, 1, states.STOPPED, 0, said, "end"))
        await self._write(states.STOPPED, delay=min(_STOPPED_FOR, max(self.spec.deadline - time.time(), 0.0)))

    async def _fail(self, error: Exception) -> None:
        """Note that the program has failed, so that it does not run again; then undo what it did."""
        if not isinstance(error, (StepError, Refusal)):
            _logger.error("%s failed", self.journal.workflow_id, exc_info=error)
        said, code = said_of(error), error.status if isinstance(error, StepError) else 0
        if (row := self.failure_row(said, code)) is not None:
            self.journal.add(row)
        if any(row.undo for row in self.journal.rows.values()) or not self.is_code:
            await self._write(self.journal.state)
        if self.journal.state in (states.RUNNING, states.CANCELLING):
            await self._take_back(states.FAILED if self.journal.state == states.RUNNING else states.CANCELLED)

    async def _time_out(self) -> None:
        """End a workflow whose time has run out: it is undone, like one that fails."""
        self._bounded = None  # what undoes it may take longer
        if self._is_overdue:
            self._renew_later()
        # A step that was cancelled may be on its way to the store. It comes before this write, and then it is known.
        await self._write(self.journal.state)
        rows, cut = self.journal.rows, self._cut
        for number in cut:
            rows.pop(number, None)
        await self._reread()
        for row in tuple({**cut, **rows}.values()):
            if row.state in (states.STARTED, states.RUNNING) or (
                row.number in cut and row.state not in (*SETTLED, states.FAILED)
            ):
                self.journal.add(interrupted_row(row, "The time of the workflow ran out"))
        if self.journal.state == states.CANCELLING:
            await self._take_back(states.CANCELLED)
            return
        end = self.journal.rows.get(END)
        if end is None or end.state != states.FAILED:
            said = to_json({"code": "timeout", "message": "The time of the workflow ran out."})
            self.journal.add(StepRow(END, 1, states.FAILED, status.TIMEOUT, said, "end", ended=time.time()))
        await self._take_back(states.FAILED)

    async def _reread(self) -> None:
        for row in await self._store.read(ReadSteps(self.journal.workflow_id)):
            self.journal.rows[row.number] = row

    # What the program asks for.

    def _send(self, program: Program, scope: Any, given: Any) -> Asked:
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return self._step(program, scope, given)
        if isinstance(ahead, BaseException):
            raise ahead
        return ahead

    def _step(self, program: Program, scope: Any, given: Any) -> Asked:
        # The program is not the task: a timeout or a task group in it would cancel the whole drive later.
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is not None:
            asyncio.tasks._leave_task(loop, task)
        try:
            return super()._send(program, scope, given)
        except Exception:
            raise
        except BaseException as error:  # `sys.exit` must not stop the server
            raise RuntimeError(f"the function raised {type(error).__name__}: {error}") from error
        finally:
            self.scope = None  # nothing else than the program may ask
            if task is not None:
                asyncio.tasks._enter_task(loop, task)

    def answer(self, asked: Asked, scope: Any) -> Any:
        if self._misfit is not None:
            raise self._misfit
        if type(asked) is not Asked:
            what = f"the code awaits {type(asked).__name__}, which cannot be noted"
            raise DiffersError(f"{what}; a workflow awaits only what its run offers: write `await run.step(function)`")
        if asked.kind == "together":
            return self._all_noted(asked) or self.ask_together(asked)
        row = self.journal.rows.get(asked.number)
        if row is not None:
            self._unseen.discard(asked.number)
            if self.is_code and (row.asked != asked.what or row.digest != digest_of(asked)):
                raise DiffersError(differing(row, asked))
            if row.state in (states.DONE, states.UNDONE, states.NOT_UNDONE):
                return self.read(asked, row.output)
            if row.state == states.SKIPPED:
                return None
            if row.state == states.FAILED:
                return Failed(raised(row))
        elif (too_large := self._find_excess()) is not None:
            return Failed(too_large)
        journal = self.journal
        if journal.state != states.RUNNING or journal.is_doubtful or time.time() >= self.spec.deadline:
            return self._answer_later(asked, scope)
        return getattr(self, f"ask_{asked.kind}")(asked, scope)

    async def _answer_later(self, asked: Asked, scope: Any) -> Any:
        await self._admit(asked.number)
        found = getattr(self, f"ask_{asked.kind}")(asked, scope)
        return await found if type(found) is CoroutineType else found

    def _find_excess(self) -> StepError | None:
        if len(self.journal.rows) < MOST_ROWS and self._size <= MOST_BYTES:
            return None
        most = f"{MOST_ROWS} steps or {MOST_BYTES >> 20} MiB of results, the maximum"
        return StepError({"code": "workflow-too-large", "message": f"The workflow has {most}."})

    def note_at_once(self, asked: Asked, value: Any) -> Any:
        """Return what the journal has for something that need not be awaited; note the value if it has nothing."""
        row = self.journal.rows.get(asked.number)
        if row is None:
            if (too_large := self._find_excess()) is not None:
                raise too_large
            row = self._row(asked, states.DONE, written(value))
            self.journal.add(row)
        elif row.asked != asked.what:
            self._misfit = DiffersError(differing(row, asked))  # kept, because the program may catch it
            raise self._misfit
        self._unseen.discard(asked.number)
        return _decode(row.output)

    def _all_noted(self, asked: Asked) -> list[Any] | None:
        """Return the answers of things that are all noted as done, without a task."""
        rows = self.journal.rows
        if not asked.more or not all(
            type(one) is Asked and (row := rows.get(one.number)) is not None and row.state == states.DONE
            for one in asked.more
        ):
            return None
        return [self.answer(one, None) for one in asked.more]

    async def _branch(self, branch: Asked | tuple[Program, Any]) -> Any:
        await self._workflows.pace.wait(self.spec.authority.agent_id)
        try:
            found = self.answer(branch, None) if isinstance(branch, Asked) else self.advance(*branch)
            return await found if type(found) is CoroutineType else found
        except CONTROL:
            raise
        except Exception as error:  # noqa: BLE001 - raised when all have ended
            return Failed(error)

    async def ask_together(self, asked: Asked) -> Any:
        """Run branches; return their results in order, or raise the failure of the first in order, not in time.

        `more` has things asked for, and pairs of a program and its scope. `given` is the number that run at once.
        """
        branches: Sequence[Asked | tuple[Program, Any]] = asked.more
        results: list[Any] = [None] * len(branches)
        left = iter(range(len(branches)))
        active = min(asked.given or len(branches), len(branches))

        async def work() -> None:
            nonlocal active
            for index in left:
                results[index] = await self._branch(branches[index])
            active -= 1
            if active:  # the last one counts for the branch that goes on
                self._leaves -= 1
                if self._stirred is not None:
                    self._stirred.set()  # if all others wait, the last of them parks
                    self._stirred = None

        if not branches:
            return []
        self._leaves += active - 1
        tasks = [asyncio.ensure_future(work()) for _ in range(active)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                    raise error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for branch in branches:
                if not isinstance(branch, Asked):
                    close(branch[0])
        return next((one for one in results if type(one) is Failed), results)

    async def ask_call(self, asked: Asked, scope: Any) -> Any:
        """Call an endpoint, as often as its terms say; its note is in the transaction of its effects."""
        terms: Terms = asked.more
        while True:
            row = self.journal.rows.get(asked.number)
            if row is not None and await self._rests(asked, row):
                continue
            if row is not None and row.state == states.WAITING:
                decided = await self._decision(row)
                if decided is row:
                    await self._park(asked.number, time.time() + _RECHECK, cases=(row.waits_for,))
                    await self._admit(asked.number)
                    continue
                if decided is not None:
                    self.journal.add(decided)
                    return Failed(raised(decided))
            attempt = 1 if row is None else row.attempt + (row.state == states.PENDING)
            found = await self._attempt(asked, terms, attempt, row, scope)
            if not isinstance(found, StepRow):
                return found
            if found.state == states.WAITING:
                self.journal.add(found)
                continue
            if found.code in TRANSIENT and attempt < terms.attempts:
                await self._delay(asked, found)
                continue
            is_barred = self._agents == BARRED and found.code not in TRANSIENT
            if terms.escalates and found.code and not is_barred:
                self.journal.add(await self._escalate(found))
                continue
            skips = terms.skips and not is_barred
            self.journal.add(msgspec.structs.replace(found, state=states.SKIPPED) if skips else found)
            return None if skips else Failed(raised(found))

    async def _attempt(self, asked: Asked, terms: Terms, attempt: int, row: StepRow | None, scope: Any) -> Any:
        """Call the endpoint once; return its output, or the row of its failure."""
        began = time.time() if row is None or row.began is None else row.began
        digest = digest_of(asked) if self.is_code else 0
        marks: dict[str, Any] = {"asked": asked.what, "digest": digest, "began": began}

        def failing(failed: StepRow) -> StepRow:
            return msgspec.structs.replace(failed, ended=time.time(), **marks)

        given = _decode(asked.given) if self.is_code else asked.given
        found = self._heed_agents() or self._find(terms, given)
        if isinstance(found, Refused):
            return failing(failed_row(asked.number, attempt, self._dispatcher.refuse(self.call, found)))
        route, given, path = found
        reads = route.endpoint.semantic.impact == "informational"
        undo = None if terms.undo is None else to_json({**terms.undo, "of": given})
        done = StepRow(asked.number, attempt, states.DONE, status.OK, "null", undo=undo, **marks)
        if not reads and self.journal.has_pending:
            await self._flush(asked.number)
        if terms.at_most_once and not route.endpoint.semantic.is_idempotent:
            self.journal.add(msgspec.structs.replace(done, state=states.STARTED, code=0))
            await self._write(states.RUNNING)

        def note(response: Response) -> Note:
            output = answered(response, builtin=route.builtin)
            self._size += len(output)
            self.journal.add(msgspec.structs.replace(done, output=output, code=response.status, ended=time.time()))
            ends = self.journal.state == states.RUNNING
            if not terms.ends:
                ends = not route.builtin and self.go_ahead(self.read(asked, output), scope)
            return self.ending(states.COMPLETED) if ends else self.journal.note()

        key = f"{self.journal.workflow_id}-{asked.number}"
        noting = None if reads else StepJournal(self.journal, key, note, builtin=route.builtin)
        flags = APART if self._leaves > 1 else 0
        parent = self._parent(row)
        called = self._dispatcher.run_step(parent, route, given, path, str(asked.number), flags=flags, journal=noting)
        try:
            answer = await (answer_of(called) if terms.timeout is None else _within(terms.timeout, answer_of(called)))
        except TimeoutError:
            await self._write(self.journal.state)
            await self._reread()
            late = self.journal.rows.get(asked.number)
            if late is not None and late.state == states.DONE:  # it was noted in the last moment
                return self.read(asked, late.output)
            said = to_json({"code": "timeout", "message": f"{asked.what} took longer than {terms.timeout:g} s."})
            return failing(StepRow(asked.number, attempt, states.FAILED, status.TIMEOUT, said))
        except asyncio.CancelledError:
            self._cut[asked.number] = msgspec.structs.replace(done, state=states.STARTED, code=0)
            raise
        response = answer.response
        assert response is not None, "the step has been answered"
        if not status.is_success(response.status):
            return failing(failed_row(asked.number, attempt, response, hidden=terms.route is not None))
        if reads:
            output = answered(response, builtin=route.builtin) if answer.output is None else to_json(answer.output)
            self._size += len(output)
            self.journal.add(msgspec.structs.replace(done, output=output, ended=time.time()))
        return self.read(asked, self.journal.rows[asked.number].output)

    async def ask_step(self, asked: Asked, scope: Any) -> Any:
        """Call a Python function, as often as its terms say, and note what it returns or raises."""
        terms: Terms = asked.more
        assert terms.function is not None
        while True:
            row = self.journal.rows.get(asked.number)
            if row is not None and await self._rests(asked, row):
                continue
            attempt = 1 if row is None else row.attempt + 1
            await self._flush(asked.number)
            refused = self._heed_agents()
            if refused is not None:
                return self._failed(asked, {"code": refused.code, "message": refused.message}, code=refused.status)
            if terms.at_most_once:
                self.journal.add(self._row(asked, states.STARTED, "null", ended=None))
                await self._write(states.RUNNING)
            try:
                value = terms.function(f"{self.journal.workflow_id}-{asked.number}")
                if isinstance(value, Awaitable):
                    value = await (value if terms.timeout is None else _within(terms.timeout, value))
                result = self.read(asked, output := written(value))
                if type(result) is Failed:
                    raise result.error
            except CONTROL:
                raise
            except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
                # Noted, and raised in the same form now and later.
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    self._cut[asked.number] = self._row(asked, states.STARTED, "null", attempt=attempt)
                    raise
                _logger.warning("%s: %s failed", self.journal.workflow_id, asked.what, exc_info=error)
                failed = self._row(asked, states.FAILED, to_json(said_of(error, terms.timeout)), attempt=attempt)
                if isinstance(error, Refusal) or attempt >= terms.attempts:
                    self.journal.add(failed)
                    return Failed(raised(failed))
                await self._delay(asked, failed)
                continue
            undo = None if terms.undo is None else to_json(terms.undo)
            self.journal.add(self._row(asked, states.DONE, output, attempt=attempt, undo=undo))
            if self.go_ahead(result, scope):
                await self._write(states.COMPLETED)
            else:
                await self._do_noted(self.journal.note())
            return result

    async def ask_value(self, asked: Asked, scope: Any) -> Any:
        """Note a value that is the same in every replay: `more` returns it."""
        try:
            value = asked.more()
            return self._done(asked, written(await value if isinstance(value, Coroutine) else value))
        except StepError as error:
            return self._failed(asked, error.error)

    def go_ahead(self, value: Any, scope: Any) -> bool:
        """Run the program to the next thing that it asks for, before the last one is committed; True if it has ended.

        If the commit fails, the drive ends, and with it what the program did here: it may only compute.
        """
        if scope is not self._root or self._leaves != 1 or self._begun is None or self.journal.state != states.RUNNING:
            return False
        if asyncio._get_running_loop() is None:
            return False  # the note is built in the thread of the store
        try:
            self._ahead = self._step(self._begun, scope, value)
        except StopIteration as end:
            self._ahead = end
            try:
                self._conclude(end.value)
            except Exception as error:  # noqa: BLE001 - raised after the commit
                self._ahead = error
                return False
            return True
        except Exception as error:  # noqa: BLE001 - raised after the commit
            self._ahead = error
        return False

    async def _flush(self, number: int) -> None:
        """Write what was read before something outside of the store can happen: read again, it could differ."""
        if self.flushes and self.journal.has_pending:
            await self._write(states.RUNNING)
            await self._admit(number)


async def _fail_later(error: Exception) -> None:
    raise error


async def _within(seconds: float, waiting: Awaitable[Any]) -> Any:
    async with asyncio.timeout(seconds):
        return await waiting


def differing(row: StepRow, asked: Asked) -> str:
    if row.asked == asked.what:
        return f"the code asks for {asked.what!r} as number {asked.number} with another input than the journal has"
    return f"the code asks for {asked.what!r} as number {asked.number}, and the journal has {row.asked!r}"


def close(program: Program) -> None:
    try:
        program.close()
    except Exception as error:  # it awaits something in `finally`, and does so again when it runs again
        _logger.debug("a workflow that was put away went on", exc_info=error)
