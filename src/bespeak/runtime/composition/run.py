"""One run of a composition: its steps in order, each through the dispatcher."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator, Iterable, Sequence
from types import CoroutineType
from typing import Any, Final, Protocol

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.composition.failure import Failure, failed_answer, refuse, unmet
from bespeak.runtime.composition.plan import CompositionPlan, StepPlan
from bespeak.runtime.composition.scope import MISSING, Scope, UnmetError, is_there
from bespeak.runtime.composition.values import follow
from bespeak.runtime.route import Route
from bespeak.runtime.route_table import RouteTable

_AT_ONCE: Final = 16
"""Elements of a list that are asked for at the same time, if that changes nothing."""

_SUCCESS: Final = frozenset({status.OK, status.ACCEPTED, status.NO_CONTENT})
_SCALARS: Final = (str, int, float, bool, type(None))

_Work = Generator[Coroutine[Any, Any, Any], Any, Any]
"""Yields what has to be awaited and is sent its result, so that a run that need not wait needs no task."""


class ComposedCall(Protocol):
    """What a run reads of the call of its composition."""

    method: str
    path: str
    input: dict[str, Any]
    route: Route
    routes: RouteTable


class Step(Protocol):
    """A step that has been called."""

    output: Any
    response: Response | None


class RunStep(Protocol):
    """Calls an endpoint for a composition; the dispatcher does it."""

    def __call__(
        self, parent: Any, route: Route, given: dict[str, Any], path: str, number: str, *, journaled: bool, apart: bool
    ) -> Step | Coroutine[Any, Any, Step]:
        """Return the step with its answer, or a coroutine of it."""
        ...


def run_composition(plan: CompositionPlan, call: ComposedCall, run_step: RunStep) -> Any:
    """Run a composition; return its output or a Refused, or a coroutine of either if a step has to wait."""
    table = call.routes.steps
    routes = [table.get(key) for key in plan.keys]
    if None in routes:
        return _outdated(call)
    work = _Run(plan, call, run_step, routes).work()
    try:
        waiting = work.send(None)
    except StopIteration as end:
        return end.value
    return _finish(work, waiting)


async def _finish(work: _Work, waiting: Coroutine[Any, Any, Any]) -> Any:
    """Await what the work waits for, until it is done."""
    while True:
        try:
            result = await waiting
            waiting = work.send(result)
        except StopIteration as end:
            return end.value


class _Run:
    """The state of one run."""

    __slots__ = ("_call", "_outputs", "_plan", "_routes", "_run_step", "_scope")

    def __init__(self, plan: CompositionPlan, call: ComposedCall, run_step: RunStep, routes: Sequence[Any]) -> None:
        self._plan = plan
        self._call = call
        self._run_step = run_step
        self._routes: Sequence[Route] = routes
        self._scope = Scope(call.input)
        self._outputs: dict[int, Any] = {}

    def work(self) -> _Work:
        """Run all steps; return the output or a Refused."""
        for group in self._plan.groups:
            if len(group) == 1:
                failure = yield from self._step(group[0])
            else:
                failures = yield from _together([self._step(step, apart=True) for step in group])
                failure = next((found for found in failures if found is not None), None)
            if failure is not None:
                return self._refuse(failure)
        outputs = [self._outputs[number] for number in sorted(self._outputs)]
        try:
            return self._plan.result(self._scope, outputs)
        except UnmetError as error:
            return self._refuse(unmet(self._plan.groups[-1][-1], "", error))

    def _refuse(self, failure: Failure) -> Refused:
        shown = {step.capture for group in self._plan.groups for step in group if not step.internal}
        outputs = {name: output for name, output in self._scope.captured.items() if name in shown}
        return refuse((self._call.method, self._call.path), self._plan.recipe, failure, outputs)

    def _step(self, step: StepPlan, *, apart: bool = False) -> Generator[Coroutine[Any, Any, Any], Any, Failure | None]:
        """Run one step, for each element if it has a list; return its failure."""
        number = str(step.number)
        try:
            if step.when is not None and not step.when(self._scope, None):
                return None
            if step.for_each is None:
                output = yield from self._once(step, number, None, apart=apart)
            else:
                output = yield from self._each(step, step.for_each(self._scope, None))
        except UnmetError as error:
            output = unmet(step, number, error)
        if isinstance(output, Failure):
            return None if step.skips and not output.waits else output
        self._outputs[step.number] = output
        if step.capture is not None:
            self._scope.capture(step.capture, output)
        return None

    def _each(self, step: StepPlan, elements: Any) -> _Work:
        """Run a step for each element of a list; return a list of items and outputs, or the first failure."""
        items = elements if type(elements) is list else [elements] if is_there(elements) else []
        if len(items) > step.max_items:
            message = f"its list has {len(items):,} elements, and {step.max_items:,} are allowed; ask for fewer"
            raise UnmetError("too-many-elements", message)
        size = 1 if step.changes else _AT_ONCE
        done = []
        for start in range(0, len(items), size):
            part = items[start : start + size]
            outputs = yield from _together(
                [self._element(step, f"{step.number}/{start + index}", item) for index, item in enumerate(part)]
            )
            for item, output in zip(part, outputs, strict=True):
                if not isinstance(output, Failure):
                    done.append({"item": item, "output": output})
                elif not step.skips or output.waits:
                    return output
        return done

    def _element(self, step: StepPlan, number: str, item: Any) -> _Work:
        try:
            return (yield from self._once(step, number, item, apart=True))
        except UnmetError as error:
            return unmet(step, number, error)

    def _once(self, step: StepPlan, number: str, item: Any, *, apart: bool) -> _Work:
        """Run a step for one element, with all pages; return the output or a Failure."""
        given = step.build(self._scope, item)
        if step.pages is None:
            return (yield from self._call_endpoint(step, number, given, apart=apart))
        pages, first, items = step.pages, MISSING, []
        for page in range(pages.most):
            output = yield from self._call_endpoint(step, f"{number}/{page}", given, apart=apart)
            if isinstance(output, Failure):
                return output
            first = output if first is MISSING else first
            found = follow(output, pages.items)
            items += found if type(found) is list else []
            cursor = follow(output, pages.cursor)
            if not is_there(cursor) or cursor in ("", False):
                return _joined(first, pages.items, pages.cursor, items)
            given = {**given, pages.parameter: cursor}
        raise UnmetError("too-many-pages", f"its list has more than {pages.most} pages; ask for fewer elements")

    def _call_endpoint(self, step: StepPlan, number: str, given: dict[str, Any], *, apart: bool) -> _Work:
        for name, value in given.items():
            if type(value) not in _SCALARS:
                # A handler may change its input, but not the output of another step.
                given[name] = msgspec.to_builtins(value)
        route = self._routes[step.number - 1]
        done: Any = self._run_step(
            self._call, route, given, step.fill(given), number, journaled=step.journaled, apart=apart
        )
        if isinstance(done, CoroutineType):
            done = yield done
        response: Response = done.response
        return done.output if response.status in _SUCCESS else failed_answer(step, number, response)


def _together(works: Sequence[_Work]) -> Generator[Coroutine[Any, Any, Any], Any, list[Any]]:
    """Run several pieces of work at the same time; return their results in order."""
    results: list[Any] = [None] * len(works)
    waiting = {}
    for index, work in enumerate(works):
        try:
            waiting[index] = _finish(work, work.send(None))
        except StopIteration as end:
            results[index] = end.value
    if waiting:
        later = yield _gather(waiting.values())
        for index, result in zip(waiting, later, strict=True):
            results[index] = result
    return results


async def _gather(coroutines: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    return await asyncio.gather(*coroutines)


def _joined(first: Any, items: tuple[str, ...], cursor: tuple[str, ...], found: list[Any]) -> Any:
    """Return the first page with the elements of all pages, and without a cursor."""
    return _replaced(_replaced(first, cursor, MISSING), items, found)


def _replaced(value: Any, names: tuple[str, ...], new: Any) -> Any:
    if not names:
        return new
    if type(value) is not dict:
        return value
    kept = {name: inner for name, inner in value.items() if name != names[0]}
    inner = _replaced(value.get(names[0], {}), names[1:], new)
    return kept if inner is MISSING else {**kept, names[0]: inner}


def _outdated(call: ComposedCall) -> Refused:
    message = f"{call.route.endpoint} calls an endpoint that has been removed; it cannot be used any more."
    return Refused(status.GONE, "composition-outdated", message, {"method": call.method, "path": call.path[:300]})
