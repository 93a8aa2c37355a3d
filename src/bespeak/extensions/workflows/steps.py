"""Lists of steps as programs of the durable engine: CHAIN, BATCH, procedures and plans.

Steps of the outermost list have the numbers 1, 2, ...; those inside step n have n << 21 | k. An element of `for_each`
adds its index: n << 21 | index << 7 | k. So a step that is skipped shifts no other. Beside the row of a step there may
be one for what was computed: the elements of `for_each`, or the shape of an output.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import msgspec

from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.durable import DurableEngine
from bespeak.extensions.workflows.journal import StepError, fault_error
from bespeak.extensions.workflows.spec import (
    ELEMENT,
    INPUT,
    Block,
    Each,
    Room,
    StepSpec,
    expressions_in,
    groups_of,
    is_plain,
    output_number,
    resolve,
    variables_of,
)
from bespeak.extensions.workflows.store import BESIDE, BITS, END, StepRow
from bespeak.extensions.workflows.turn import ATTEMPTS, Terms
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import read_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.bindings.participant import METHOD, path_of
from bespeak.runtime.composition.engine import Asked, Failed
from bespeak.runtime.expressions.pool import ExpressionFault
from bespeak.runtime.handling import to_json

AT_ONCE: Final = 16  # calls of a batch that run at the same time
_ANSWERED: Final = (states.DONE, states.UNDONE, states.NOT_UNDONE)
_LEFT_OUT: Final = object()  # result of an element that failed and is left out
_decode = msgspec.json.Decoder().decode


class StepsEngine(DurableEngine):
    """One process's turn at a list of steps. Its program deals with outputs as JSON, and decodes what is used."""

    is_code = False

    @cached_property
    def _room(self) -> Room:
        return Room()

    @property
    def flushes(self) -> bool:
        return self.spec.propagates or any(step.nested is not None for step in self.spec.steps)

    def read(self, asked: Asked, text: str) -> Any:
        return text

    def result_row(self, value: StepRow | None) -> StepRow | None:
        return value

    def failure_row(self, error: Mapping[str, Any], code: int) -> StepRow | None:
        if any(row.state == states.FAILED for row in self.journal.rows.values()):
            return None  # the row of the step that failed says it
        return super().failure_row(error, code)

    def answer(self, asked: Asked, scope: Any) -> Any:
        return _compute(asked.more) if asked.kind == "compute" else super().answer(asked, scope)

    async def program(self) -> StepRow | None:
        """Run the steps; return the row of the output, if the workflow says what shape it has."""
        spec = self.spec
        whole = Block(spec.steps, "", spec.on_failure, spec.propagates, spec.parallel, spec.partial)
        around = None if spec.given is None else Values(self.journal.rows, extra={INPUT: spec.given})
        run = self._side_by_side if spec.parallel else self._in_order
        await run(whole, 0, around, spec.on_failure)
        if spec.result is None:
            return None
        values = Values(self.journal.rows, spec.steps, 0, range(1, len(spec.steps) + 1), around)
        try:
            state, made = states.DONE, await self._fill(spec.result, values)
        except StepError as error:  # everything is done all the same
            state, made = states.SKIPPED, error.error
        return StepRow(END, 1, state, 0, to_json(made), "end", ended=time.time())

    async def _in_order(self, block: Block, base: int, around: Values | None, policy: str) -> str:
        """Run steps one after the other; return the output of the last one."""
        output: str | None = None
        last = len(block.steps) if base == 0 and self.spec.result is None else 0
        for number, step in enumerate(block.steps, 1):
            values = Values(self.journal.rows, block.steps, base, range(1, number), around)
            try:
                output = await self._take(base | number, step, values, policy, ends=number == last)
            except StepError:
                if not block.partial:
                    raise
        return "null" if output is None else output

    async def _side_by_side(self, block: Block, base: int, around: Values | None, policy: str) -> str:
        """Run steps at the same time; return the outputs as a list. All end before the first failure is raised."""

        async def one(number: int, step: StepSpec) -> str | None:
            values = Values(self.journal.rows, block.steps, base, (), around)
            try:
                return await self._take(base | number, step, values, policy)
            except StepError:
                if block.partial:
                    return None
                raise

        branches = [(one(number, step), None) for number, step in enumerate(block.steps, 1)]
        outputs = await Asked("together", 0, given=AT_ONCE, more=branches)
        return f"[{','.join('null' if one is None else one for one in outputs)}]"

    async def _take(
        self, number: int, step: StepSpec, values: Values, policy: str, *, ends: bool = False
    ) -> str | None:
        """Carry out a step; return its output, or None if it was skipped. Raises StepError if it fails."""
        row = self.journal.rows.get(number)
        if row is not None and row.state == states.SKIPPED:
            return None
        skips = (step.on_failure or policy) == "skip"
        try:
            if row is None and step.when is not None and not await self._begins(number, step, values):
                return None
            block = step.nested
            if block is not None:
                return await self._nested(number, step, block, values, policy)
            if not step.method:
                return await self._wait(number, step, values)
            given = step.parameters
            if step.procedure is not None or is_plain(given):
                given = dict(given if step.procedure is None else self.spec.given or {})
            elif row is None or row.state not in (*_ANSWERED, states.FAILED):  # one that is settled needs no values
                given = await self._fill(given, values)
            terms = self._terms(step, step.on_failure or policy, ends=ends and step.output is None)
            output: str | None = await Asked("call", number, step.title, given, terms)
            if step.output is None or output is None:
                return output
            known = values.knowing(step, self.journal.rows)
            shaped: str = await Asked("value", number | BESIDE, "output", more=partial(self._make, step.output, known))
            return shaped
        except StepError as error:
            row = self.journal.rows.get(number)
            if step.method and step.nested is None and row is not None and row.state == states.FAILED:
                raise  # nobody can decide to go on, or the engine would have skipped it
            if skips and step.nested is not None:
                await Asked("compute", 0, more=partial(self.undo_rows, lambda one: _is_inside(one, number)))
            self._note_failure(number, step, error, states.SKIPPED if skips else states.FAILED)
            if not skips:
                raise
            return None

    def _note_failure(self, number: int, step: StepSpec, error: StepError, state: str) -> None:
        row, now = self.journal.rows.get(number), time.time()
        # A call that was answered is done, although its output could not be given a shape: it may have to be undone.
        if row is None or (row.state != state and (row.state != states.DONE or step.approve is not None)):
            began, attempt = (now, 1) if row is None else (row.began, row.attempt)
            output = to_json(error.error)
            self.journal.add(StepRow(number, attempt, state, error.status, output, step.title, began=began, ended=now))

    def _terms(self, step: StepSpec, policy: str, *, ends: bool) -> Terms:
        route = None
        if step.procedure is not None:
            route = self.call.routes.steps.get((METHOD, path_of(step.procedure)))
            if route is None:
                gone = {"code": "procedure-not-found", "message": "The procedure is not registered any more."}
                raise StepError(gone, status.NOT_FOUND)
        usual = (ATTEMPTS if policy == "retry" else 1, None)
        attempts, delay = usual if step.retry is None else (step.retry.attempts, step.retry.delay)
        bounds: dict[str, Any] = {"timeout": step.timeout, "attempts": attempts, "delay": delay, "ends": ends}
        bounds |= {"escalates": policy == "escalate", "skips": policy == "skip", "at_most_once": route is not None}
        return Terms(method=step.method, path=step.path, route=route, **bounds)

    async def _wait(self, number: int, step: StepSpec, values: Values) -> str:
        approval = step.approve
        if approval is None:
            until: Any = 0.0 if number in self.journal.rows else step.delay or 0.0
            if isinstance(until, dict):
                found = await self._fill(until["until"], values)
                until = (read_instant(found) if isinstance(found, str) else None,)
                if until[0] is None:
                    told = f"`until` must be a time in ISO 8601, like 2026-11-16T08:00:00Z; got {to_json(found)[:80]}."
                    raise StepError({"code": "invalid-time", "message": told})
            await Asked("sleep", number, step.title, more=until)
            return "null"
        person = approval.who or self.call.server.cases.default_recipient
        within = approval.within or max(self.spec.deadline - time.time(), 0.0)
        answer: str = await Asked("ask", number, step.title, more=(person, approval.question, within))
        if answer != "true":
            raise StepError({"code": "not-approved", "message": f"{person} has not approved it."})
        return answer

    async def _nested(self, number: int, step: StepSpec, block: Block, values: Values, policy: str) -> str:
        row, base = self.journal.rows.get(number), number << BITS
        if row is not None and row.state == states.DONE:
            return row.output
        if row is not None and row.state == states.FAILED:
            raise StepError(_decode(row.output), row.code)
        began = time.time() if row is None else row.began
        if row is None or row.state != states.RUNNING:
            self.journal.add(StepRow(number, 1, states.RUNNING, 0, "null", step.title, began=began), lazy=True)
        inner = block.on_failure or policy
        if step.for_each is not None:
            made = await self._for_each(number, step, block, values, inner)
        else:
            made = await (self._side_by_side if block.parallel else self._in_order)(block, base, values, inner)
        if step.output is not None:
            rows = ChainMap({number: StepRow(number, 1, states.DONE, status.OK, made)}, self.journal.rows)
            made = to_json(await self._fill(step.output, values.knowing(step, rows)))
        self._room.take_bytes(len(made))
        self.journal.add(StepRow(number, 1, states.DONE, status.OK, made, step.title, began=began, ended=time.time()))
        return made

    async def _for_each(self, number: int, step: StepSpec, block: Block, values: Values, policy: str) -> str:
        """Run steps for each element of a list; return a list of the elements and the outputs of their last steps."""
        each, base = step.for_each, number << BITS
        assert each is not None
        items = _decode(await Asked("value", number | BESIDE, "items", more=partial(self._make_items, each, values)))

        async def one(index: int, item: Any) -> Any:
            start = base | index << ELEMENT
            try:
                return await self._in_order(block, start, values.inside(each.name, item), policy)
            except StepError:
                if step.on_failure != "skip":
                    raise
                element = start >> ELEMENT
                await Asked("compute", 0, more=partial(self.undo_rows, lambda one: _is_inside(one, element, ELEMENT)))
                return _LEFT_OUT

        if each.at_once == 1:
            outputs = [await one(index, item) for index, item in enumerate(items)]
        else:
            branches = [(one(index, item), None) for index, item in enumerate(items)]
            outputs = await Asked("together", 0, given=each.at_once, more=branches)
        kept = [(item, text) for item, text in zip(items, outputs, strict=True) if text is not _LEFT_OUT]
        return to_json([{"item": item, "output": msgspec.Raw(text.encode())} for item, text in kept])

    # Values.

    async def _fill(self, value: Any, values: Values) -> Any:
        """Replace references and expressions, as a part of the program. Raises StepError if one has no value."""
        if next(expressions_in(value), None) is not None:
            return await Asked("compute", 0, more=partial(self._make, value, values))
        return resolve(value, values, {}, self._room)

    async def _make(self, value: Any, values: Values) -> Any:
        computed = {text: self._room.take(await self._evaluate(text, values)) for text in expressions_in(value)}
        return resolve(value, values, computed, self._room)

    async def _make_items(self, each: Each, values: Values) -> list[Any]:
        found = await self._make(each.items, values)
        if not isinstance(found, list):
            message = f"`items` must be a list; got {to_json(found)[:80]}."
            raise StepError({"code": "not-a-list", "message": message})
        if len(found) > each.max_items:
            message = f"The list has {len(found):,} elements, and `max_items` allows {each.max_items:,}; ask for fewer."
            raise StepError({"code": "too-many-elements", "message": message})
        return found

    async def _begins(self, number: int, step: StepSpec, values: Values) -> bool:
        """Return False if the condition of a step is false: it is skipped."""
        found = await Asked("compute", 0, more=partial(self._evaluate, step.when or "", values))
        if not isinstance(found, bool):
            raise fault_error(ExpressionFault(f"`when` must be true or false; got {to_json(found)[:80]}."))
        if not found:
            self.journal.add(StepRow(number, 1, states.SKIPPED, 0, "null", step.title))
        return found

    async def _evaluate(self, text: str, values: Values) -> Any:
        """Evaluate an expression of a step. An earlier step that returned nothing is null."""
        names = variables_of(values, values.bare)
        given = {variable: values.get(name) for variable, name in names.items() if name in text}
        found = await self.call.server.expressions.evaluate(text, given, self.spec.authority.agent_id)
        if isinstance(found, Fault):
            raise fault_error(found)
        return found

    async def undo_of(self, row: StepRow) -> tuple[Terms, dict[str, Any]] | None:
        """Return the call that undoes a step, with values of the steps up to it."""
        if row.number & BESIDE:
            return None
        rows, steps, base = self.journal.rows, self.spec.steps, 0
        values = None if self.spec.given is None else Values(rows, extra={INPUT: self.spec.given})
        step: StepSpec | None = None
        for group in groups_of(row.number):
            place = group
            if step is not None and step.for_each is not None and values is not None:
                index, place = group >> ELEMENT, group & ((1 << ELEMENT) - 1)
                items = _decode(rows[base >> BITS | BESIDE].output)
                values, base = values.inside(step.for_each.name, items[index]), base | index << ELEMENT
            step = steps[place - 1]
            # To undo a call takes what it has answered, whatever shape its output was given.
            values = Values(rows, steps, base, range(1, place + 1), values, raw=place)
            block = step.nested
            steps, base = () if block is None else block.steps, (base | place) << BITS
        undo = None if step is None else step.undoing
        if undo is None or values is None:
            return None
        return Terms(method=undo.method, path=undo.path), await self._make(undo.parameters, values)


