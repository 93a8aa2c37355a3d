"""Start of a workflow: names, references, expressions and calls are checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.workflows.engine import Workflow, Workflows
from bespeak.extensions.workflows.spec import (
    INPUT,
    Spec,
    StepSpec,
    check_references,
    expressions_in,
    find_step,
    variables_of,
)
from bespeak.extensions.workflows.store import RUNNING
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
        return _tell_begun(call, tell(await workflows.wait(begun, 0.0)), begun)
    found = await workflows.follow(begun, spec, ANSWERED_WITHIN)
    if found.record.state == RUNNING and IDEMPOTENCY_KEY in call.request.headers:
        # The answer under the key must be the final one, so this one is not kept.
        message = f"{begun} is still running; repeat the request with the same Idempotency-Key for its receipt."
        raise refusal(status.UNAVAILABLE, "workflow-running", message, retry_after=5, workflow_id=begun)
    return tell(found)


def _tell_begun(call: RoutedCall, made: Envelope, workflow_id: str) -> Envelope:
    """Add to the receipt of a workflow that has not ended where its result is found (RFC 7240 4.1)."""
    if made.status != status.ACCEPTED:
        return made
    where: dict[str, Any] = {"method": "QUERY", "path": RUNS_PATH}
    if "CHECK" in call.routes.allowed:
        where = {"method": "CHECK", "path": "/", "parameters": {"target": workflow_id}}
    headers = (*made.headers, ("Preference-Applied", RESPOND_ASYNC))
    return Envelope({**made.result, "look": where}, made.status, headers)


async def find_run(call: RoutedCall, name: str) -> str | None:
    """Return the id of the caller's workflow that an id or a Task-ID means; None if there is none.

    A Task-ID with which several were begun is refused, with their ids.
    """
    workflows: Workflows | None = call.server.part("workflows")
    found = [] if workflows is None or call.agent_id is None else await workflows.find_id(call.agent_id, name)
    if len(found) > 1:
        message = (
            f"Several workflows were begun with the Task-ID {name[:80]!r}; name one by its id: {', '.join(found)}."
        )
        raise refusal(status.CONFLICT, "workflow-ambiguous", message, workflow_ids=found)
    return found[0] if found else None


def check_calls(call: RoutedCall, steps: tuple[StepSpec, ...]) -> None:
    """Refuse a call of something that is not there, or that would call others in turn."""
    found = find_uncallable(call, steps)
    if found is not None:
        raise refusal(STANDARD[call.method], "endpoint-not-found", found.message, **found.place)


class Uncallable(msgspec.Struct, frozen=True):
    message: str
    place: dict[str, Any]


def find_uncallable(call: RoutedCall, steps: tuple[StepSpec, ...]) -> Uncallable | None:
    """Return the first step that calls something that is not there, or that would call others in turn."""
    for number, step in enumerate(steps, 1):
        for one in (step, *([step.compensate] if step.compensate else [])):
            found = find_step(call, one.method, one.sought)
            place: dict[str, Any] = {"step": number, "method": one.method, "path": one.path}
            if isinstance(found, Refused):
                return Uncallable(f"Step {number}: {found.message}", {"code_of_step": found.code, **place})
            if found.route.endpoint.passes_on:
                what = f"Step {number} is {one.method} {one.path}, which runs other calls"
                return Uncallable(f"{what}; write them as steps instead.", place)
    return None


MOST_EXPRESSIONS: Final = 256  # expressions of one workflow


async def check_steps(
    call: RoutedCall, steps: tuple[StepSpec, ...], *, propagates: bool, has_input: bool = False
) -> Fault | None:
    """Return what is wrong with the names, references and expressions of steps, at the number of one.

    A step may use the outputs of earlier ones if the workflow `propagates` them, so that there are no cycles.
    """
    fault = check_names(steps, propagates=propagates, has_input=has_input)
    if fault is not None:
        return fault
    count, known = 0, {INPUT} if has_input else set()
    for number, step in enumerate(steps, 1):
        own = {step.name} if step.name else set()
        undo = step.compensate
        texts = [
            *((text, known) for text in (*([step.when] if step.when else ()), *expressions_in(step.parameters))),
            *((text, known | own) for text in (expressions_in(undo.parameters) if undo else ())),
        ]
        count += len(texts)
        if count > MOST_EXPRESSIONS:
            return Fault(f"The steps have more than {MOST_EXPRESSIONS} expressions.", str(number))
        for text, names in texts:
            missing = find_missing()
            if missing is not None:
                message = f"{call.method} with expressions requires {missing}, which this server lacks."
                raise refusal(status.NOT_IMPLEMENTED, "not-implemented", message, missing=missing)
            wrong = await call.server.expressions.check(text, variables_of(names), call.agent_id)
            if wrong is not None:
                usable = ", ".join(sorted(variables_of(names)))
                advice = f"It may use {usable or 'no step; give earlier steps names and set context_propagation'}."
                message = f"Step {number}: the expression {text[:80]!r} is not valid: {wrong}. {advice}"
                return Fault(message, str(number))
        known = known | own if propagates else known
    return None


def check_names(steps: tuple[StepSpec, ...], *, propagates: bool, has_input: bool = False) -> Fault | None:
    """Return a Fault for a name that is used twice, or a reference to anything but an earlier step."""
    reserved = {INPUT} if has_input else set()
    known = set(reserved)
    for number, step in enumerate(steps, 1):
        if step.name is not None and (step.name in known or step.name.isdigit()):
            message = f"Step {number} has the name {step.name!r}, which is a number or the name of an earlier step."
            return Fault(message, str(number))
        fault = check_references(step.parameters, known if propagates else reserved)
        if fault is None and step.compensate is not None:
            fault = check_references(step.compensate.parameters, {*known, str(number), step.name or str(number)})
        if fault is not None:
            advice = "" if propagates else " Set context_propagation to true to use what earlier steps returned."
            return Fault(f"Step {number}: {fault}.{advice}", str(number))
        known |= {str(number), step.name or str(number)}
    return None
