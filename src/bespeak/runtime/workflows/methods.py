"""CHAIN, BATCH, RUN, PAUSE, and RESUME of a workflow: calls that survive a restart (Tier 2 8)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.bindings.procedure import METHOD
from bespeak.runtime.call import RoutedCall, invalid, read_time, refuse_without_needs
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.workflows.driving import KEPT
from bespeak.runtime.workflows.engine import Workflow, Workflows, receipt_steps
from bespeak.runtime.workflows.procedures import find_procedure
from bespeak.runtime.workflows.spec import Spec, StepSpec
from bespeak.runtime.workflows.start import LONGEST, begin, check_calls, check_steps
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record, RemoveRecord
from bespeak.state.store.commands.steps import (
    COMPLETED,
    DONE,
    ENDED,
    FAILED,
    PAUSED,
    RUNNING,
    WAITING,
    WORKFLOW,
    JournalSteps,
    StepRow,
)
from bespeak.state.store.store import Command, Conflict
from bespeak.text.diagnostics.diagnostic import brief

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
    return await begin(call, spec, _batch_tell)


def _batch_tell(workflow: Workflow) -> Envelope | Refused:
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
    return await begin(call, spec, partial(_run_tell, procedure_id))


def _run_tell(procedure_id: str, workflow: Workflow) -> Envelope | Refused:
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


PAUSE: Final = "pause"
"""Kind of the records that hold resumption nonces."""
_NONCE_BYTES: Final = 16
_KEPT: Final = 366 * 86400.0
_PAUSE: Final = STANDARD["PAUSE"]


def pause_id(workflow_id: str) -> str:
    """Return the id of the record of the latest pause of a workflow."""
    return f"pause-{workflow_id}"


def hash_nonce(nonce: str) -> str:
    """Return what is stored of a nonce."""
    return hashlib.sha256(nonce.encode(errors="surrogatepass")).hexdigest()


def pause(call: RoutedCall) -> Effects | Refused:
    """Answer PAUSE /. A step that runs is finished, and its result is kept."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given, agent_id = call.input, call.agent_id or ""
    workflow_id: str = given["workflow_id"]
    resume_at = read_time("resume_at", given["resume_at"]) if "resume_at" in given else None
    if isinstance(resume_at, Refused):
        return resume_at
    if resume_at is not None and resume_at <= time.time():
        return invalid("resume_at", "is not in the future.")
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    commands = (
        ChangeRecord(workflow_id, (WORKFLOW,), (RUNNING, WAITING), PAUSED, owner=agent_id, due=resume_at),
        RemoveRecord(pause_id(workflow_id)),
        PutRecord(pause_id(workflow_id), PAUSE, agent_id, "open", f'"{hash_nonce(nonce)}"', lifetime=_KEPT),
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _refuse(workflow_id, results)
        result = {"workflow_id": workflow_id, "status": PAUSED, "resumption_nonce": nonce}
        return Envelope(result if resume_at is None else {**result, "resume_at": write_instant(resume_at)})

    return Effects(commands, tell, partial(call.server.workflows.heed, workflow_id))


def _refuse(workflow_id: str, conflict: Conflict) -> Refused:
    if conflict.reason == "not-found":
        return _PAUSE.refuse("workflow-not-found", f"This agent has no workflow {workflow_id!r}.")
    state = conflict.details["state"]
    if state == PAUSED:
        return _PAUSE.refuse("already-paused", "The workflow is paused already; its nonce was returned then.")
    return _PAUSE.refuse("workflow-ended", f"The workflow is {state} and cannot be paused.", workflow_status=state)


_WORKFLOW_ID: Final = re.compile(r"[a-z]+-[0-9a-f]{32}")
_NOT_FOUND: Final = Refused(status.NOT_FOUND, "workflow-not-found", "This agent has no such workflow.")
_WRONG: Final = Refused(
    status.CONFLICT, "resumption-nonce-wrong", "This is not the nonce that PAUSE returned for the workflow."
)
_EXPIRED: Final = Refused(
    status.TIMEOUT, "workflow-expired", "The time of the workflow ran out while it was paused; it has failed."
)
_USED: Final = Refused(status.CONFLICT, "resumption-nonce-used", "The nonce has already been used.")


def is_workflow_id(text: str) -> bool:
    """Return True if a text has the form of the id of a workflow."""
    return _WORKFLOW_ID.fullmatch(text) is not None


async def resume_workflow(call: RoutedCall) -> Effects | Refused:
    """Let a workflow go on. The nonce may be omitted by the agent that owns it; a wrong or used one is refused."""
    given, agent_id = call.input, call.agent_id or ""
    workflows: Workflows | None = call.server.workflows
    found = None if workflows is None else await workflows.find(given["workflow_id"], agent_id)
    if found is None or call.server.store is None:
        return _NOT_FOUND
    if found.record.state != PAUSED:
        message = f"The workflow is {found.record.state}, not paused."
        return Refused(status.CONFLICT, "workflow-not-paused", message, {"workflow_status": found.record.state})
    paused: Record | None = await call.server.store.read(FindRecord((PAUSE,), pause_id(found.record.record_id)))
    commands: list[Command] = []
    if "resumption_nonce" in given:
        if paused is None or not hmac.compare_digest(paused.content(), hash_nonce(given["resumption_nonce"])):
            return _WRONG
        commands.append(ChangeRecord(paused.record_id, (PAUSE,), ("open",), "used"))
    if found.spec.deadline <= time.time():
        ended = ChangeRecord(found.record.record_id, (WORKFLOW,), (PAUSED,), FAILED, owner=agent_id, lifetime=KEPT)
        return Effects((*commands, ended), lambda _: _EXPIRED)
    rows = _override(found, given.get("checkpoint"))
    if isinstance(rows, Refused):
        return rows
    if rows:
        commands.append(JournalSteps(found.record.record_id, found.record.fence, rows, 0.0))
    going = ChangeRecord(found.record.record_id, (WORKFLOW,), (PAUSED,), RUNNING, owner=agent_id, delay=0.0)

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _USED
        return Envelope({"workflow_id": found.record.record_id, "status": RUNNING, "overridden": len(rows)})

    return Effects((*commands, going), tell)


def _override(workflow: Workflow, checkpoint: Any) -> tuple[StepRow, ...] | Refused:
    """Return the rows of steps whose outputs a checkpoint replaces, for the steps after them."""
    if checkpoint is None:
        return ()
    rows = {workflow.spec.name_of(row.number): row for row in workflow.rows if row.state == DONE}
    if not isinstance(checkpoint, Mapping) or not checkpoint.keys() <= rows.keys():
        message = (
            f"The checkpoint of a workflow has outputs by the name of a step that is done: {', '.join(rows) or 'none'}."
        )
        return Refused(status.UNPROCESSABLE, "invalid-checkpoint", message, {"field": "/checkpoint"})
    return tuple(
        msgspec.structs.replace(rows[name], output=msgspec.json.encode(output).decode())
        for name, output in checkpoint.items()
    )