@dataclass(slots=True, eq=False)
class Values(Mapping[str, Any]):
    """What a step may use, by name: outputs of earlier steps of its list, and what is known around the list."""

    rows: Mapping[int, StepRow]
    steps: Sequence[StepSpec] = ()
    base: int = 0
    places: Sequence[int] = ()  # steps that are known
    around: Values | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # input, or element of a list
    raw: int = 0  # the step whose output has not got its shape yet

    def __getitem__(self, name: str) -> Any:
        if name in self.extra:
            return self.extra[name]
        number = self._find(name)
        if number is None and self.around is not None:
            return self.around[name]
        row = None if number is None else self.rows.get(number)
        if row is None or row.state not in _ANSWERED:
            raise KeyError(name)
        return _decode(row.output)

    def __iter__(self) -> Iterator[str]:
        """Yield the names that expressions may use, also those of steps that returned nothing."""
        yield from self.extra
        for place in self.places:
            step = self.steps[place - 1]
            yield from (one.name for one in (step, *step.together) if one.name is not None)
        yield from self.around or ()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def bare(self) -> frozenset[str]:
        """Names of the input and of elements."""
        return frozenset(self.extra) | (frozenset() if self.around is None else self.around.bare)

    def knowing(self, step: StepSpec, rows: Mapping[int, StepRow]) -> Values:
        """Return the values with the output of a step of the list, as it is before it gets its shape."""
        place = next(place for place, one in enumerate(self.steps, 1) if one is step)
        return Values(rows, self.steps, self.base, (*self.places, place), self.around, raw=place)

    def inside(self, name: str, item: Any) -> Values:
        return Values(self.rows, around=self, extra={name: item})

    def _find(self, name: str) -> int | None:
        for place in self.places:
            step, number = self.steps[place - 1], self.base | place
            if step.name == name or str(place) == name:
                return number if place == self.raw else output_number(step, number)
            for inner, branch in enumerate(step.together, 1):
                if branch.name == name:
                    return output_number(branch, number << BITS | inner)
        return None


def _is_inside(number: int, outer: int, bits: int = BITS) -> bool:
    """Return True for the row of a step inside another; `outer` has lost the `bits` of the innermost place."""
    number >>= bits
    while number > outer:
        number >>= BITS
    return number == outer


async def _compute(make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Return a value that is not noted: it follows from what is."""
    try:
        return await make()
    except StepError as error:
        return Failed(error)
