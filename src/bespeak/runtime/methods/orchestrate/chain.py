"""CHAIN: calls one after the other, as a workflow that survives a restart (Tier 2 8.1)."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.workflows.beginning import LONGEST, begin, check_calls
from bespeak.runtime.workflows.checking import check_steps
from bespeak.runtime.workflows.engine import Workflow, receipt_steps
from bespeak.runtime.workflows.spec import Spec, StepSpec
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
    refused = check_calls(call, steps)
    if refused is not None:
        return refused
    fault = await check_steps(call, steps, propagates=propagates)
    if fault is not None:
        return (
            fault if isinstance(fault, Refused) else _CHAIN.refuse("invalid-chain", fault.message, step=int(fault.at))
        )
    spec = Spec(
        method=call.method,
        steps=steps,
        authority=Authority.of(call.principal, call.request),
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
