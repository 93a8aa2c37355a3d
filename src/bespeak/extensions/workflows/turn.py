"""One process's turn at a workflow: its lease, the authority of its caller, what it undoes and how it ends."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from types import CoroutineType
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import fill_path
from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.journal import (
    TAKEN,
    TOO_LATE,
    Note,
    StepError,
    StepJournal,
    WorkflowJournal,
    digest_of,
    failed_row,
    open_case,
    raised,
)
from bespeak.extensions.workflows.spec import Spec, find_step, tell_outcome
from bespeak.extensions.workflows.store import BITS, EndRun, ReadSignals, StepRow
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import BUDGET_LIMIT, CONFIRMATION_ID
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import Call, Composing, RoutedCall, StepCall
from bespeak.runtime.composition.engine import Asked, Engine, Failed, Program
from bespeak.runtime.composition.step import UNDOES
from bespeak.runtime.extension import ASK_PERSON, SPENT
from bespeak.runtime.handling import RefusedError, new_id, to_json
from bespeak.runtime.identity.authority import restore_call
from bespeak.runtime.route import Route
from bespeak.runtime.server import Server
from bespeak.state.store.commands.cases import ACCEPTED, DEFERRED, REJECTED, ReadCase
from bespeak.state.store.commands.cases import PENDING as UNDECIDED
from bespeak.state.store.store import Command, Conflict, level_of

if TYPE_CHECKING:
    from bespeak.extensions.workflows.engine import Workflows

_logger = logging.getLogger(__name__)

KEPT: Final = 30 * 86400.0  # seconds for which a workflow that has ended can be looked up
ATTEMPTS: Final = 5  # attempts of what is retried, the first included
TRANSIENT: Final = frozenset({status.TIMEOUT, status.RATE_LIMITED, status.UNAVAILABLE, status.SERVER_ERROR})
FIRST_DELAY: Final = 0.2
_AFTER: Final = 0.005  # seconds by which the clock of the loop may be ahead
BARRED: Final = -1  # a revision of the agents for a caller that must not act; it is judged again before every step
_NAME: Final = re.compile(r"\{(\w+)\}")
_LONGEST_DELAY: Final = 60.0
_SHORT: Final = 0.5  # seconds up to which a workflow waits in memory; for longer it is dropped
_POLL: Final = 1.0  # seconds after which a branch that waits looks again, while others are busy
_decode = msgspec.json.Decoder().decode


class LostError(Exception):
    """Raised inside a drive whose workflow another process has taken over."""


class DiffersError(Exception):
    """The code does not fit the journal, or awaits something that cannot be noted. The workflow is stopped."""


class DeadlineError(Exception):
    """Raised inside a drive whose workflow has no time left."""


class ParkedError(BaseException):
    """Raised inside a drive that goes no further now. Not an Exception, so that no workflow catches it."""


CONTROL: Final = (DiffersError, LostError, DeadlineError, StoreError)  # end a drive, and are never the program's own


class Scope:
    """Numbers of the things that one branch of a program awaits, in the order in which it asks."""

    __slots__ = ("_base", "_count")

    def __init__(self, branch: int = 0) -> None:
        if branch >> 2 * BITS:
            raise DiffersError("branches are nested more than 2 deep; write the inner ones one after the other")
        self._base, self._count = branch << BITS, 0

    def next(self) -> int:
        self._count += 1
        if self._count >> BITS:
            raise DiffersError(f"a branch asks for more than {1 << BITS} things")
        return self._base + self._count


class Terms(msgspec.Struct, frozen=True, gc=False):
    """How a call or a function is carried out: `more` of an Asked of kind `call` or `step`."""

    method: str = ""
    path: str = "/"  # may have {names} of the input
    function: Callable[..., Any] | None = None  # of a `step`: takes the input by position and name
    undo: Mapping[str, Any] | None = None  # method, path and input of the call that undoes it
    timeout: float | None = None  # seconds that one attempt may take
    attempts: int = 1  # attempts of what fails for the moment
    delay: float | None = None  # seconds before the second attempt
    at_most_once: bool = False  # noted before it begins, and not begun again: after a crash it has failed
    escalates: bool = False  # a failure waits for somebody who lets it be tried again
    skips: bool = False  # a failure is noted as skipped, and None is returned
    ends: bool = False  # the workflow is completed with it
    route: Route | None = None  # route to call in place of method and path
    returns: Any = None  # type of the result; None for plain JSON


class Turn(Engine):
    """What every workflow does beside its program."""

    is_code: ClassVar[bool] = True  # False for a program that is data, which cannot differ from its journal

    def __init__(self, workflows: Workflows, spec: Spec, call: RoutedCall, journal: WorkflowJournal) -> None:
        self._workflows, self._dispatcher, self._store = workflows, workflows.dispatcher, workflows.store
        self.spec = spec
        self.call = call
        self.journal = journal
        self.scope: Scope | None = None
        self._begun: Program | None = None
        self._rest: Coroutine[Any, Any, Any] | None = None  # what `begin` has left of it
        self._root: Scope | None = None
        self._ahead: Asked | BaseException | None = None  # what the program asked for before the last step was noted
        self._unseen: set[int] = set()  # rows that the program has not asked for yet
        self._size = 0
        self._misfit: DiffersError | None = None  # what does not fit the journal, as the program was told
        self._leaves = 1  # branches that are running
        self._waits: dict[int, tuple[float, tuple[str, ...], tuple[str, ...]]] = {}  # time, signals and cases of waits
        self._stirred: asyncio.Event | None = None  # set when a branch has ended, while others wait
        self._is_away = False
        self._cut: dict[int, StepRow] = {}  # what was cancelled while it ran
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None
        self._bounded: asyncio.Task[Any] | None = None  # the drive, if it is cancelled at the deadline
        self._is_overdue = False  # True if it was
        self._agents = call.server.agents.revision
        call.composing = Composing(self._dispatcher.new_id(), {}, is_keyed=False)

    async def undo_of(self, row: StepRow) -> tuple[Terms, dict[str, Any]] | None:
        """Return the call that undoes a row, and its input; None if nothing does. Raises StepError."""
        if row.undo is None:
            return None
        undo, output = _decode(row.undo), _decode(row.output)
        known = {**undo.get("of", {}), **(output if isinstance(output, dict) else {}), **undo.get("input", {})}
        return Terms(method=undo["method"], path=undo["path"]), known

    async def _take_back(self, state: str) -> None:
        await self.undo_rows(lambda number: number > 0)
        await self._write(state)

    async def undo_rows(self, chosen: Callable[[int], bool]) -> None:
        """Undo what was done, the last one first, as far as the numbers of the rows are chosen."""
        for row in sorted(self.journal.rows.values(), key=_place, reverse=True):
            if row.state != states.DONE or not chosen(row.number):
                continue
            try:
                undo = await self.undo_of(row)
            except StepError as error:
                output = to_json(error.error)
                failed: StepRow | None = msgspec.structs.replace(row, state=states.FAILED, code=0, output=output)
            else:
                if undo is None:
                    continue
                failed = await self._undo(*undo, row)
                for attempt in range(1, ATTEMPTS):
                    if failed is None or failed.code not in TRANSIENT:
                        break
                    await asyncio.sleep(FIRST_DELAY * 2 ** (attempt - 1))
                    failed = await self._undo(*undo, row)
            if failed is not None:  # somebody must know that it is still done
                told = await self._escalate(failed)
                self.journal.add(msgspec.structs.replace(told, state=states.NOT_UNDONE, waits_for=None))

    async def _undo(self, terms: Terms, known: dict[str, Any], row: StepRow) -> StepRow | None:
        """Call what undoes a row; return None if it is undone, else the row with the failure."""

        def note(response: Response) -> Note:
            self.journal.add(msgspec.structs.replace(row, state=states.UNDONE, code=response.status))
            return self.journal.note()

        found = self._heed_agents() or self._find(terms, known)
        if isinstance(found, Refused):
            response: Response | None = self._dispatcher.refuse(self.call, found)
        else:
            route, given, path = found
            if self.is_code:  # what the call was given and has answered, as far as it is of use
                takes = route.endpoint.input_schema.get("properties", {})
                given = {name: value for name, value in given.items() if name in takes}
            number, key = f"{row.number} undone", f"{self.journal.workflow_id}-{row.number}-undo"
            noting = StepJournal(self.journal, key, note, builtin=route.builtin)
            called = self._dispatcher.run_step(self.call, route, given, path, number, flags=UNDOES, journal=noting)
            response = (await answer_of(called)).response
        assert response is not None, "the step has been answered"
        if status.is_success(response.status):
            return None
        failed = failed_row(row.number, row.attempt, response)
        return msgspec.structs.replace(row, state=states.FAILED, code=failed.code, output=failed.output)

    async def _escalate(self, row: StepRow) -> StepRow:
        """Open a case about a failure; return the row that waits for its decision."""
        workflow_id, case_id, error = self.journal.workflow_id, new_id("esc"), _decode(row.output)
        subject = {"workflow_id": workflow_id, "step": row.number, "error": error}
        digest = f"{workflow_id}-{row.number}-{row.attempt}"
        await self._store.do(open_case(self.call, case_id, self.spec.authority.agent_id, digest, subject))
        told = to_json({**error, "escalation_id": case_id})
        return msgspec.structs.replace(row, state=states.WAITING, output=told, waits_for=case_id)

    async def _decision(self, row: StepRow) -> StepRow | None:
        """Return None if a waiting step may be tried again, the row of its failure, or its own if it still waits."""
        error = _decode(row.output)
        case = await self._store.read(ReadCase(row.waits_for or ""))
        if "escalation_id" not in error:  # a confirmation: the call itself tells what has become of it
            return row if case is not None and case.state in (UNDECIDED, DEFERRED) else None
        if case is None or case.state == REJECTED:
            return msgspec.structs.replace(row, state=states.FAILED, code=0, waits_for=None)
        return None if case.state == ACCEPTED else row

    def _parent(self, row: StepRow | None) -> RoutedCall:
        """Return the call on whose behalf a step runs, with the confirmation that it waited for."""
        outer, waited = self.call, row if row is not None and row.state == states.WAITING else None
        confirmation = None if waited is None else _decode(waited.output).get("confirmation_id")
        if not isinstance(confirmation, str):
            return outer
        headers = {**outer.request.headers, CONFIRMATION_ID: confirmation}
        call = Call(msgspec.structs.replace(outer.request, headers=headers), outer.server)
        call.principal, call.routes = outer.principal, outer.routes
        parent = RoutedCall(call, outer.route)
        parent.composing = outer.composing
        return parent

    def _find(self, terms: Terms, given: dict[str, Any]) -> tuple[Route, dict[str, Any], str] | Refused:
        if terms.route is not None:
            return terms.route, given, terms.route.endpoint.path
        sought = terms.path
        if "{" in sought:
            sought = _NAME.sub(lambda name: "-" if name[1] in given else name[0], sought)
        found = find_step(self.call, terms.method, sought)
        if isinstance(found, Refused):
            return found
        if found.route.endpoint.passes_on:
            message = f"{terms.method} {terms.path} runs other calls; await them one by one instead."
            return Refused(status.UNPROCESSABLE, "call-not-possible", message)
        captures = found.captures if sought == terms.path else None
        given = found.route.fill_captures(given, captures)
        filled = fill_path(terms.path, given) if "{" in terms.path else (terms.path, None)
        return found.route, given, sought if isinstance(filled, Fault) else filled[0]

    def _heed_agents(self) -> Refused | None:
        """Take up what has become of the caller's authority; refuse if it must not act any more."""
        outer, server = self.call, self.call.server
        if server.agents.revision == self._agents and self.spec.authority.lasts(server.principals):
            return None
        self._agents = server.agents.revision
        restored = restore_call(self.spec.authority, server, self.spec.method)
        if isinstance(restored, Refused):
            self._agents = BARRED
            return restored
        restored.composing, self.call = outer.composing, restored
        return None

    def _count_spent(self) -> None:
        """Count the cost of the calls of earlier drives: Budget-Limit is for the whole workflow."""
        composing = self.call.composing
        if BUDGET_LIMIT not in self.call.request.headers or composing is None:
            return
        composing.spent.clear()
        spent: Callable[[Endpoint, Any], Iterable[tuple[str, Decimal]]] = self.call.server.hooks[SPENT]
        for row in self.journal.rows.values():
            method, _, path = row.asked.partition(" ")
            called = row.state != states.WAITING and row.code not in (0, status.BUDGET_EXCEEDED)
            counts = row.number > 0 and called and path.startswith("/")
            found = find_step(self.call, method, _NAME.sub("-", path)) if counts else None
            if isinstance(found, RoutedCall):
                output = _decode(row.output) if row.state in (states.DONE, states.UNDONE) else None
                for unit, amount in spent(found.route.endpoint, output):
                    times = row.attempt if unit == "calls" else 1
                    composing.spent[unit] = composing.spent.get(unit, Decimal()) + amount * times

    def ending(self, state: str) -> Note:
        return end_run(self.spec, self.journal, state, self.call.server)

    async def _write(self, state: str, *, delay: float | None = None) -> None:
        await self._do_noted(self.ending(state) if state in states.ENDED else self.journal.write(state, delay=delay))

    async def _do_noted(self, command: Command) -> None:
        done = await self._store.do(command)
        if isinstance(done, Conflict):
            raise LostError
        self.journal.learn(done[0])

    def _renew_later(self) -> None:
        """Keep the lease if a step takes long, and cancel it at the deadline. Most drives end before."""

        def begin() -> None:
            if self._bounded is not None and time.time() >= self.spec.deadline:
                self._is_overdue = self._bounded.cancel()
            else:
                self._renewing = loop.create_task(self._renew())

        if self._timer is not None:
            self._timer.cancel()  # it could cancel what is done because the deadline has passed
        loop, delay = asyncio.get_running_loop(), self.journal.lease / 3
        if self._bounded is not None:
            delay = min(delay, max(self.spec.deadline - time.time(), 0.0) + _AFTER)
        self._timer = loop.call_later(delay, begin)

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

    # Branches.

    async def _park(
        self, number: int, until: float, *, signals: tuple[str, ...] = (), cases: tuple[str | None, ...] = ()
    ) -> None:
        """Return when something may have changed; if every branch waits, end the drive: nothing is kept in memory."""
        self._waits[number] = until, signals, tuple(filter(None, cases))
        try:
            if len(self._waits) >= self._leaves:
                await self._put_away()
            stirred = self._stirred = self._stirred or asyncio.Event()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(min(until - time.time(), _POLL), _AFTER)):
                    await stirred.wait()
            if self._is_away:
                await asyncio.get_running_loop().create_future()  # the branch that has parked cancels this one
        finally:
            self._waits.pop(number, None)

    async def _put_away(self) -> None:
        self._is_away = True
        journal, waits = self.journal, self._waits.values()
        if journal.state == states.RUNNING:
            until = min(self.spec.deadline, *(one[0] for one in waits))
            delay = self.spec.authority.within(self.call.server.principals, max(until - time.time(), 0.0))
            signals = tuple(dict.fromkeys(name for one in waits for name in one[1]))
            cases = tuple(dict.fromkeys(case_id for one in waits for case_id in one[2]))
            await self._do_noted(journal.park(states.WAITING if cases else states.SLEEPING, delay, signals, cases))
        elif journal.has_pending:
            await self._write(journal.state)
        raise ParkedError

    # What it waits for.

    def read(self, asked: Asked, text: str) -> Any:
        """Return a noted answer as the program gets it, or Failed. Never raises."""
        return _decode(text)

    def _row(self, asked: Asked, state: str, output: str, **more: Any) -> StepRow:
        earlier, now = self.journal.rows.get(asked.number), time.time()
        began = now if earlier is None or earlier.began is None else earlier.began
        self._size += len(output)
        row = StepRow(asked.number, 1, state, 0, output, asked.what, digest_of(asked), began, now)
        return msgspec.structs.replace(row, **more) if more else row

    def _done(self, asked: Asked, output: str, **more: Any) -> Any:
        """Note an answer with the next thing that is written, and return it as the program gets it."""
        self.journal.add(self._row(asked, states.DONE, output, **more))
        return self.read(asked, output)

    def _failed(self, asked: Asked, error: Mapping[str, Any], **more: Any) -> Failed:
        row = self._row(asked, states.FAILED, to_json(error), **more)
        self.journal.add(row)
        return Failed(raised(row))

    async def _admit(self, number: int) -> None:
        """Let nothing further begin in a workflow that is paused or cancelled, or has no time left."""
        if time.time() >= self.spec.deadline:
            raise DeadlineError
        if self.journal.state == states.RUNNING and self.journal.is_doubtful:
            await self._write(states.RUNNING)
        while self.journal.state != states.RUNNING:
            await self._park(number, self.spec.deadline)

    def ask_sleep(self, asked: Asked, scope: Any) -> Coroutine[Any, Any, None] | None:
        """Wait until a time: `more` is the number of seconds, or a time since 1970 in a tuple."""
        row, more, now = self.journal.rows.get(asked.number), asked.more, time.time()
        until: float = more[0] if isinstance(more, tuple) else now + more
        until = min(self.spec.deadline + 1.0, until) if row is None else _decode(row.output)
        if until > now:
            return self._sleep(asked, until)
        self.journal.add(self._row(asked, states.DONE, "null"), lazy=True)
        return None

    async def _sleep(self, asked: Asked, until: float) -> None:
        while (left := until - time.time()) > 0:
            if left <= _SHORT and self._leaves == 1:
                await asyncio.sleep(left)
            else:
                self.journal.add(self._row(asked, states.WAITING, repr(until), ended=None))
                await self._park(asked.number, until)
            await self._admit(asked.number)
        self.journal.add(self._row(asked, states.DONE, "null"), lazy=True)

    async def ask_wait(self, asked: Asked, scope: Any) -> Any:
        """Take the oldest signal of a name; `more` is the name, and the seconds until it is too late or None."""
        name, seconds = asked.more
        row = self.journal.rows.get(asked.number)
        until = None if seconds is None else time.time() + seconds
        until = until if row is None else _decode(row.output)
        while True:
            for one in await self._store.read(ReadSignals(self.journal.workflow_id, name)):
                # One that this drive has taken counts as taken, though the store does not know yet.
                if self.journal.rows.get(one.number, one).state == states.ARRIVED:
                    self.journal.add(msgspec.structs.replace(one, state=states.RECEIVED))
                    return self._done(asked, one.output)
            if until is not None and until <= time.time():
                return self._failed(asked, {"code": TOO_LATE, "message": f"no signal {name!r} came in time"})
            self.journal.add(self._row(asked, states.WAITING, "null" if until is None else repr(until), ended=None))
            await self._park(asked.number, until or self.spec.deadline, signals=(name,))
            await self._admit(asked.number)

    async def ask_ask(self, asked: Asked, scope: Any) -> Any:
        """Ask a person for a yes or no; `more` is the person, the question, and the seconds until it is too late."""
        person, question, seconds = asked.more
        case_id = f"esc-{self.journal.workflow_id}-{asked.number}"
        if asked.number not in self.journal.rows:
            refused = self._heed_agents()
            try:
                if refused is not None:
                    raise RefusedError(refused)
                within = max(min(seconds, self.spec.deadline - time.time()), 1.0)
                ask = self.call.server.hooks[ASK_PERSON]
                opening = ask(self.call, person, question, case_id=case_id, within=within)
            except RefusedError as error:
                told = {"code": error.refused.code, "message": error.refused.message, **error.refused.details}
                return self._failed(asked, told, code=error.refused.status)
            self.journal.add(self._row(asked, states.WAITING, "null", ended=None, waits_for=case_id))
            opened = await self._store.do(opening, self.journal.note())
            if isinstance(opened, Conflict):
                if opened.reason != "too-many":
                    raise LostError
                told = {"code": "too-many-cases", "message": "The agent has too many undecided cases."}
                return self._failed(asked, told, code=status.RATE_LIMITED)
        while True:
            case = await self._store.read(ReadCase(case_id))
            if case is not None and case.state in (UNDECIDED, DEFERRED):
                await self._park(asked.number, case.expires or self.spec.deadline, cases=(case_id,))
                await self._admit(asked.number)
            elif case is not None and case.state in (ACCEPTED, REJECTED):
                return self._done(asked, "true" if case.state == ACCEPTED else "false")
            else:
                return self._failed(asked, {"code": TOO_LATE, "message": f"{person} has not answered in time"})

    async def _rests(self, asked: Asked, row: StepRow) -> bool:
        """Wait for the time of the next attempt; return True if it may have come."""
        until = _decode(row.output).get("until", 0.0) if row.state == states.PENDING else 0.0
        if until <= time.time():
            return False
        await self._park(asked.number, until)
        await self._admit(asked.number)
        return True

    async def _delay(self, asked: Asked, failed: StepRow) -> None:
        """Note a failed attempt, and wait before the next one."""
        first = FIRST_DELAY if asked.more.delay is None else asked.more.delay
        delay = min(first * 2 ** (failed.attempt - 1), max(first, _LONGEST_DELAY))
        output = to_json({**_decode(failed.output), "until": time.time() + delay})
        self.journal.add(msgspec.structs.replace(failed, state=states.PENDING, output=output, ended=None))
        if delay <= _SHORT:
            await asyncio.sleep(delay)
            await self._admit(asked.number)


