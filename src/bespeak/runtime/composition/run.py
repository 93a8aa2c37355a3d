"""One run of a composition: its steps in order, each through the dispatcher, and its failure (AGTP-API 12.1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from types import CoroutineType
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.handler import COMPOSITION_FAILED
from bespeak.protocol import status
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.composition.engine import Asked, Engine, Program
from bespeak.runtime.composition.plan import CompositionPlan, PagedOutput, StepPlan, UndoPlan
from bespeak.runtime.composition.step import APART, Steps
from bespeak.runtime.composition.values import MISSING, Scope, UnmetError, is_there
from bespeak.runtime.concurrency import resume
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


def late(step: StepPlan, timeout: float, number: str = "") -> Failure:
    """Describe the step during which its time ran out, without `number` that of the whole. It may have taken effect."""
    named = "step" if number else "composition"
    error = {"code": f"{named}-timeout", "message": f"the {named} took longer than {timeout:g} s"}
    return Failure(step, number or step.named, status.TIMEOUT, error, "1" if step.is_idempotent else None)


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


_LATE: Final = object()  # in place of a result that took too long
_AT_ONCE: Final = 16  # elements of a list that are asked for at the same time, if that changes nothing
_TRANSIENT: Final = frozenset({status.TIMEOUT, status.RATE_LIMITED, status.SERVER_ERROR, status.UNAVAILABLE})
SUCCESS: Final = frozenset({status.OK, status.ACCEPTED, status.NO_CONTENT})  # after these the next step is called

_Bound = tuple[Route, Callable[[Mapping[str, Any]], str], int]  # route of a step, how its path is built, and its flags
Routes = Mapping[StepPlan | UndoPlan, _Bound]


class _UndoableStep(NamedTuple):
    step: StepPlan
    undo: UndoPlan
    number: str
    item: Any
    output: Any


class Run(Engine):
    """One run of a recipe, which remembers nothing: answers of its steps are kept under the key of its caller."""

    def __init__(self, plan: CompositionPlan, call: RoutedCall, steps: Steps, routes: Routes) -> None:
        self._plan = plan
        self._call = call
        self._steps = steps
        self._routes = routes
        self._values = Scope(call.input)
        self._outputs: dict[int, Any] = {}
        self._effects: list[int] = []  # numbers of the steps that have changed something and are not undone
        self._running: Sequence[StepPlan] = ()
        self._done: list[_UndoableStep] = []
        self._verdict: Failure | None = None  # of an earlier run with the same key, to be undone to the end

    @property
    def _is_keyed(self) -> bool:
        composing = self._call.composing
        return composing is not None and composing.is_keyed

    def start(self, first: Any = None) -> Any:
        """Run all steps; return the output or a Refused, or a coroutine of either if a step has to wait.

        `first` is the first step or its coroutine, if it has been called.
        """
        program = self._program(first)
        result = self.advance(program)
        return self._continue_bounded(program, result) if type(result) is CoroutineType else result

    def answer(self, asked: Asked, scope: Any) -> Any:
        if asked.kind == "call":
            (route, fill, flags), given = asked.more, asked.given
            return self._steps.run_step(self._call, route, given, fill(given), asked.what, flags=flags)
        if asked.kind == "within":
            done = self.answer(asked.given, scope)
            return _within(asked.more, done) if type(done) is CoroutineType else done
        return self.together(asked.more) if asked.kind == "together" else asked.given

    def _send(self, program: Program, scope: Any, given: Any) -> Any:
        return program.send(given)  # no answer is raised, and there is one scope

    async def _continue_bounded(self, program: Program, waiting: Coroutine[Any, Any, Any]) -> Any:
        """Run up to the first real wait; most never wait, and a timeout around them would cost more than the rest."""
        try:
            awaited = waiting.send(None)
        except StopIteration as end:
            return end.value
        result = await _within(self._plan.timeout, resume(waiting, awaited))
        if result is not _LATE:
            return result
        program.close()
        step = next((step for step in self._running if step.changes), self._running[0])
        answer = self.advance(self._give_up(late(step, self._plan.timeout)))
        return await answer if type(answer) is CoroutineType else answer

    async def _program(self, first: Any) -> Any:
        plan, values, routes, verdict = self._plan, self._values, self._routes, None
        if plan.undoes and self._is_keyed:
            noted = await Asked("value", 0, given=self._steps.recall(self._call))
            verdict = self._verdict = None if noted is None else read_verdict(noted, plan.steps)
        for group in plan.groups:
            self._running = group
            step = group[0]
            if len(group) > 1:
                failures = await Asked("together", 0, more=[(self._step(step, APART), None) for step in group])
                failure = next((found for found in failures if found is not None), None)
            elif step.is_plain and verdict is None:  # most steps are, so this is the shortest way
                try:
                    if first is None:
                        given = step.build(values, None)
                        done = await Asked("call", step.number, step.named, given, routes[step])
                    else:
                        done = await Asked("value", 1, given=first)
                    output = self._output(step, step.named, None, done)
                except UnmetError as error:
                    output = unmet(step, step.named, error)
                failure = self._end(step, output)
            else:
                failure = await self._step(step, 0)
            if failure is not None:
                return await self._give_up(failure)
        try:
            return plan.result(values, self._outputs)
        except UnmetError as error:
            return await self._give_up(unmet(plan.steps[-1], "", error))

    async def _step(self, step: StepPlan, flags: int) -> Failure | None:
        """Run one step, for each element if it has a list; return its failure."""
        try:
            if step.when is not None and not step.when(self._values, None):
                return None
            if step.for_each is None:
                output = await self._once(step, step.named, None, flags)
            else:
                output = await self._each(step, step.for_each(self._values, None))
        except UnmetError as error:
            output = unmet(step, step.named, error)
        return self._end(step, output)

    def _end(self, step: StepPlan, output: Any) -> Failure | None:
        if type(output) is Failure:
            return None if step.skips and not output.waits else output
        self._outputs[step.number] = output
        if step.capture is not None:
            self._values.capture(step.capture, output)
        return None

    async def _each(self, step: StepPlan, elements: Any) -> Any:
        """Run a step for each element of a list; return a list of items and outputs, or the first failure."""
        items = elements if type(elements) is list else [elements] if is_there(elements) else []
        if len(items) > step.max_items:
            message = f"its list has {len(items):,} elements, and {step.max_items:,} are allowed; ask for fewer"
            raise UnmetError("too-many-elements", message)
        size = 1 if step.changes else _AT_ONCE
        done = []
        for start in range(0, len(items), size):
            part = items[start : start + size]
            flags = APART if len(part) > 1 else 0
            calls = [self._once(step, f"{step.named}/{start + k}", item, flags) for k, item in enumerate(part)]
            outputs = await Asked("together", 0, more=[(call, None) for call in calls]) if flags else [await calls[0]]
            for item, output in zip(part, outputs, strict=True):
                if not isinstance(output, Failure):
                    done.append({"item": item, "output": output})
                elif not step.skips or output.waits:
                    return output
        return done

    async def _once(self, step: StepPlan, number: str, item: Any, flags: int) -> Any:
        """Run a step for one element, with all pages; return the output or a Failure."""
        bound = self._routes[step]
        if flags:
            bound = (bound[0], bound[1], bound[2] | flags)
        pages, named = None if step.pages is None else PagedOutput(step.pages), number
        try:
            given = step.build(self._values, item)
            while True:
                if pages is not None:
                    named = f"{number}:{pages.count}"
                if self._verdict is not None and self._verdict.number == named:
                    return self._verdict
                output = await self._call_endpoint(step, named, item, given if pages is None else dict(given), bound)
                if pages is None or type(output) is Failure:
                    return output
                cursor = pages.add(output)
                if cursor is MISSING:
                    return pages.output
                given[pages.plan.parameter] = cursor
        except UnmetError as error:
            return unmet(step, number, error)

    async def _call_endpoint(self, step: StepPlan, number: str, item: Any, given: dict[str, Any], bound: _Bound) -> Any:
        """Call the endpoint of a step, again if its failure may pass; return the output or a Failure."""
        attempts, pause = (1, 0.0) if step.retry is None else (step.retry.attempts, step.retry.delay)
        while True:
            attempts -= 1
            # A handler may change its input.
            asked = Asked("call", step.number, number, msgspec.to_builtins(given) if attempts else given, bound)
            if step.timeout is not None:
                asked = Asked("within", step.number, number, asked, step.timeout)
            done = await asked
            output = late(step, step.timeout or 0, number) if done is _LATE else self._output(step, number, item, done)
            if not attempts or type(output) is not Failure or not (output.is_transient or output.status in _TRANSIENT):
                return output
            told = output.retry_after or ""
            wait = max(pause, int(told)) if told.isdecimal() else pause
            if wait >= self._plan.timeout:
                return output
            await Asked("value", 0, given=asyncio.sleep(wait))
            pause *= 2

    def _output(self, step: StepPlan, number: str, item: Any, done: Any) -> Any:
        response: Response = done.response
        if response.status not in SUCCESS:
            return failed_answer(step, number, response)
        if step.changes:
            self._effects.append(step.number)
        if step.undo is not None:
            self._done.append(_UndoableStep(step, step.undo, number, item, done.output))
        return done.output

    async def _give_up(self, failure: Failure) -> Refused:
        """Undo what can be undone, unless the caller can continue; return the answer."""
        undone: list[dict[str, Any]] = []
        keyed = self._is_keyed
        if self._done and not failure.waits and not (keyed and failure.is_transient):
            if keyed:
                # After a crash the steps must be undone to the end, even if the failed one would succeed then.
                await Asked("value", 0, given=self._steps.note(self._call, write_verdict(failure)))
            for done in reversed(self._done):
                undone.append(await self._undo(done))
                if undone[-1]["status"] in SUCCESS and done.step.number in self._effects:
                    self._effects.remove(done.step.number)
        shown = {step.capture for step in self._plan.steps if not step.internal}
        outputs = {name: output for name, output in self._values.captured.items() if name in shown}
        # Without a key, a repeated call would do again what has been done.
        again = failure.is_transient and not undone and (keyed or not self._effects)
        about, effects = (self._call.method, self._call.path), self._effects
        return refuse(about, self._plan.recipe, failure, outputs, compensated=undone, effects=effects, again=again)

    async def _undo(self, done: _UndoableStep) -> dict[str, Any]:
        undo, captured = done.undo, self._values.captured
        scope = Scope(self._call.input)
        scope.captured = captured if done.step.capture is None else {**captured, done.step.capture: done.output}
        report: dict[str, Any] = {"step": done.step.number}
        if not undo.internal:
            report |= {"method": undo.key[0], "path": undo.key[1]}
        try:
            given = undo.build(scope, done.item)
        except UnmetError as error:
            return report | {"status": None, "code": error.code}
        called = await Asked("call", done.step.number, f"{done.number} undone", given, self._routes[undo])
        code = None if undo.internal else called.response.code
        return report | {"status": called.response.status} | ({} if code is None else {"code": code})


async def _within(seconds: float, waiting: Awaitable[Any]) -> Any:
    """Await something; return _LATE if it takes longer."""
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            return await waiting
    except TimeoutError:
        if not bound.expired():
            raise
        return _LATE
