"""CHAIN, BATCH, RUN, PAUSE, and RESUME of a workflow: calls that survive a restart (Tier 2 8)."""

from __future__ import annotations

import hmac
import logging
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from bespeak.contract.confirmation import UNKNOWN, ListedCall, bounded, list_candidates, list_steps, list_written
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.contract.standard.definition import INVALID_TIME, MethodError, StandardMethod, members, one_of
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.orchestrate import LISTS
from bespeak.extensions.workflows import start, states
from bespeak.extensions.workflows.engine import Workflow, Workflows
from bespeak.extensions.workflows.procedures import find_own_procedure, find_procedure
from bespeak.extensions.workflows.schedules import hash_nonce, is_schedule, pause_schedule, resume_schedule
from bespeak.extensions.workflows.spec import (
    Spec,
    StepSpec,
    decode,
    find_step,
    outcome_of,
    output_number,
    ran_out,
    receipt_steps,
)
from bespeak.extensions.workflows.store import WORKFLOW, JournalSteps, StepRow
from bespeak.extensions.workflows.turn import KEPT
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.bindings.composition import composed_calls, list_composition
from bespeak.runtime.bindings.participant import METHOD, Registered
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.extension import BuiltIn
from bespeak.runtime.handling import RefusedError, effects, invalid, read_future, read_time, refusal, stateful, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutRecord, Record, RemoveRecord
from bespeak.state.store.store import Command
from bespeak.text.diagnostics.diagnostic import brief

_CHAIN: Final = STANDARD["CHAIN"]


@stateful
async def chain(call: RoutedCall) -> Envelope:
    """Answer CHAIN /: the receipt when it has ended, or 202 if that takes long."""
    given = call.input
    more = {"propagates": given.get("context_propagation", False), "result": given.get("output")}
    more |= {"on_failure": given.get("on_failure", "abort")}
    wrong = partial(refusal, _CHAIN, "invalid-chain")
    spec = await _spec(call, "steps", lambda fault: wrong(fault.message, **start.place_of(fault)), **more)
    return await start.begin(call, spec, _tell)


async def _spec(
    call: RoutedCall, at: str, refuse: Callable[[Fault], RefusedError], *, propagates: bool = False, **more: Any
) -> Spec:
    steps = start.read_steps(call.input[at], at, fits=True)
    if isinstance(steps, Fault):
        raise refuse(steps)
    uncallable = start.find_uncallable(call, steps)
    if uncallable is not None:
        raise refusal(STANDARD[call.method], "endpoint-not-found", uncallable.message, **uncallable.place)
    fault = await start.check_steps(call, steps, propagates=propagates, result=more.get("result"))
    if fault is not None:
        raise refuse(fault)
    authority, callback = Authority.of(call.principal, call.request), await start.read_callback(call)
    deadline = time.time() + call.input.get("timeout", start.LONGEST)
    return Spec(call.method, steps, authority, deadline, propagates=propagates, callback=callback, **more)


def _tell(workflow: Workflow) -> Envelope:
    steps, state = receipt_steps(workflow), workflow.record.state
    result: dict[str, Any] = {"chain_id": workflow.record.record_id, "status": state, "steps": steps}
    if state == states.COMPLETED:
        result |= outcome_of(workflow)
    if ran_out(workflow):
        raise refusal(_CHAIN, "timeout", "The time of the chain ran out.", **result)
    return Envelope(result, status.ACCEPTED if state not in (states.COMPLETED, states.FAILED) else status.OK)


_BATCH: Final = STANDARD["BATCH"]


@stateful
async def batch(call: RoutedCall) -> Envelope:
    parallel = call.input.get("execution_mode", "parallel") == "parallel"
    more = {"parallel": parallel, "partial": call.input.get("partial_success", False)}
    spec = await _spec(call, "calls", lambda fault: invalid("calls", f"cannot be run. {fault.message}"), **more)
    return await start.begin(call, spec, _batch_tell)


def _batch_tell(workflow: Workflow) -> Envelope:
    results, ended = receipt_steps(workflow), workflow.record.state
    failed, succeeded = (sum(one["status"] == state for one in results) for state in (states.FAILED, states.DONE))
    state = ("partial" if succeeded else "failed") if ended == states.COMPLETED and failed else ended
    receipt: dict[str, Any] = {"batch_id": workflow.record.record_id, "status": state}
    receipt |= {"succeeded": succeeded, "failed": failed, "results": results}
    if ended != states.FAILED:
        return Envelope(receipt, status.OK if ended == states.COMPLETED else status.ACCEPTED)
    if ran_out(workflow):
        raise refusal(_BATCH, "timeout", "The time of the batch ran out.", **receipt)
    message = f"{failed} of {len(results)} calls failed; with partial_success the others would count."
    raise refusal(_BATCH, "batch-failed", message, **receipt)


