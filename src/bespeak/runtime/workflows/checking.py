"""What is checked of the steps of a workflow before it begins: names, references and expressions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.expressions.pool import find_missing
from bespeak.runtime.workflows.reference import INPUT, check_references, expressions_in, variables_of
from bespeak.runtime.workflows.spec import StepSpec

MOST_EXPRESSIONS: Final = 256
"""Expressions of one workflow."""


async def check_steps(
    call: RoutedCall, steps: tuple[StepSpec, ...], *, propagates: bool, has_input: bool = False
) -> Fault | Refused | None:
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
                return Refused(status.NOT_IMPLEMENTED, "not-implemented", message, {"missing": missing})
            wrong = await call.server.expressions.check(text, variables_of(names), call.agent_id)
            if wrong is not None:
                message = f"Step {number}: the expression {text[:80]!r} is not valid: {wrong}.{_advice(names)}"
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


def _advice(names: Collection[str]) -> str:
    known = ", ".join(sorted(variables_of(names)))
    return (
        f" It may use {known}."
        if known
        else " It may use no step; give earlier steps names and set context_propagation."
    )
