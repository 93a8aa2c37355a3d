"""EXECUTE of a plan: the calls that PLAN returned, as a workflow that survives a restart (core 4.7)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import msgspec

from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import IDEMPOTENCY_KEY
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.runtime.answer import Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import invalid, refuse_without_needs
from bespeak.runtime.methods.plan import KIND, StoredPlan
from bespeak.runtime.procedures import STEPS
from bespeak.runtime.workflows.beginning import LONGEST, begin, find_uncallable
from bespeak.runtime.workflows.checking import check_steps
from bespeak.runtime.workflows.engine import Workflow, receipt_steps
from bespeak.runtime.workflows.reference import check_references, resolve
from bespeak.runtime.workflows.spec import Spec, StepSpec
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.commands.steps import COMPLETED, DONE, ENDED, FAILED

_TOLD: Final = ("step", "purpose", "impact", "required_scopes", "estimated_cost", "confidence")
"""Members of a step that PLAN adds for its reader."""


async def execute_plan(call: RoutedCall) -> Envelope | Refused:
    """Run a plan: one that PLAN has kept for the caller, or one in the request."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    if call.parent is not None:
        return invalid("plan", "cannot be a step of another workflow; write its calls as steps.")
    found = await _find(call)
    if isinstance(found, Refused):
        return found
    steps = _read_steps(found.steps)
    if isinstance(steps, str):
        return invalid("plan", f"has steps that are not valid: {steps}")
    uncallable = find_uncallable(call, steps)
    if uncallable is not None:
        return Refused(status.UNPROCESSABLE, "invalid-plan", uncallable.message, uncallable.place)
    fault = await check_steps(call, steps, propagates=True, has_input=True)
    if isinstance(fault, Fault):
        return Refused(status.UNPROCESSABLE, "invalid-plan", fault.message, {"step": int(fault.at)})
    if fault is not None:
        return fault
    known = {step.name or str(number) for number, step in enumerate(steps, 1)}
    wrong = check_references(dict(found.result), known)
    if wrong is not None:
        return invalid("plan", f"has a result that cannot be made: {wrong}.")
    spec = Spec(
        method=call.method,
        steps=steps,
        authority=Authority.of(call.principal, call.request),
        deadline=time.time() + call.input.get("timeout", LONGEST),
        propagates=True,
        given={**found.given, **call.input.get("parameters", {})},
    )
    key = call.input.get("idempotency_key")
    if key is not None:
        # A repeated request finds the workflow of the first one by its key.
        headers = {**call.request.headers, IDEMPOTENCY_KEY: key}
        call.request = msgspec.structs.replace(call.request, headers=headers)
    return await begin(call, spec, partial(_tell, found.result))


async def _find(call: RoutedCall) -> StoredPlan | Refused:
    if "plan" in call.input:
        given = call.input["plan"]
        plan = {"steps": given} if isinstance(given, list) else given
        steps = plan.get("steps", plan.get("ordered_steps"))
        known, result = plan.get("input", {}), plan.get("result", {})
        if not isinstance(steps, list) or not isinstance(known, dict) or not isinstance(result, dict):
            return invalid("plan", "must have `steps`, a list of calls, and perhaps `input`, an object.")
        return StoredPlan(tuple(steps), known, result)
    assert call.server.store is not None, "it is needed"
    record: Record | None = await call.server.store.read(FindRecord((KIND,), call.input["plan_id"]))
    if record is None or record.owner != call.agent_id:
        message = "This agent has no plan with this id; plans are kept for a day."
        return Refused(status.NOT_FOUND, "plan-not-found", message)
    return msgspec.json.decode(record.data, type=StoredPlan)


def _read_steps(given: tuple[Any, ...]) -> tuple[StepSpec, ...] | str:
    """Read calls as PLAN writes them; return what is wrong with them instead."""
    plain = [
        {name: value for name, value in one.items() if name not in _TOLD} if isinstance(one, dict) else one
        for one in given
    ]
    validator = compile_schema(STEPS)
    assert isinstance(validator, Validator)
    violations = validator.violations(plain)
    if violations:
        return f"{violations[0].message}."
    return tuple(msgspec.convert(one, StepSpec) for one in plain)


def _tell(result: Mapping[str, Any], workflow: Workflow) -> Envelope:
    steps, state = receipt_steps(workflow), workflow.record.state
    receipt: dict[str, Any] = {"execution_id": workflow.record.record_id, "status": state, "steps": steps}
    if state == COMPLETED:
        receipt["output"] = _output(result, workflow) or steps[-1].get("output")
    failed = next((one for one in steps if one["status"] == FAILED and "error" in one), None)
    if state == FAILED and failed is not None:
        receipt["error"] = failed["error"]
    return Envelope(receipt, status.OK if state in ENDED else status.ACCEPTED)


def _output(result: Mapping[str, Any], workflow: Workflow) -> Any:
    """Return the fields that the goal wanted, if references say where they are."""
    outputs = {
        workflow.spec.name_of(row.number): msgspec.json.decode(row.output) for row in workflow.rows if row.state == DONE
    }
    found = resolve(dict(result), outputs)
    return None if isinstance(found, Fault) or "$expr" in str(result) else found