_logger = logging.getLogger(__name__)


async def run_procedure(call: RoutedCall, procedure_id: str, given: dict[str, Any]) -> Envelope:
    """Run a procedure for a call of RUN or EXECUTE, and answer with its receipt."""
    # Tier 2 10.3: the audit record has the input too, which may be a secret, so that the log never has it.
    if not call.server.audited:
        _logger.warning("RUN %s by %s, which no audit trail records", brief(procedure_id), call.agent_id)
    plan = await find_procedure(call, procedure_id)
    start.check_input(plan.input, given, "procedure")
    authority = Authority.of(call.principal, call.request)
    deadline = time.time() + min(call.input.get("timeout", plan.timeout), plan.timeout)
    more = {"given": given, "name": procedure_id, "result": plan.result, "callback": await start.read_callback(call)}
    return await start.begin(call, Spec(METHOD, plan.steps, authority, deadline, propagates=True, **more), tell_run)


def tell_run(workflow: Workflow) -> Envelope:
    """Write the receipt of a procedure, or of a workflow function, whose steps are told until it ends."""
    state, spec = workflow.record.state, workflow.spec
    result: dict[str, Any] = {"run_id": workflow.record.record_id, "procedure_id": spec.name, "status": state}
    if spec.workflow is None and ran_out(workflow):
        raise refusal(STANDARD["RUN"], "timeout", "The time of the procedure ran out.", **result)
    result |= outcome_of(workflow)
    has_steps = len(spec.steps) > 1 if spec.workflow is None else state not in states.ENDED
    result |= {"steps": receipt_steps(workflow)} if has_steps else {}
    return Envelope(result, status.OK if state in states.ENDED else status.ACCEPTED)


PAUSE: Final = "pause"  # kind of the records that hold resumption nonces
_KEPT: Final = 366 * 86400.0
_PAUSE: Final = STANDARD["PAUSE"]


@stateful
async def pause(call: RoutedCall) -> Effects:
    """Answer PAUSE /. A step that runs is finished, and its result is kept."""
    given, agent_id = call.input, call.agent_id or ""
    if is_schedule(given["workflow_id"]):
        return await pause_schedule(call)
    resume_at = read_future(given, "resume_at", most=math.inf)
    unknown = f"This agent has no workflow {given['workflow_id']!r}."
    workflow_id = await start.find_run(call, given["workflow_id"])
    if workflow_id is None:
        raise refusal(_PAUSE, "workflow-not-found", unknown)
    nonce, pause_id = secrets.token_urlsafe(16), f"pause-{workflow_id}"
    commands = (
        ChangeRecord(workflow_id, (WORKFLOW,), states.OPEN, states.PAUSED, owner=agent_id, due=resume_at),
        RemoveRecord(pause_id),
        PutRecord(pause_id, PAUSE, agent_id, "open", f'"{hash_nonce(nonce)}"', lifetime=_KEPT),
    )
    result = {"workflow_id": workflow_id, "status": states.PAUSED, "resumption_nonce": nonce}
    if resume_at is not None:
        result["resume_at"] = write_instant(resume_at)
    heed = partial(call.server.part("workflows").heed, workflow_id)
    missing = _PAUSE.refuse("workflow-not-found", unknown)
    return effects(commands, lambda _: result, {"not-found": missing, "": _refuse_pause}, heed)


def _refuse_pause(found: Mapping[str, Any]) -> Refused:
    state = found["state"]
    if state == states.PAUSED:
        return _PAUSE.refuse("already-paused", "The workflow is paused already; its nonce was returned then.")
    return _PAUSE.refuse("workflow-ended", f"The workflow is {state} and cannot be paused.", workflow_status=state)


_WORKFLOW_ID: Final = re.compile(r"[a-z]+-[0-9a-f]{32}")
_TOO_LATE: Final = "The time of the workflow ran out while it was paused; it has failed."
_EXPIRED: Final = Refused(status.TIMEOUT, "workflow-expired", _TOO_LATE)
_USED: Final = Refused(status.CONFLICT, "resumption-nonce-used", "The nonce has already been used.")


def is_workflow_id(text: str) -> bool:
    return _WORKFLOW_ID.fullmatch(text) is not None


