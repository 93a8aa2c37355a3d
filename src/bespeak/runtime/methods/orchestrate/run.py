"""RUN: registered procedures, as workflows that survive a restart (Tier 2 8.8, 10.3)."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.proposed_procedure import find_procedure
from bespeak.runtime.procedures import METHOD
from bespeak.runtime.workflows.beginning import begin
from bespeak.runtime.workflows.engine import Workflow, receipt_steps
from bespeak.runtime.workflows.spec import Spec
from bespeak.state.store.commands.steps import COMPLETED, ENDED, FAILED
from bespeak.text.diagnostics.brief import brief

_logger = logging.getLogger(__name__)

_RUN: Final = STANDARD["RUN"]


async def run(call: RoutedCall) -> Envelope | Refused:
    """Answer RUN /. Nothing is run but what is registered under an id."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    return await run_procedure(call, call.input["procedure_id"], call.input.get("input", {}))


async def run_procedure(call: RoutedCall, procedure_id: str, given: dict[str, Any]) -> Envelope | Refused:
    """Run a procedure for a call of RUN or EXECUTE, and answer with its receipt."""
    # Tier 2 10.3: the audit record has the input too, which may be a secret, so that the log never has it.
    if not call.server.audited:
        _logger.warning("RUN %s by %s, which no audit trail records", brief(procedure_id), call.agent_id)
    plan = await find_procedure(call, procedure_id)
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
        authority=Authority.of(call.principal, call.request),
        deadline=time.time() + min(call.input.get("timeout", plan.timeout), plan.timeout),
        propagates=True,
        given=given,
    )
    return await begin(call, spec, partial(_tell, procedure_id))


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
