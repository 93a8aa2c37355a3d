"""BATCH: independent calls together, as a workflow that survives a restart (Tier 2 8.2)."""

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
from bespeak.runtime.methods.needs import invalid, refuse_without_needs
from bespeak.runtime.workflows.beginning import LONGEST, begin, check_calls
from bespeak.runtime.workflows.checking import check_steps
from bespeak.runtime.workflows.engine import Workflow, receipt_steps
from bespeak.runtime.workflows.spec import Spec, StepSpec
from bespeak.state.store.commands.steps import COMPLETED, FAILED

_BATCH: Final = STANDARD["BATCH"]


async def batch(call: RoutedCall) -> Envelope | Refused:
    """Answer BATCH /: the outcome of every call."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    calls = tuple(msgspec.convert(one, StepSpec) for one in given["calls"])
    refused = check_calls(call, calls)
    if refused is not None:
        return refused
    fault = await check_steps(call, calls, propagates=False)
    if fault is not None:
        return fault if isinstance(fault, Refused) else invalid("calls", f"cannot be run. {fault.message}")
    spec = Spec(
        method=call.method,
        steps=calls,
        authority=Authority.of(call.principal, call.request),
        deadline=time.time() + given.get("timeout", LONGEST),
        parallel=given.get("execution_mode", "parallel") == "parallel",
        partial=given.get("partial_success", False),
    )
    return await begin(call, spec, _tell)


def _tell(workflow: Workflow) -> Envelope | Refused:
    results = receipt_steps(workflow)
    states = [one["status"] for one in results]
    ended = workflow.record.state
    failed, succeeded = states.count("failed"), states.count("done")
    state = (
        "partial"
        if ended == COMPLETED and failed and succeeded
        else "failed"
        if ended == COMPLETED and failed
        else ended
    )
    receipt: dict[str, Any] = {
        "batch_id": workflow.record.record_id,
        "status": state,
        "succeeded": succeeded,
        "failed": failed,
        "results": results,
    }
    if ended != FAILED:
        return Envelope(receipt, status.OK if ended == COMPLETED else status.ACCEPTED)
    if time.time() >= workflow.spec.deadline:
        return _BATCH.refuse("timeout", "The time of the batch ran out.", **receipt)
    message = f"{failed} of {len(results)} calls failed; with partial_success the others would count."
    return _BATCH.refuse("batch-failed", message, **receipt)
