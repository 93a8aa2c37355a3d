"""RUN: registered procedures, as workflows that survive a restart (Tier 2 8.8, 10.3)."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any, Final

import msgspec

from bespeak.contract.schema.compile import Validator, compile_schema
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.proposed_procedure import KIND, ProposedProcedure, find_obstacle, procedure_of
from bespeak.runtime.procedures import METHOD, Registered, path_of
from bespeak.runtime.workflows.beginning import begin, find_uncallable
from bespeak.runtime.workflows.checking import check_steps
from bespeak.runtime.workflows.engine import Workflow, receipt_steps
from bespeak.runtime.workflows.spec import Authority, Spec, StepSpec
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.commands.steps import COMPLETED, ENDED, FAILED

_logger = logging.getLogger(__name__)

LONGEST: Final = 300.0
"""Seconds that a procedure of an agent may take."""
_RUN: Final = STANDARD["RUN"]


class Plan(msgspec.Struct, frozen=True):
    """What a run does."""

    steps: tuple[StepSpec, ...]
    input: Validator
    timeout: float


async def run(call: RoutedCall) -> Envelope | Refused:
    """Answer RUN /. Nothing is run but what is registered under an id."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    return await run_procedure(call, call.input["procedure_id"], call.input.get("input", {}))


async def run_procedure(call: RoutedCall, procedure_id: str, given: dict[str, Any]) -> Envelope | Refused:
    """Run a procedure for a call of RUN or EXECUTE, and answer with its receipt."""
    # Tier 2 10.3: the audit record has the same, where there is an audit trail.
    _logger.info(
        "RUN %r by %s with %s", procedure_id, call.agent_id, msgspec.json.encode(given).decode(errors="replace")
    )
    plan = await _find(call, procedure_id)
    if isinstance(plan, Refused):
        return plan
    violations = plan.input.violations(given)
    if violations:
        listed = [{"field": one.pointer, "message": one.message} for one in violations]
        message = f"The procedure does not take this input: {violations[0].message}."
        return _RUN.refuse("invalid-input", message, violations=listed)
    spec = Spec(
        method=METHOD,
        steps=plan.steps,
        authority=Authority.of(call),
        deadline=time.time() + min(call.input.get("timeout", plan.timeout), plan.timeout),
        propagates=True,
        given=given,
    )
    return await begin(call, spec, partial(_tell, procedure_id))


async def _find(call: RoutedCall, procedure_id: str) -> Plan | Refused:
    """Find a procedure of the operator, or one of the caller's own that has been released."""
    registered: Registered | None = call.server.registrar.procedures.get(procedure_id)
    if registered is not None:
        procedure = registered.procedure
        missing = call.principal.scopes.missing(procedure.scopes)
        if missing:
            message = f"The procedure needs the scopes {', '.join(missing)}, beside those of RUN."
            required = {"missing_scopes": missing, "required_scopes": list(procedure.scopes)}
            return Refused(status.SCOPE_VIOLATION, "scope-violation", message, required)
        steps = tuple(msgspec.convert(one, StepSpec) for one in procedure.steps)
        steps = steps or (StepSpec(METHOD, path_of(procedure_id), procedure=procedure_id),)
        return await _checked(call, Plan(steps, registered.input, procedure.timeout))
    assert call.server.store is not None, "RUN needs a store"
    record: Record | None = None
    if procedure_id.startswith("proc-"):
        record = await call.server.store.read(FindRecord((KIND,), procedure_id))
    if record is None or record.owner != call.agent_id:
        message = f"No procedure is registered under {procedure_id[:80]!r}; commands and code are never run."
        return _RUN.refuse("procedure-not-found", message)
    proposed: ProposedProcedure = procedure_of(record)
    obstacle = await find_obstacle(call.server.store, record, proposed)
    if obstacle is not None:
        return _RUN.refuse("procedure-refused", obstacle, escalation_id=proposed.case_id)
    taken = compile_schema(proposed.input)
    assert isinstance(taken, Validator), "it was checked when it was registered"
    return await _checked(call, Plan(proposed.steps, taken, LONGEST))


async def _checked(call: RoutedCall, plan: Plan) -> Plan | Refused:
    """Refuse a procedure whose steps cannot run here and now, or would run others in turn."""
    called = tuple(step for step in plan.steps if step.procedure is None)
    wrong = find_uncallable(call, called)
    if wrong is not None:
        return _RUN.refuse("procedure-refused", f"The procedure cannot run. {wrong.message}")
    fault = await check_steps(call, called, propagates=True, has_input=True)
    if isinstance(fault, Fault):
        return _RUN.refuse("procedure-refused", f"The procedure cannot run. {fault.message}")
    return plan if fault is None else fault


def _tell(procedure_id: str, workflow: Workflow) -> Envelope | Refused:
    steps, state = receipt_steps(workflow), workflow.record.state
    result: dict[str, Any] = {"run_id": workflow.record.record_id, "procedure_id": procedure_id, "status": state}
    if state == COMPLETED and "output" in steps[-1]:
        result["output"] = steps[-1]["output"]
    failed = next((one for one in steps if one["status"] == FAILED and "error" in one), None)
    if state == FAILED and failed is not None:
        result["error"] = failed["error"]
    elif state == FAILED:  # only the time can have ended it
        return _RUN.refuse("timeout", "The time of the procedure ran out.", **result)
    if len(steps) > 1:
        result["steps"] = steps
    return Envelope(result, status.OK if state in ENDED else status.ACCEPTED)
