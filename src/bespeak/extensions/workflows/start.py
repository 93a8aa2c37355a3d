"""Start of a workflow: names, references, expressions and calls are checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.procedure import find_wrong_step
from bespeak.contract.schema.validation import Validator
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.engine import Workflow, Workflows
from bespeak.extensions.workflows.spec import (
    INPUT,
    Spec,
    StepSpec,
    check_references,
    expressions_in,
    find_step,
    is_plain,
    variables_of,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY, RESPOND_ASYNC, prefers
from bespeak.protocol.exchange.messages import ITEMS, REPORT
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.expressions.pool import find_missing
from bespeak.runtime.handling import refusal
from bespeak.state.store.store import Conflict

LONGEST: Final = 86400.0  # seconds that a workflow may take, if its caller does not say less or more
ANSWERED_WITHIN: Final = 30.0  # seconds after which a workflow that still runs is answered with 202
RUNS_PATH: Final = "/workflows"  # path at which QUERY lists the workflows of the caller
Tell = Callable[[Workflow], Envelope]  # writes the receipt of a workflow, or raises the refusal that it is


async def begin(call: RoutedCall, spec: Spec, tell: Tell) -> Envelope:
    """Begin a workflow, or find the one that the same request began, and answer with its receipt."""
    workflows: Workflows = call.server.part("workflows")
    # Steps report to nobody: the caller hears of steps that are done.
    listening = REPORT.set(None), ITEMS.set(None)
    begun = await workflows.begin(call, spec)
    REPORT.reset(listening[0])
    ITEMS.reset(listening[1])
    if isinstance(begun, Conflict):
        held = f"{begun.details.get('most')} workflows that have not ended, the maximum"
        message = f"The agent has {held}; CANCEL some, or repeat this when some have ended."
        raise refusal(status.RATE_LIMITED, "too-many-workflows", message, retry_after=60)
    if prefers(call.request.headers, RESPOND_ASYNC):
        made = tell(await workflows.wait(begun, 0.0))
        if made.status != status.ACCEPTED:
            return made
        # Where the result is found (RFC 7240 4.1).
        where: dict[str, Any] = {"method": "QUERY", "path": RUNS_PATH}
        if "CHECK" in call.routes.allowed:
            where = {"method": "CHECK", "path": "/", "parameters": {"target": begun}}
        headers = (*made.headers, ("Preference-Applied", RESPOND_ASYNC))
        return Envelope({**made.result, "look": where}, made.status, headers)
    found = await workflows.follow(begun, spec, ANSWERED_WITHIN)
    if found.record.state == states.RUNNING and IDEMPOTENCY_KEY in call.request.headers:
        # The answer under the key must be the final one, so this one is not kept.
        message = f"{begun} is still running; repeat the request with the same Idempotency-Key for its receipt."
        raise refusal(status.UNAVAILABLE, "workflow-running", message, retry_after=5, workflow_id=begun)
    return tell(found)


async def find_run(call: RoutedCall, name: str) -> str | None:
    """Return the id of the caller's workflow that an id or a Task-ID means; None if there is none.

    A Task-ID with which several were begun is refused, with their ids.
    """
    workflows: Workflows | None = call.server.part("workflows")
    found = [] if workflows is None or call.agent_id is None else await workflows.find_id(call.agent_id, name)
    if len(found) > 1:
        several = f"Several workflows were begun with the Task-ID {name[:80]!r}"
        message = f"{several}; name one by its id: {', '.join(found)}."
        raise refusal(status.CONFLICT, "workflow-ambiguous", message, workflow_ids=found)
    return found[0] if found else None


def read_steps(given: Any, at: str = "steps", *, fits: bool = False) -> tuple[StepSpec, ...] | Fault:
    """Read steps as they were sent; a Fault names the first one that is not valid."""
    return find_wrong_step(given, at, fits=fits) or msgspec.convert(given, tuple[StepSpec, ...])


async def read_callback(call: RoutedCall) -> str | None:
    """Return the address that is told the end of the workflow, after it was verified."""
    callback: str | None = call.input.get("callback")
    if callback is not None:
        from bespeak.extensions.messages.recipients import verify_callback  # noqa: PLC0415 - few calls have one

        await verify_callback(call, callback)
    return callback


def check_scopes(call: RoutedCall, what: str, required: Sequence[str]) -> None:
    """Refuse a caller without the scopes that a procedure or a workflow function needs beside those of RUN."""
    missing = call.principal.scopes.missing(required)
    if missing:
        message = f"The {what} needs the scopes {', '.join(missing)}, beside those of RUN."
        needed: dict[str, Any] = {"missing_scopes": missing, "required_scopes": list(required)}
        raise refusal(status.SCOPE_VIOLATION, "scope-violation", message, **needed)


def check_input(takes: Validator, given: dict[str, Any], what: str) -> None:
    """Refuse an input that a procedure or a workflow function does not take."""
    violations = takes.violations(given)
    if violations:
        listed = [{"field": one.pointer, "message": one.message} for one in violations]
        message = f"The {what} does not take this input: {violations[0].message}."
        raise refusal(STANDARD["RUN"], "invalid-input", message, violations=listed)


def place_of(fault: Fault) -> dict[str, Any]:
    """Return members of a refusal that say which step is meant: its number in the outermost list, and its place."""
    parts = fault.at.split("/")
    return {"step": int(parts[1]) + 1 if len(parts) > 1 else 1, "place": f"/{fault.at}"}


class Uncallable(msgspec.Struct, frozen=True):
    message: str
    place: dict[str, Any]


def find_uncallable(call: RoutedCall, steps: Sequence[StepSpec], at: str = "") -> Uncallable | None:
    """Return the first step that calls something that is not there, or that would call others in turn."""
    for number, step in enumerate(steps, 1):
        nested, undo = step.nested, step.undoing
        for one in (step,) if undo is None else (step, undo):
            if not one.method or one.procedure is not None:
                continue
            found = find_step(call, one.method, one.sought)
            is_list = one is step and nested is not None
            if isinstance(found, RoutedCall) and (is_list or not found.route.endpoint.passes_on):
                continue
            here = f"{at}{number}"
            place: dict[str, Any] = {"step": int(here.partition("/")[0]), "method": one.method, "path": one.path}
            if isinstance(found, Refused):
                return Uncallable(f"Step {here}: {found.message}", {"code_of_step": found.code, **place})
            what = f"Step {here} is {one.method} {one.path}, which runs other calls"
            return Uncallable(f"{what}; write them as steps instead.", place)
        if nested is not None:
            wrong = find_uncallable(call, nested.steps, f"{at}{number}/{nested.at}/")
            if wrong is not None:
                return wrong
    return None


MOST_EXPRESSIONS: Final = 256  # expressions of one workflow


async def check_steps(
    call: RoutedCall, steps: tuple[StepSpec, ...], *, propagates: bool, has_input: bool = False, result: Any = None
) -> Fault | None:
    """Return what is wrong with the names, references and expressions of steps, at the place of one.

    A step may use the outputs of earlier ones if the workflow `propagates` them, so that there are no cycles. `result`
    is the shape of the output of the whole.
    """
    texts = collect_texts(steps, propagates=propagates, has_input=has_input, result=result)
    if isinstance(texts, Fault):
        return texts
    if len(texts) > MOST_EXPRESSIONS:
        return Fault(f"The steps have more than {MOST_EXPRESSIONS} expressions.", texts[MOST_EXPRESSIONS].at)
    for one in texts:
        missing = find_missing()
        if missing is not None:
            message = f"{call.method} with expressions requires {missing}, which this server lacks."
            raise refusal(status.NOT_IMPLEMENTED, "not-implemented", message, missing=missing)
        names = variables_of(one.known, one.bare)
        wrong = await call.server.expressions.check(one.text, names, call.agent_id)
        if wrong is not None:
            usable = ", ".join(sorted(names))
            advice = f"It may use {usable or 'no step; give earlier steps names and set context_propagation'}."
            message = f"{_label(one.at)}: the expression {one.text[:80]!r} is not valid: {wrong}. {advice}"
            return Fault(message, one.at)
    return None


def collect_texts(
    steps: tuple[StepSpec, ...], *, propagates: bool, has_input: bool = False, result: Any = None
) -> list[_Text] | Fault:
    """Return the expressions of steps; a Fault for a name that is used twice, or a reference to no earlier step."""
    walk, bare = _Walk(), frozenset({INPUT} if has_input else ())
    try:
        seen = walk.check(steps, bare, bare, propagates=propagates, at="steps")
        if result is not None:
            walk.check_value(result, bare | seen, bare, "output", propagates=True)
    except _WrongNameError as error:
        return error.fault
    return walk.texts


class _Text(msgspec.Struct, frozen=True):
    """An expression, the names that it may use, and those among them that are not steps."""

    text: str
    known: frozenset[str]
    bare: frozenset[str]
    at: str


class _WrongNameError(Exception):
    def __init__(self, message: str, at: str) -> None:
        self.fault = Fault(f"{_label(at)}{message}", at)
        super().__init__(message)


def _label(at: str) -> str:
    """Return how a step is called in a message: by its number, or by its place in a list inside another."""
    parts = at.split("/")
    return "The output" if len(parts) < 2 else f"Step {int(parts[1]) + 1}" if len(parts) == 2 else f"Step {at}"


class _Walk:
    """Walks through steps in the order in which they are written, and collects their expressions."""

    def __init__(self) -> None:
        self.texts: list[_Text] = []

    def check(
        self,
        steps: Sequence[StepSpec],
        around: frozenset[str],
        bare: frozenset[str],
        *,
        propagates: bool,
        parallel: bool = False,
        at: str,
    ) -> frozenset[str]:
        """Check a list; return the names of its steps. `around` are the names that all of them may use."""
        seen: frozenset[str] = frozenset()
        for number, step in enumerate(steps, 1):
            own = frozenset((str(number),) if step.name is None else (str(number), step.name))
            if step.name is None and step.is_simple:  # nearly every step of most lists
                seen |= own
                continue
            here = f"{at}/{number - 1}"
            if step.name is not None and (step.name.isdigit() or step.name in around or step.name in seen):
                wrong = f" has the name {step.name!r}, which is a number or the name of an earlier step."
                raise _WrongNameError(wrong, here)
            known = around | seen if propagates and not parallel else around
            if step.when is not None:
                self.texts.append(_Text(step.when, known, bare, here))
            self.check_value(step.value, known, bare, here, propagates=propagates)
            inside = self._nested(step, known, around | seen, bare, here, propagates=propagates)
            if step.output is not None:
                self.check_value(step.output, known | own | inside, bare, here, propagates=propagates)
            if step.undoing is not None:
                self.check_value(step.undoing.parameters, around | seen | own, bare, here, propagates=True)
            seen |= own | inside
        return seen

    def _nested(
        self,
        step: StepSpec,
        known: frozenset[str],
        used: frozenset[str],
        bare: frozenset[str],
        at: str,
        *,
        propagates: bool,
    ) -> frozenset[str]:
        """Check the steps inside one; return the names of those that are known after it."""
        block = step.nested
        if block is None:
            return frozenset()
        known = frozenset(one for one in known if not one.isdigit())  # a number means a step of the same list
        if step.for_each is not None:
            item = step.for_each.name
            if item in used | bare | {INPUT}:
                raise _WrongNameError(f" calls its element {item!r}, which is used already; choose another `as`.", at)
            known, bare = known | {item}, bare | {item}
        inner = propagates if block.propagates is None else block.propagates
        seen = self.check(block.steps, known, bare, propagates=inner, parallel=block.parallel, at=f"{at}/{block.at}")
        names = frozenset(one for one in seen if not one.isdigit())
        if names & used:
            wrong = f" has the name {min(names & used)!r} inside, which is the name of an earlier step."
            raise _WrongNameError(wrong, at)
        return names if step.together else frozenset()

    def check_value(
        self, value: Any, known: frozenset[str], bare: frozenset[str], at: str, *, propagates: bool
    ) -> None:
        fault = None if is_plain(value) else check_references(value, known)
        if fault is not None:
            advice = "" if propagates else " Set context_propagation to true to use what earlier steps returned."
            raise _WrongNameError(f": {fault}.{advice}", at)
        self.texts += [_Text(text, known, bare, at) for text in expressions_in(value)]
