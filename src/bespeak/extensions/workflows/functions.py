"""Workflows that are Python functions. The function runs again after a crash, and is given what the journal has."""

from __future__ import annotations

import inspect
import random
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar, overload

import msgspec

from bespeak.contract.participant import WorkflowOptions
from bespeak.errors import ContractError
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.durable import DurableEngine
from bespeak.extensions.workflows.journal import StepError, encode_value
from bespeak.extensions.workflows.store import END, StepRow
from bespeak.extensions.workflows.turn import DiffersError, Scope, Terms
from bespeak.protocol import status
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.composition.engine import Asked, Failed, Program
from bespeak.runtime.concurrency import submit
from bespeak.runtime.functions.annotations import validate_foreign
from bespeak.runtime.functions.needs import is_async
from bespeak.runtime.functions.output_filter import UnfitResult
from bespeak.runtime.functions.signature import ConversionError, read_hints
from bespeak.runtime.route import Route

MOST_MAPPED: Final = 10_000  # rows of one `run.map`
_KEY: Final = "idempotency_key"  # parameter of a step function that is given its key
_decode = msgspec.json.Decoder().decode

T = TypeVar("T")
Undo = tuple[str, str] | tuple[str, str, Mapping[str, Any]]
Seconds = float | timedelta


class Run:
    """One run of a workflow: everything that its function awaits.

    What is awaited is noted. When the function runs again, after a crash or a long wait, it gets the noted results, up
    to the place where it was. So it must ask for the same things in the same order: its own code may only compute, and
    whatever reads a clock, a file or a network is a `step`. Await nothing else, or the run is stopped.
    """

    __slots__ = ("_engine", "id")

    is_context = True  # it stands where a handler has its Context

    def __init__(self, engine: FunctionDrive) -> None:
        self._engine = engine
        self.id: str = engine.journal.workflow_id
        """Id of the run, for CHECK, CANCEL and signals."""

    @property
    def agent_id(self) -> str:
        """Agent on whose behalf the run acts."""
        return self._engine.spec.authority.agent_id

    def call(
        self,
        method: str,
        path: str = "/",
        given: Mapping[str, Any] | None = None,
        /,
        *,
        undo: Undo | None = None,
        retries: int = 0,
        timeout: Seconds | None = None,
        returns: Any = None,
        **parameters: Any,
    ) -> Awaitable[Any]:
        """Call an endpoint of the service, in the authority of the caller, through every gate.

        Its effects in the store and its note are one transaction. `parameters` are its input; `given` is for those
        whose names this method has. A refusal raises StepError.

        - `undo` is the call that undoes it if the run fails later: method, path, and perhaps input. Its input has also
          what this call was given and has returned, as far as it takes that.
        - `retries` is how often a call is repeated that fails for the moment: 408, 429, 500 and 503.
        - `timeout` bounds one attempt.
        - `returns` is the type of the result; by default it is plain JSON.
        """
        terms = Terms(method=method, path=path, returns=returns, **_bounds(undo, retries, timeout))
        return self._ask("call", f"{method} {path}", {**(given or {}), **parameters}, terms)

    @overload
    def step(self, function: Callable[..., Coroutine[Any, Any, T]], /, *given: Any, **options: Any) -> Awaitable[T]: ...
    @overload
    def step(self, function: Callable[..., T], /, *given: Any, **options: Any) -> Awaitable[T]: ...
    def step(
        self,
        function: Callable[..., Any],
        /,
        *given: Any,
        retries: int = 0,
        timeout: Seconds | None = None,
        at_most_once: bool = False,
        undo: Undo | None = None,
        **named: Any,
    ) -> Awaitable[Any]:
        """Call any function and note what it returns, by its return annotation. An exception raises StepError.

        An `async def` runs in the event loop, a `def` in a thread. If the process dies while it runs, it runs again: a
        parameter `idempotency_key` is given a key that is the same then.

        - `retries` is how often it is called again after an exception, with growing pauses; a Refusal is final.
        - `timeout` bounds one attempt; a `def` goes on in its thread.
        - `at_most_once` notes that it begins. If the process dies while it runs, it has failed with `interrupted`.
        - `undo` is as for `call`.
        """
        begin, bounds = partial(_begin, function, given, named, self.agent_id), _bounds(undo, retries, timeout)
        terms = Terms(function=begin, at_most_once=at_most_once, returns=_traits(function).returns, **bounds)
        while isinstance(function, partial):
            function = function.func
        name = getattr(function, "__qualname__", type(function).__qualname__)
        return self._ask("step", f"step {name}", [given, named] if given or named else None, terms)

    def sleep(self, seconds: Seconds = 0.0, *, until: datetime | None = None) -> Awaitable[None]:
        """Wait for some time, or until a time. A run that sleeps is not in memory."""
        if until is not None and until.tzinfo is None:
            raise ValueError("`until` needs a time zone: write datetime(..., tzinfo=UTC)")
        return self._ask("sleep", "sleep", None, _seconds(seconds) if until is None else (until.timestamp(),))

    def wait_for(self, name: str, timeout: Seconds | None = None) -> Awaitable[Any]:
        """Wait for a signal and return its value. One that came before is taken at once, the oldest first.

        Raises WaitTimeoutError if none comes in time. Signals come from `context.signal` and NOTIFY /workflows.
        """
        return self._ask("wait", f"wait {name}", None, (name, _seconds(timeout)))

    def ask(self, person: str, question: str, *, within: Seconds | None = None) -> Awaitable[bool]:
        """Ask a person; return True for yes and False for no. Raises WaitTimeoutError without an answer in time.

        The person decides by the link of a mail, with `bespeak cases`, or by CONFIRM; the caller cannot.
        """
        limit = self._engine.spec.deadline - time.time() if within is None else _seconds(within)
        return self._ask("ask", f"ask {person}", question, (person, question, limit))

    def together(self, *branches: Awaitable[Any]) -> Awaitable[list[Any]]:
        """Run several things at the same time: calls, steps, and coroutines of functions that use this run.

        All of them end before the first failure, in their order, is raised.
        """
        return self._side_by_side(branches, None)

    def map(self, function: Callable[..., Any], rows: Iterable[Any], *, at_once: int = 16) -> Awaitable[list[Any]]:
        """Call a function for each row, some at the same time; return the results in the order of the rows.

        A function whose first parameter is a Run is a branch: `await part(run, row)`. Any other is a step.
        """
        rows = list(rows)
        if len(rows) > MOST_MAPPED:
            raise ValueError(f"run.map takes at most {MOST_MAPPED} rows; got {len(rows)}. Map parts, one by one.")
        outer, self._engine.scope = self._engine.scope, Scope(self._next())
        try:
            takes_run = _traits(function).takes_run
            made = (function(self, row) if takes_run else self.step(function, row) for row in rows)
            return self._side_by_side(made, at_once)
        finally:
            self._engine.scope = outer

    def now(self) -> datetime:
        """Return the time at which this was asked for the first time. It is not awaited."""
        noted = self._engine.note_at_once(self._ask("value", "now", None, None), time.time())
        return datetime.fromtimestamp(noted, UTC)

    def uuid(self) -> uuid.UUID:
        """Return an id that is the same whenever the function runs again. It is not awaited."""
        return uuid.uuid5(uuid.NAMESPACE_OID, f"{self.id}-{self._next()}")

    def random(self) -> float:
        """Return a random number from 0 to 1 that is the same whenever the function runs again. It is not awaited."""
        return random.Random(f"{self.id}-{self._next()}").random()  # noqa: S311 - not a secret

    def _next(self) -> int:
        if self._engine.scope is None:
            raise RuntimeError("only the function of the workflow itself may use its run, while it runs")
        return self._engine.scope.next()

    def _ask(self, kind: str, what: str, given: Any, more: Any) -> Asked:
        return Asked(kind, self._next(), what, None if given is None else encode_value(given), more)

    def _side_by_side(self, branches: Iterable[Any], at_once: int | None) -> Asked:
        made = list[Asked | tuple[Program, Scope]]()
        for one in branches:
            if not isinstance(one, Asked) and not inspect.iscoroutine(one):
                raise TypeError(f"a run takes calls, steps and coroutines side by side; got {type(one).__name__}")
            made.append(one if isinstance(one, Asked) else (one, Scope(self._next())))
        return Asked("together", 0, "together", at_once, made)


