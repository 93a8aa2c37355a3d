"""CHAIN: calls one after the other, as a workflow that survives a restart (Tier 2 8.1)."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.workflows.beginning import LONGEST, begin, check_calls
from bespeak.runtime.workflows.engine import Workflow, receipt_steps
from bespeak.runtime.workflows.reference import check_references
from bespeak.runtime.workflows.spec import Authority, Spec, StepSpec
from bespeak.state.store.commands.steps import COMPLETED, FAILED

_CHAIN: Final = STANDARD["CHAIN"]


async def chain(call: RoutedCall) -> Envelope | Refused:
    """Answer CHAIN /: the receipt when it has ended, or 202 if that takes long."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    steps = tuple(msgspec.convert(step, StepSpec) for step in given["steps"])
    propagates = given.get("context_propagation", False)
    refused = check_calls(call, steps) or _check_names(steps, propagates=propagates)
    if refused is not None:
        return refused
    spec = Spec(
        method=call.method,
        steps=steps,
        authority=Authority.of(call),
        deadline=time.time() + given.get("timeout", LONGEST),
        on_failure=given.get("on_failure", "abort"),
        propagates=propagates,
    )
    return await begin(call, spec, _tell)


def _tell(workflow: Workflow) -> Envelope | Refused:
    steps = receipt_steps(workflow)
    state = workflow.record.state
    result: dict[str, Any] = {"chain_id": workflow.record.record_id, "status": state, "steps": steps}
    if state == COMPLETED and steps and "output" in steps[-1]:
        result["output"] = steps[-1]["output"]
    if state == FAILED and time.time() >= workflow.spec.deadline:
        return _CHAIN.refuse("timeout", "The time of the chain ran out.", **result)
    return Envelope(result, status.ACCEPTED if state not in (COMPLETED, FAILED) else status.OK)


def _check_names(steps: tuple[StepSpec, ...], *, propagates: bool) -> Refused | None:
    """Refuse names that are used twice, and references to anything but earlier steps."""
    known: set[str] = set()
    for number, step in enumerate(steps, 1):
        if step.name is not None and (step.name in known or step.name.isdigit()):
            message = f"Step {number} has the name {step.name!r}, which is a number or the name of an earlier step."
            return _CHAIN.refuse("invalid-chain", message, step=number)
        fault = check_references(step.parameters, known if propagates else ())
        if fault is None and step.compensate is not None:
            fault = check_references(step.compensate.parameters, {*known, str(number), step.name or str(number)})
        if fault is not None:
            advice = "" if propagates else " Set context_propagation to true to use what earlier steps returned."
            return _CHAIN.refuse("invalid-chain", f"Step {number}: {fault}.{advice}", step=number)
        known |= {str(number), step.name or str(number)}
    return None