async def resume_own(call: RoutedCall) -> Effects | None:
    """Let a workflow go on; return None for a name that is neither its id nor its Task-ID, and without workflows.

    The nonce may be omitted by the agent that owns it; a wrong or used one is refused.
    """
    given, agent_id = call.input, call.agent_id or ""
    workflows: Workflows | None = call.server.part("workflows")
    if workflows is None:
        return None
    if is_schedule(given["workflow_id"]):
        return await resume_schedule(call)
    workflow_id = await start.find_run(call, given["workflow_id"])
    if workflow_id is None and not is_workflow_id(given["workflow_id"]):
        return None
    found = None if workflow_id is None else await workflows.find(workflow_id, agent_id)
    if found is None or call.server.store is None:
        raise refusal(status.NOT_FOUND, "workflow-not-found", "This agent has no such workflow.")
    workflow_id, state = found.record.record_id, found.record.state
    if state != states.PAUSED:
        message = f"The workflow is {state}, not paused."
        raise refusal(status.CONFLICT, "workflow-not-paused", message, workflow_status=state)
    paused: Record | None = await call.server.store.read(FindRecord((PAUSE,), f"pause-{workflow_id}"))
    commands: list[Command] = []
    if "resumption_nonce" in given:
        if paused is None or not hmac.compare_digest(paused.content(), hash_nonce(given["resumption_nonce"])):
            message = "This is not the nonce that PAUSE returned for the workflow."
            raise refusal(status.CONFLICT, "resumption-nonce-wrong", message)
        commands.append(ChangeRecord(paused.record_id, (PAUSE,), ("open",), "used"))
    if found.spec.deadline <= time.time():
        ended = ChangeRecord(workflow_id, (WORKFLOW,), (states.PAUSED,), states.FAILED, owner=agent_id, lifetime=KEPT)
        return Effects((*commands, ended), lambda _: _EXPIRED)
    rows = _override(found, given.get("checkpoint"))
    if rows:
        commands.append(JournalSteps(workflow_id, found.record.fence, rows, 0.0))
    going = ChangeRecord(workflow_id, (WORKFLOW,), (states.PAUSED,), states.RUNNING, owner=agent_id, delay=0.0)
    result = {"workflow_id": workflow_id, "status": states.RUNNING, "overridden": len(rows)}
    return effects([*commands, going], lambda _: result, _USED)


def _override(workflow: Workflow, checkpoint: Any) -> tuple[StepRow, ...]:
    """Return the rows of steps whose outputs a checkpoint replaces, for the steps after them."""
    if checkpoint is None:
        return ()
    known = {row.number: row for row in workflow.rows if row.state == states.DONE}
    rows = {
        step.name or str(number): known[output_number(step, number)]
        for number, step in enumerate(workflow.spec.steps, 1)
        if output_number(step, number) in known
    }
    if not isinstance(checkpoint, Mapping) or not checkpoint.keys() <= rows.keys():
        done = ", ".join(rows) or "none"
        message = f"The checkpoint of a workflow has outputs by the name of a step that is done: {done}."
        raise refusal(status.UNPROCESSABLE, "invalid-checkpoint", message, field="/checkpoint")
    return tuple(msgspec.structs.replace(rows[name], output=to_json(output)) for name, output in checkpoint.items())


_MOST_LISTED: Final = 100
_MOST_READ: Final = 200  # workflows that are read for one answer; the cursor goes on behind them
_CURSOR: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ([!-~]{1,80})")
QUERY_RUNS: Final = StandardMethod(
    name="QUERY",
    description="Lists the workflows of the caller, oldest first.",
    intent="Find the workflows that the caller has begun.",
    outcome="Workflows with their states are returned, and a cursor if there may be more.",
    takes=members(
        "state?: STATE, method?: METHOD, name?: NAME, task_id?: NAME, since?: TIME, until?: TIME, "
        f"limit?: 1..{_MOST_LISTED}, cursor?: NAME",
        STATE=one_of(*states.ALL),
    ),
    returns=members("workflows: [OBJECT], cursor?: NAME"),
    errors=(INVALID_TIME, MethodError("invalid-cursor", status.BAD_REQUEST, "The cursor is not one of this server.")),
)


def list_endpoints(service: Service) -> list[BuiltIn]:
    """Return the endpoint that lists workflows, for a service whose callers can begin some."""
    begins = {"CHAIN", "BATCH", "RUN"} & set(service.methods)
    own = any(endpoint.key == ("QUERY", start.RUNS_PATH) for endpoint in service.endpoints)
    return [BuiltIn(QUERY_RUNS, start.RUNS_PATH, query_runs)] if begins and not own else []