class FunctionDrive(DurableEngine):
    @property
    def _route(self) -> Route:
        return self._workflows.functions[self.spec.workflow or ""].routes[str(self.spec.version)]

    def program(self) -> Program:
        try:
            made: Program = self._route.call(self.spec.given, Run(self))
        except ConversionError as error:  # the types of the code are not those with which it began
            raise DiffersError(f"the code does not take the input of the run any more: {error}") from None
        return made

    def result_row(self, value: Any) -> StepRow:
        return StepRow(END, 1, states.DONE, status.OK, _result(self._route, value), "end", ended=time.time())

    def read(self, asked: Asked, text: str) -> Any:
        kind = asked.more.returns if type(asked.more) is Terms else None
        if kind is None:
            return _decode(text)
        try:
            return _decoder(kind)(text)
        except msgspec.ValidationError as error:
            message = f"What {asked.what} returned is not {kind}: {error}."
            return Failed(StepError({"code": "unexpected-result", "message": message}))


def options_of(joined: Joined) -> WorkflowOptions:
    options = joined.participant.options
    assert isinstance(options, WorkflowOptions)
    return options


def newest(joined: Joined) -> int:
    """Return the version with which new runs begin."""
    return max(map(int, joined.routes))


def _result(route: Route, value: Any) -> str:
    """Return the result of a function as JSON, with the fields of its declared type. Raises StepError."""
    value = {} if value is None and route.may_return_none else value
    try:
        if route.filter is None or value == {}:
            output = _decode(encode_value(value))
            if not route.output.is_valid(output):
                raise UnfitResult(route.output.violations(output))
        else:
            quick = route.filter.encode(value)
            if quick is not None:
                return quick.decode()
            output = route.filter.select(value)
    except UnfitResult as unfit:
        places = ", ".join(one.pointer or "/" for one in unfit.violations[:3])
        message = f"The function returned something that its type does not admit, at {places}."
        raise StepError({"code": "unexpected-result", "message": message}) from None
    return encode_value(output).decode()