def end_run(spec: Spec, journal: WorkflowJournal, state: str, server: Server) -> Note:
    """Return the command that ends a workflow, and tells its callback how."""
    noted = journal.write(state, kept=KEPT)
    if spec.callback is None:
        return noted
    from bespeak.extensions.messages.posting import Posting, post  # noqa: PLC0415 - few workflows have a callback

    told: dict[str, Any] = {"workflow_id": journal.workflow_id, "status": state}
    told |= tell_outcome(spec, state, journal.rows.values())
    server_id = server.registrar.service.identity.server_id
    # One workflow ends once, so that its callback can recognise a posting that comes twice.
    posting = Posting(f"posting-{journal.workflow_id}", "callback", server_id, told, recipient=spec.authority.agent_id)
    return EndRun(noted, post(spec.callback, posting))


def _place(row: StepRow) -> int:
    """Return where a row is in the order of the program: a branch is where it begins."""
    number = row.number
    while 0 < number < 1 << 2 * BITS:
        number <<= BITS
    return number


async def answer_of(called: StepCall | Coroutine[Any, Any, StepCall]) -> StepCall:
    """Wait for a step; raise an exception if its outcome cannot be known here, and whoever drives next repeats it."""
    done: StepCall = await called if type(called) is CoroutineType else called  # type: ignore[assignment]
    code = None if done.response is None else done.response.code
    if code == "idempotency-lease-lost":
        raise LostError
    if code == "store-unavailable":
        raise StoreUnavailableError(f"the outcome of step {done.number} could not be noted")
    return done