@stateful
async def query_runs(call: RoutedCall) -> Envelope:
    """Answer QUERY /workflows. A page ends after some workflows that were read, so that every answer is bounded."""
    given = call.input
    since, until = read_time(given, "since") or 0.0, read_time(given, "until")
    after = (since, "")
    if "cursor" in given:
        found = _CURSOR.fullmatch(given["cursor"])
        if found is None:
            raise refusal(QUERY_RUNS, "invalid-cursor", "Repeat the `cursor` of the last answer as it was.")
        after = max(after, (float(found[1]), found[2]))
    kept = (given["state"],) if "state" in given else ()
    wanted = ListRecords(WORKFLOW, call.agent_id or "", kept, after, _MOST_READ)
    records: list[Record] = await call.store.read(wanted)
    listed: list[dict[str, Any]] = []
    more = len(records) == _MOST_READ
    for position, record in enumerate(records):
        if until is not None and record.created >= until:
            more = False
            break
        after = (record.created, record.record_id)
        spec = decode(record.data)
        told = {
            "workflow_id": record.record_id,
            "method": spec.method,
            "name": spec.name,
            "status": record.state,
            "task_id": spec.authority.headers.get(TASK_ID),
            "steps": len(spec.steps),
            "created_at": write_instant(record.created),
            "updated_at": write_instant(record.updated),
        }
        entry = {name: value for name, value in told.items() if value is not None}
        if all(name not in given or entry.get(name) == given[name] for name in ("method", "name", "task_id")):
            listed.append(entry)
        if len(listed) == given.get("limit", _MOST_LISTED):
            more = more or position + 1 < len(records)
            break
    result: dict[str, Any] = {"workflows": listed}
    return Envelope({**result, "cursor": f"{after[0]!r} {after[1]}"} if more else result)


async def list_calls(call: Call, endpoint: Endpoint, arguments: Mapping[str, Any]) -> tuple[ListedCall, ...] | Fault:
    """List what a call of an endpoint would call for the caller of `call`; a Fault says why that is not known."""
    if not endpoint.passes_on:
        return list_composition(call.routes, endpoint.key)

    def reach(method: str, path: str) -> tuple[str, tuple[ListedCall, ...]]:
        found = find_step(call, method, path)
        if isinstance(found, Refused):
            return UNKNOWN, ()
        return found.route.endpoint.semantic.impact, tuple(composed_calls(call.routes, found.route))

    match endpoint.method:
        case "CHAIN" | "BATCH":
            return list_written(arguments[LISTS[endpoint.method]], reach)
        case "ROUTE":
            return bounded(list_candidates(arguments, call.routes.endpoints.values(), reach))
        case "RUN":
            known: Registered | None = call.server.registrar.procedures.get(arguments["procedure_id"])
            if known is not None and known.route is not None:
                done = known.route.endpoint
                return (ListedCall(*done.key, done.semantic.impact, arguments.get("input")),)
            procedure_id = arguments["procedure_id"]
            steps: Sequence[Any] | Fault = Fault(f"no procedure is registered under {procedure_id[:80]!r}")
            if known is not None:
                steps = list(known.procedure.steps)
            elif (own := await find_own_procedure(call, procedure_id)) is not None:
                steps = _plain(own[1].steps)
        case "RETRY":
            steps = await _repeated(call, arguments["original_task_id"])
        case _:
            steps = Fault(f"{endpoint} does not tell what it calls")
    return steps if isinstance(steps, Fault) else bounded(list_steps(steps, reach))


async def _repeated(call: Call, task_id: str) -> list[Any] | Fault:
    server, agent_id = call.server, call.agent_id or ""
    if is_workflow_id(task_id):
        workflow = None if server.part("workflows") is None else await server.part("workflows").find(task_id, agent_id)
        if workflow is not None:
            return _plain(workflow.spec.steps)
    else:
        found = None if server.part("retries") is None else await server.part("retries").find(agent_id, task_id)
        if found is not None:
            kept = found[1]
            return [{"method": kept.method, "path": kept.path, "parameters": decode_body(kept.body)}]
    return Fault(f"this agent has no call with the Task-ID {task_id[:80]!r} that can be repeated")


def _plain(steps: Sequence[StepSpec]) -> list[Any]:
    return [msgspec.to_builtins(step) for step in steps]


def decode_body(body: bytes) -> Any:
    """Return the JSON value of a body; None if it has none."""
    try:
        return msgspec.json.decode(body) if body else None
    except (ValueError, RecursionError):
        return None
