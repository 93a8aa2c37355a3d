"""CHAIN, BATCH, RUN, PAUSE, and RESUME of a workflow: calls that survive a restart (Tier 2 8)."""

from __future__ import annotations

import hashlib
import hmac
import logging
import math
import re
import secrets
import time
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.workflows.driving import KEPT
from bespeak.extensions.workflows.engine import Workflow, Workflows, receipt_steps
from bespeak.extensions.workflows.procedures import find_procedure
from bespeak.extensions.workflows.spec import Spec, StepSpec
from bespeak.extensions.workflows.start import LONGEST, begin, check_calls, check_steps
from bespeak.extensions.workflows.store import (
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
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.bindings.participant import METHOD
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import Conflicts, RefusedError, effects, invalid, read_future, refusal, stateful, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, Record, RemoveRecord
from bespeak.state.store.store import Command
from bespeak.text.diagnostics.diagnostic import brief

_CHAIN: Final = STANDARD["CHAIN"]


@stateful
async def chain(call: RoutedCall) -> Envelope:
    """Answer CHAIN /: the receipt when it has ended, or 202 if that takes long."""
    given = call.input
    steps = tuple(msgspec.convert(step, StepSpec) for step in given["steps"])
    propagates = given.get("context_propagation", False)
    check_calls(call, steps)
    fault = await check_steps(call, steps, propagates=propagates)
    if fault is not None:
        raise refusal(_CHAIN, "invalid-chain", fault.message, step=int(fault.at))
    on_failure = given.get("on_failure", "abort")
    return await begin(call, _spec(call, steps, on_failure=on_failure, propagates=propagates), _tell)


def _spec(call: RoutedCall, steps: tuple[StepSpec, ...], **more: Any) -> Spec:
    authority, deadline = Authority.of(call.principal, call.request), time.time() + call.input.get("timeout", LONGEST)
    return Spec(method=call.method, steps=steps, authority=authority, deadline=deadline, **more)


def _tell(workflow: Workflow) -> Envelope:
    steps = receipt_steps(workflow)
    state = workflow.record.state
    result: dict[str, Any] = {"chain_id": workflow.record.record_id, "status": state, "steps": steps}
    if state == COMPLETED and steps and "output" in steps[-1]:
        result["output"] = steps[-1]["output"]
    if state == FAILED and time.time() >= workflow.spec.deadline:
        raise refusal(_CHAIN, "timeout", "The time of the chain ran out.", **result)
    return Envelope(result, status.ACCEPTED if state not in (COMPLETED, FAILED) else status.OK)


_BATCH: Final = STANDARD["BATCH"]


@stateful
async def batch(call: RoutedCall) -> Envelope:
    """Answer BATCH /: the outcome of every call."""
    given = call.input
    calls = tuple(msgspec.convert(one, StepSpec) for one in given["calls"])
    check_calls(call, calls)
    fault = await check_steps(call, calls, propagates=False)
    if fault is not None:
        raise invalid("calls", f"cannot be run. {fault.message}")
    parallel = given.get("execution_mode", "parallel") == "parallel"
    spec = _spec(call, calls, parallel=parallel, partial=given.get("partial_success", False))
    return await begin(call, spec, _batch_tell)


def _batch_tell(workflow: Workflow) -> Envelope:
    results, ended = receipt_steps(workflow), workflow.record.state
    states = [one["status"] for one in results]
    failed, succeeded = states.count("failed"), states.count("done")
    state = ("partial" if succeeded else "failed") if ended == COMPLETED and failed else ended
    receipt: dict[str, Any] = {"batch_id": workflow.record.record_id, "status": state}
    receipt |= {"succeeded": succeeded, "failed": failed, "results": results}
    if ended != FAILED:
        return Envelope(receipt, status.OK if ended == COMPLETED else status.ACCEPTED)
    if time.time() >= workflow.spec.deadline:
        raise refusal(_BATCH, "timeout", "The time of the batch ran out.", **receipt)
    message = f"{failed} of {len(results)} calls failed; with partial_success the others would count."
    raise refusal(_BATCH, "batch-failed", message, **receipt)


_logger = logging.getLogger(__name__)

_RUN: Final = STANDARD["RUN"]


@stateful
async def run(call: RoutedCall) -> Envelope:
    """Answer RUN /. Nothing is run but what is registered under an id."""
    return await run_procedure(call, call.input["procedure_id"], call.input.get("input", {}))


async def run_procedure(call: RoutedCall, procedure_id: str, given: dict[str, Any]) -> Envelope:
    """Run a procedure for a call of RUN or EXECUTE, and answer with its receipt."""
    # Tier 2 10.3: the audit record has the input too, which may be a secret, so that the log never has it.
    if not call.server.audited:
        _logger.warning("RUN %s by %s, which no audit trail records", brief(procedure_id), call.agent_id)
    plan = await find_procedure(call, procedure_id)
    violations = plan.input.violations(given)
    if violations:
        listed = [{"field": one.pointer, "message": one.message} for one in violations]
        message = f"The procedure does not take this input: {violations[0].message}."
        raise refusal(_RUN, "invalid-input", message, violations=listed)
    spec = Spec(
        method=METHOD,
        steps=plan.steps,
        authority=Authority.of(call.principal, call.request),
        deadline=time.time() + min(call.input.get("timeout", plan.timeout), plan.timeout),
        propagates=True,
        given=given,
    )
    return await begin(call, spec, partial(_run_tell, procedure_id))


def _run_tell(procedure_id: str, workflow: Workflow) -> Envelope:
    steps, state = receipt_steps(workflow), workflow.record.state
    result: dict[str, Any] = {"run_id": workflow.record.record_id, "procedure_id": procedure_id, "status": state}
    if state == COMPLETED and "output" in steps[-1]:
        result["output"] = steps[-1]["output"]
    failed = next((one for one in steps if one["status"] == FAILED and "error" in one), None)
    if state == FAILED and failed is not None:
        result["error"] = failed["error"]
    elif state == FAILED:  # only the time can have ended it
        raise refusal(_RUN, "timeout", "The time of the procedure ran out.", **result)
    if len(steps) > 1:
        result["steps"] = steps
    return Envelope(result, status.OK if state in ENDED else status.ACCEPTED)


PAUSE: Final = "pause"  # kind of the records that hold resumption nonces
_NONCE_BYTES: Final = 16
_KEPT: Final = 366 * 86400.0
_PAUSE: Final = STANDARD["PAUSE"]


def pause_id(workflow_id: str) -> str:
    return f"pause-{workflow_id}"


def hash_nonce(nonce: str) -> str:
    """Return what is stored of a nonce."""
    return hashlib.sha256(nonce.encode(errors="surrogatepass")).hexdigest()


@stateful
def pause(call: RoutedCall) -> Effects:
    """Answer PAUSE /. A step that runs is finished, and its result is kept."""
    given, agent_id = call.input, call.agent_id or ""
    workflow_id: str = given["workflow_id"]
    resume_at = read_future(given, "resume_at", most=math.inf)
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    commands = (
        ChangeRecord(workflow_id, (WORKFLOW,), (RUNNING, WAITING), PAUSED, owner=agent_id, due=resume_at),
        RemoveRecord(pause_id(workflow_id)),
        PutRecord(pause_id(workflow_id), PAUSE, agent_id, "open", f'"{hash_nonce(nonce)}"', lifetime=_KEPT),
    )
    result = {"workflow_id": workflow_id, "status": PAUSED, "resumption_nonce": nonce}
    if resume_at is not None:
        result["resume_at"] = write_instant(resume_at)
    unknown = f"This agent has no workflow {workflow_id!r}."
    conflicts: Conflicts = {"not-found": _PAUSE.refuse("workflow-not-found", unknown), "": _refuse_pause}
    return effects(commands, lambda _: result, conflicts, partial(call.server.part("workflows").heed, workflow_id))


def _refuse_pause(found: Mapping[str, Any]) -> Refused:
    state = found["state"]
    if state == PAUSED:
        return _PAUSE.refuse("already-paused", "The workflow is paused already; its nonce was returned then.")
    return _PAUSE.refuse("workflow-ended", f"The workflow is {state} and cannot be paused.", workflow_status=state)


_WORKFLOW_ID: Final = re.compile(r"[a-z]+-[0-9a-f]{32}")
_NOT_FOUND: Final = Refused(status.NOT_FOUND, "workflow-not-found", "This agent has no such workflow.")
_NOT_OURS: Final = "This is not the nonce that PAUSE returned for the workflow."
_WRONG: Final = Refused(status.CONFLICT, "resumption-nonce-wrong", _NOT_OURS)
_TOO_LATE: Final = "The time of the workflow ran out while it was paused; it has failed."
_EXPIRED: Final = Refused(status.TIMEOUT, "workflow-expired", _TOO_LATE)
_USED: Final = Refused(status.CONFLICT, "resumption-nonce-used", "The nonce has already been used.")


def is_workflow_id(text: str) -> bool:
    return _WORKFLOW_ID.fullmatch(text) is not None


def resume_own(call: RoutedCall) -> Coroutine[Any, Any, Effects] | None:
    """Answer RESUME / of a workflow; return None for any other id."""
    return resume_workflow(call) if is_workflow_id(call.input["workflow_id"]) else None


async def resume_workflow(call: RoutedCall) -> Effects:
    """Let a workflow go on. The nonce may be omitted by the agent that owns it; a wrong or used one is refused."""
    given, agent_id = call.input, call.agent_id or ""
    workflows: Workflows | None = call.server.part("workflows")
    found = None if workflows is None else await workflows.find(given["workflow_id"], agent_id)
    if found is None or call.server.store is None:
        raise RefusedError(_NOT_FOUND)
    workflow_id = found.record.record_id
    state = found.record.state
    if state != PAUSED:
        message = f"The workflow is {state}, not paused."
        raise refusal(status.CONFLICT, "workflow-not-paused", message, workflow_status=state)
    paused: Record | None = await call.server.store.read(FindRecord((PAUSE,), pause_id(workflow_id)))
    commands: list[Command] = []
    if "resumption_nonce" in given:
        if paused is None or not hmac.compare_digest(paused.content(), hash_nonce(given["resumption_nonce"])):
            raise RefusedError(_WRONG)
        commands.append(ChangeRecord(paused.record_id, (PAUSE,), ("open",), "used"))
    if found.spec.deadline <= time.time():
        ended = ChangeRecord(workflow_id, (WORKFLOW,), (PAUSED,), FAILED, owner=agent_id, lifetime=KEPT)
        return Effects((*commands, ended), lambda _: _EXPIRED)
    rows = _override(found, given.get("checkpoint"))
    if rows:
        commands.append(JournalSteps(workflow_id, found.record.fence, rows, 0.0))
    going = ChangeRecord(workflow_id, (WORKFLOW,), (PAUSED,), RUNNING, owner=agent_id, delay=0.0)
    result = {"workflow_id": workflow_id, "status": RUNNING, "overridden": len(rows)}
    return effects([*commands, going], lambda _: result, _USED)


def _override(workflow: Workflow, checkpoint: Any) -> tuple[StepRow, ...]:
    """Return the rows of steps whose outputs a checkpoint replaces, for the steps after them."""
    if checkpoint is None:
        return ()
    rows = {workflow.spec.name_of(row.number): row for row in workflow.rows if row.state == DONE}
    if not isinstance(checkpoint, Mapping) or not checkpoint.keys() <= rows.keys():
        known = ", ".join(rows) or "none"
        message = f"The checkpoint of a workflow has outputs by the name of a step that is done: {known}."
        raise refusal(status.UNPROCESSABLE, "invalid-checkpoint", message, field="/checkpoint")
    return tuple(msgspec.structs.replace(rows[name], output=to_json(output)) for name, output in checkpoint.items())
