"""One run of a composition: its steps in order, each through the dispatcher, and its failure (AGTP-API 12.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Generator, Iterable, Mapping, Sequence
from types import CoroutineType
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.handler import COMPOSITION_FAILED
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.composition.plan import CompositionPlan, Key, PagedOutput, StepPlan, UndoPlan
from bespeak.runtime.composition.step import APART, UNDOES, Steps
from bespeak.runtime.composition.values import MISSING, Scope, UnmetError, is_there
from bespeak.runtime.concurrency import Finished, resume
from bespeak.runtime.route import Route

MOST_OUTPUT: Final = 64 * 1024  # the most bytes of captured outputs in a refusal

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Failure(msgspec.Struct, frozen=True):
    step: StepPlan
    number: str  # number of the step, with the number of the element if it runs for each of a list
    status: int | None  # status of the answer; None if the step was not called
    error: Mapping[str, Any]  # the `error` object of the answer
    retry_after: str | None = None

    @property
    def waits(self) -> bool:
        """True if the step needs authority that is not there yet, such as a confirmation."""
        return self.status == status.AUTHORIZATION_REQUIRED

    @property
    def is_transient(self) -> bool:
        """True if the same call may succeed later."""
        return self.retry_after is not None


def failed_answer(step: StepPlan, number: str, response: Response) -> Failure:
    body = _decode(response.body) if response.body else {}
    error = body.get("error") if isinstance(body, dict) else None
    said = error if isinstance(error, dict) else {}
    return Failure(step, number, response.status, said, response.header("Retry-After"))


def unmet(step: StepPlan, number: str, error: UnmetError) -> Failure:
    """Describe a step that cannot be called, because it gets no usable values."""
    return Failure(step, number, None, {"code": error.code, "message": error.message})


def late(step: StepPlan, timeout: float) -> Failure:
    """Describe the step during which the time of the composition ran out. It may have taken effect."""
    message = f"the composition took longer than {timeout:g} s"
    again = "1" if step.is_idempotent else None
    return Failure(step, step.named, status.TIMEOUT, {"code": "composition-timeout", "message": message}, again)


def write_verdict(failure: Failure) -> bytes:
    return _encode([failure.step.number, failure.number, failure.status, failure.error, failure.retry_after])


def read_verdict(text: bytes, steps: Sequence[StepPlan]) -> Failure | None:
    """Read the failure of an earlier run; None if the recipe no longer has the step."""
    number, *rest = _decode(text)
    return Failure(steps[number - 1], *rest) if number <= len(steps) else None


def refuse(
    call: tuple[str, str],
    recipe: str,
    failure: Failure,
    outputs: Mapping[str, Any],
    *,
    compensated: Sequence[Mapping[str, Any]] = (),
    effects: Sequence[int] = (),
    again: bool = False,
) -> Refused:
    """Build the answer of the composition `call`. An internal step is not named, and what it said is not repeated.

    `effects` are the numbers of steps that have changed something for good. `again` is True if the same call may be
    repeated.
    """
    step, error = failure.step, failure.error
    element = failure.number.partition("/")[2]
    place: dict[str, Any] = {"recipe": recipe, "step": step.number}
    if element:
        place["element"] = int(element.partition(":")[0])
    named = "an internal step" if step.internal else " ".join(step.key)
    if failure.waits:
        details = {name: value for name, value in error.items() if name not in ("code", "message")}
        message = f"{error.get('message', '')} It is step {step.number} of this call, {named}."
        return Refused(status.AUTHORIZATION_REQUIRED, error.get("code", ""), message, {**details, **place})
    details = {**place, "status": failure.status}
    reason = ""
    if not step.internal:
        details |= {"code": error.get("code"), "method": step.key[0], "path": step.key[1]}
        reason = f": {error.get('message', '')}"
    fits = len(_encode(outputs)) <= MOST_OUTPUT
    details |= {"outputs": outputs} if fits else {"outputs": {}, "outputs_omitted": True}
    if compensated:
        details["compensated"] = list(compensated)
    if effects:
        details["effects"] = sorted(set(effects))
    message = f"Step {step.number} of the composition, {named}, failed{reason}"
    headers: tuple[tuple[str, str], ...] = ()
    if again and failure.retry_after is not None:
        headers = (("Retry-After", failure.retry_after),)
    about = {"method": call[0], "path": call[1], "details": details}
    return Refused(status.UNPROCESSABLE, COMPOSITION_FAILED, message, about, headers)


_AT_ONCE: Final = 16  # elements of a list that are asked for at the same time, if that changes nothing
SUCCESS: Final = frozenset({status.OK, status.ACCEPTED, status.NO_CONTENT})  # after these the next step is called

_Work = Generator[Coroutine[Any, Any, Any], Any, Any]
"""Yields what has to be awaited and is sent its result, so that a run that need not wait needs no task."""


BoundStep = tuple[Route, int]  # route of a step, and the flags that follow from it


class _UndoableStep(NamedTuple):
    step: StepPlan
    undo: UndoPlan
    number: str
    item: Any
    output: Any


class Run:
    __slots__ = (
        "_call",
        "_done",
        "_effects",
        "_first",
        "_outputs",
        "_plan",
        "_routes",
        "_running",
        "_scope",
        "_steps",
        "_verdict",
    )

    def __init__(
        self, plan: CompositionPlan, call: RoutedCall, steps: Steps, routes: Mapping[Key, BoundStep], first: Any = None
    ) -> None:
        """Prepare a run; `first` is the first step or its coroutine, if it has been called."""
        self._plan = plan
        self._call = call
        self._steps = steps
        self._routes = routes
        self._first = first
        self._scope = Scope(call.input)
        self._outputs: dict[int, Any] = {}
        self._effects: list[int] = []  # numbers of the steps that have changed something and are not undone
        self._running: Sequence[StepPlan] = ()
        self._done: list[_UndoableStep] = []
        self._verdict: Failure | None = None  # of an earlier run with the same key, to be undone to the end

    @property
    def _is_keyed(self) -> bool:
        composing = self._call.composing
        return composing is not None and composing.is_keyed

    def start(self) -> Any:
        """Run all steps; return the output or a Refused, or a coroutine of either if a step has to wait."""
        work = self._work()
        try:
            waiting = work.send(None)
        except StopIteration as end:
            return end.value
        return self._continue(work, waiting)

    async def _continue(self, work: _Work, waiting: Coroutine[Any, Any, Any]) -> Any:
        begun = _advance(work, waiting)
        if isinstance(begun, Finished):
            return begun.value
        bound = asyncio.timeout(self._plan.timeout)
        try:
            async with bound:
                return await _finish(work, resume(*begun))
        except TimeoutError:
            if not bound.expired():
                raise
        work.close()
        step = next((step for step in self._running if step.changes), self._running[0])
        return await _finish_all(self._give_up(late(step, self._plan.timeout)))

    def _work(self) -> _Work:
        plan, scope = self._plan, self._scope
        if plan.undoes and self._is_keyed:
            noted = yield self._steps.recall(self._call)
            self._verdict = None if noted is None else read_verdict(noted, plan.steps)
        for group in plan.groups:
            self._running = group
            if len(group) == 1:
                step = group[0]
                if step.is_plain:  # most steps are, so this is the shortest way
                    output = self._begin(step)
                    if type(output) is CoroutineType:
                        output = self._output(step, step.named, None, (yield output))
                    failure = self._end(step, output)
                else:
                    failure = yield from self._step(step)
            else:
                failures = yield from _together([self._step(step, APART) for step in group])
                failure = next((found for found in failures if found is not None), None)
            if failure is not None:
                return (yield from self._give_up(failure))
        try:
            return plan.result(scope, self._outputs)
        except UnmetError as error:
            return (yield from self._give_up(unmet(plan.steps[-1], "", error)))

    def _begin(self, step: StepPlan) -> Any:
        """Call a step that is called exactly once; return its output, a Failure, or a coroutine to await."""
        if self._verdict is not None and self._verdict.number == step.named:
            return self._verdict
        done, self._first = self._first, None
        if done is None:
            try:
                given = step.build(self._scope, None)
            except UnmetError as error:
                return unmet(step, step.named, error)
            route, flags = self._routes[step.key]
            done = self._steps.run_step(
                self._call, route, given, step.fill(given), step.named, flags=flags | step.flags
            )
        return done if type(done) is CoroutineType else self._output(step, step.named, None, done)

    def _step(self, step: StepPlan, flags: int = 0) -> Generator[Coroutine[Any, Any, Any], Any, Failure | None]:
        """Run one step, for each element if it has a list; return its failure."""
        try:
            if step.when is not None and not step.when(self._scope, None):
                return None
            if step.for_each is None:
                output = yield from self._once(step, step.named, None, flags)
            else:
                output = yield from self._each(step, step.for_each(self._scope, None))
        except UnmetError as error:
            output = unmet(step, step.named, error)
        return self._end(step, output)

    def _end(self, step: StepPlan, output: Any) -> Failure | None:
        if type(output) is Failure:
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
            part = [(f"{step.named}/{start + index}", item) for index, item in enumerate(items[start : start + size])]
            if len(part) == 1:
                outputs = [(yield from self._element(step, *part[0], 0))]
            else:
                outputs = yield from _together([self._element(step, number, item, APART) for number, item in part])
            for (_, item), output in zip(part, outputs, strict=True):
                if not isinstance(output, Failure):
                    done.append({"item": item, "output": output})
                elif not step.skips or output.waits:
                    return output
        return done

    def _element(self, step: StepPlan, number: str, item: Any, flags: int) -> _Work:
        try:
            return (yield from self._once(step, number, item, flags))
        except UnmetError as error:
            return unmet(step, number, error)

    def _once(self, step: StepPlan, number: str, item: Any, flags: int) -> _Work:
        """Run a step for one element, with all pages; return the output or a Failure."""
        given = step.build(self._scope, item)
        if step.pages is None:
            return (yield from self._call_endpoint(step, number, item, given, flags))
        pages = PagedOutput(step.pages)
        while True:
            output = yield from self._call_endpoint(step, f"{number}:{pages.count}", item, dict(given), flags)
            if isinstance(output, Failure):
                return output
            cursor = pages.add(output)
            if cursor is MISSING:
                return pages.output
            given[step.pages.parameter] = cursor

    def _call_endpoint(self, step: StepPlan, number: str, item: Any, given: dict[str, Any], flags: int) -> _Work:
        if self._verdict is not None and self._verdict.number == number:
            return self._verdict
        route, known = self._routes[step.key]
        done: Any = self._steps.run_step(
            self._call, route, given, step.fill(given), number, flags=known | step.flags | flags
        )
        if type(done) is CoroutineType:
            done = yield done
        return self._output(step, number, item, done)

    def _output(self, step: StepPlan, number: str, item: Any, done: Any) -> Any:
        response: Response = done.response
        if response.status not in SUCCESS:
            return failed_answer(step, number, response)
        if step.changes:
            self._effects.append(step.number)
        if step.undo is not None:
            self._done.append(_UndoableStep(step, step.undo, number, item, done.output))
        return done.output

    def _give_up(self, failure: Failure) -> Generator[Coroutine[Any, Any, Any], Any, Refused]:
        """Undo what can be undone, unless the caller can continue; return the answer."""
        undone: list[dict[str, Any]] = []
        keyed = self._is_keyed
        if self._done and not failure.waits and not (keyed and failure.is_transient):
            if keyed:
                # After a crash the steps must be undone to the end, even if the failed one would succeed then.
                yield self._steps.note(self._call, write_verdict(failure))
            for done in reversed(self._done):
                undone.append((yield from self._undo(done)))
                if undone[-1]["status"] in SUCCESS and done.step.number in self._effects:
                    self._effects.remove(done.step.number)
        shown = {step.capture for step in self._plan.steps if not step.internal}
        outputs = {name: output for name, output in self._scope.captured.items() if name in shown}
        # Without a key, a repeated call would do again what has been done.
        again = failure.is_transient and not undone and (keyed or not self._effects)
        about, effects = (self._call.method, self._call.path), self._effects
        return refuse(about, self._plan.recipe, failure, outputs, compensated=undone, effects=effects, again=again)

    def _undo(self, done: _UndoableStep) -> Generator[Coroutine[Any, Any, Any], Any, dict[str, Any]]:
        undo, captured = done.undo, self._scope.captured
        scope = Scope(self._call.input)
        scope.captured = captured if done.step.capture is None else {**captured, done.step.capture: done.output}
        report: dict[str, Any] = {"step": done.step.number}
        if not undo.internal:
            report |= {"method": undo.key[0], "path": undo.key[1]}
        try:
            given = undo.build(scope, done.item)
        except UnmetError as error:
            return report | {"status": None, "code": error.code}
        called: Any = self._steps.run_step(
            self._call, self._routes[undo.key][0], given, undo.fill(given), f"{done.number} undone", flags=UNDOES
        )
        if type(called) is CoroutineType:
            called = yield called
        code = None if undo.internal else called.response.code
        return report | {"status": called.response.status} | ({} if code is None else {"code": code})


def _advance(work: _Work, waiting: Coroutine[Any, Any, Any]) -> Finished | tuple[Coroutine[Any, Any, Any], Any]:
    """Run work up to its first real wait; most never wait, and a timeout around them would cost more than the rest."""
    while True:
        try:
            awaited = waiting.send(None)
        except StopIteration as end:
            result = end.value
        else:
            return waiting, awaited
        try:
            waiting = work.send(result)
        except StopIteration as end:
            return Finished(end.value)


async def _finish(work: _Work, waiting: Awaitable[Any]) -> Any:
    """Await what the work waits for, until it is done."""
    while True:
        result = await waiting
        try:
            waiting = work.send(result)
        except StopIteration as end:
            return end.value


async def _finish_all(work: _Work) -> Any:
    try:
        waiting = work.send(None)
    except StopIteration as end:
        return end.value
    return await _finish(work, waiting)


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