def _begin(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any], owner: str, key: str) -> Any:
    traits = _traits(function)
    if traits.takes_key:
        named = {**named, _KEY: key}
    if traits.is_async:
        return function(*given, **named)
    return submit(partial(function, *given, **named), owner=owner, always=True).future


class _Traits(NamedTuple):
    is_async: bool
    takes_key: bool
    takes_run: bool
    returns: Any  # type by which a result is read; None for plain JSON


@lru_cache(1024)
def _traits(function: Callable[..., Any]) -> _Traits:
    names: list[str] = []
    hints: Mapping[str, Any] = {}
    with suppress(ContractError, TypeError, ValueError):  # a builtin, or annotations of something that is not there
        names = list(inspect.signature(function).parameters)
        hints = read_hints(function)
    returns = hints.get("return")
    try:
        _decoder(returns)
    except TypeError:
        returns = None
    returns = None if returns in (Any, object, type(None)) else returns
    return _Traits(is_async(function), _KEY in names, hints.get(next(iter(names), "")) is Run, returns)


@lru_cache(1024)
def _decoder(kind: Any) -> Callable[[str], Any]:
    return msgspec.json.Decoder(kind, dec_hook=validate_foreign).decode


def _bounds(undo: Undo | None, retries: int, timeout: Seconds | None) -> dict[str, Any]:
    undoing = None
    if undo is not None:
        method, path, *given = undo
        undoing = {"method": method, "path": path, **({"input": given[0]} if given else {})}
    return {"undo": undoing, "attempts": 1 + retries, "timeout": _seconds(timeout)}


def _seconds(value: Seconds | None) -> float | None:
    return value.total_seconds() if isinstance(value, timedelta) else value
