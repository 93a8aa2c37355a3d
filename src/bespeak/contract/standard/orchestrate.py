"""ORCHESTRATE: methods that coordinate calls, workflows and agents (Tier 2 8)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from bespeak.contract.standard import definition as d
from bespeak.contract.standard.definition import MethodError, Schema, StandardMethod
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import LONGEST_TASK_ID

RUNS: Final = "activation:run"
_STATES: Final = d.one_of(
    *("running", "completed", "failed", "paused", "cancelled", "cancelling", "waiting", "sleeping", "stopped")
)
_POLICY: Final = d.one_of("abort", "skip", "retry", "escalate")
MOST_LISTED: Final = 100  # steps of one list
MOST_BATCHED: Final = 1000  # calls of BATCH


def _closed(written: str, **words: Schema) -> Schema:
    return d.object_of(d.members(written, **words), closed=True)


_CALL: Final = _closed("method: METHOD, path?: PATH, parameters?: OBJECT")
_LISTED: Final = d.list_of(d.OBJECT, least=1, most=MOST_LISTED)  # steps again; `find_wrong_step` reads them
_EACH: Final = _closed(
    "items: ANYTHING, max_items?: 1..10000, as?: VARIABLE, at_once?: 1..16, call?: OBJECT, steps?: LISTED",
    VARIABLE={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
    LISTED=_LISTED,
)
# A step is one of: a call, `together`, `for_each`, `delay`, `approve`. CHAIN / and BATCH / as calls are lists of steps.
STEP: Final = _closed(
    "name?: NAME, method?: METHOD, path?: PATH, parameters?: OBJECT, together?: LISTED, for_each?: EACH, "
    "delay?: DELAY, approve?: QUESTION, when?: EXPRESSION, timeout?: SECONDS, retry?: RETRY, on_failure?: POLICY, "
    "undo?: CALL, compensate?: CALL, output?: ANYTHING",
    LISTED=_LISTED,
    EACH=_EACH,
    DELAY={**_closed("until: ANYTHING"), **d.SECONDS, "type": ["number", "object"]},
    QUESTION=_closed("question: LINE, who?: NAME, within?: SECONDS"),
    RETRY=_closed("attempts: 1..20, delay?: PAUSE", PAUSE={"type": "number", "minimum": 0, "maximum": 3600}),
    POLICY=_POLICY,
    CALL=_CALL,
)
LISTS: Final[Mapping[str, str]] = {"CHAIN": "steps", "BATCH": "calls"}  # parameters with the steps
NESTED: Final[Mapping[str, Schema]] = {  # parameters of a list inside another
    "CHAIN": _closed("steps: ANYTHING, on_failure?: POLICY, context_propagation?: FLAG", POLICY=_POLICY),
    "BATCH": _closed("calls: ANYTHING, execution_mode?: parallel | sequential, partial_success?: FLAG"),
}
_STEP_DONE: Final = "step: COUNT, name?: NAME, method?: METHOD, path?: PATH, status: NAME, code?: COUNT"
_DONE: Final = d.object_of(d.members(f"{_STEP_DONE}, output?: ANYTHING, steps?: [OBJECT]"))
_WRITTEN: Final[Schema] = {"type": ["string", "object"], "minLength": 1, "maxLength": 2000}  # a target or a candidate
_TOO_LONG: Final = MethodError("timeout", status.TIMEOUT, "The time ran out; the receipt says how far it came.")
TASK: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_TASK_ID,
    "pattern": r"^[^\x00-\x08\x0a-\x1f\x7f]*$",
}  # schema of a Task-ID: whatever fits in the header
_NO_WORKFLOW: Final = MethodError("workflow-not-found", status.NOT_FOUND, "The caller has no such workflow.")
_UNKNOWN: Final = MethodError("endpoint-not-found", status.UNPROCESSABLE, "A call names no endpoint of this server.")
_REFUSED: Final = MethodError("callback-refused", status.UNPROCESSABLE, "The callback must not be called.")
_CALLBACK: Final = (_REFUSED, d.NOT_LISTED)


def nested_steps(step: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return where the steps inside a step are, and the steps as they are written; None for any other step."""
    if "together" in step:
        return "together", step["together"]
    if "for_each" in step:
        each = step["for_each"]
        return ("for_each/call", [each["call"]]) if "call" in each else ("for_each/steps", each.get("steps"))
    member = LISTS.get(step.get("method", "")) if step.get("path", "/") == "/" else None
    return None if member is None else (f"parameters/{member}", step.get("parameters", {}).get(member))


_members = partial(d.members, STATES=_STATES, POLICY=_POLICY, DONE=_DONE, TASK=TASK, WRITTEN=_WRITTEN)
_method = partial(StandardMethod, category="orchestrate", impact="irreversible", idempotent=False)
ORCHESTRATE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="CHAIN",
        description="Runs calls one after the other; each may use what the earlier ones returned.",
        intent="Chain calls into one workflow.",
        outcome="The workflow has run as far as its receipt says, and it survives a restart of the server.",
        takes=_members(
            "steps: STEPS, on_failure?: POLICY, context_propagation?: FLAG, timeout?: SECONDS, output?: ANYTHING, "
            "callback?: LINE",
            STEPS=d.list_of(STEP, least=1, most=MOST_LISTED),
        ),
        returns=_members(
            "chain_id: NAME, status: STATES, steps: [DONE], output?: ANYTHING, error?: OBJECT, look?: OBJECT"
        ),
        errors=(
            MethodError("invalid-chain", status.UNPROCESSABLE, "The steps cannot be run as they are written."),
            _UNKNOWN,
            _TOO_LONG,
            *_CALLBACK,
        ),
        passes_on=True,
    ),
    _method(
        name="BATCH",
        description="Runs independent calls together.",
        intent="Batch independent calls.",
        outcome="Every call has an outcome of its own in the receipt.",
        takes=_members(
            "calls: CALLS, execution_mode?: parallel | sequential, partial_success?: FLAG, timeout?: SECONDS, "
            "callback?: LINE",
            CALLS=d.list_of(STEP, least=1, most=MOST_BATCHED),
        ),
        returns=_members(
            "batch_id: NAME, status: STATES, succeeded: COUNT, failed: COUNT, results: [DONE], look?: OBJECT",
            STATES=d.one_of("partial", *_STATES["enum"]),
        ),
        errors=(
            MethodError("batch-failed", status.UNPROCESSABLE, "A call failed, and partial_success is not set."),
            _UNKNOWN,
            _TOO_LONG,
            *_CALLBACK,
        ),
        passes_on=True,
    ),
    _method(
        name="MONITOR",
        description="Observes an agent, an endpoint or a condition, and notifies when it changes.",
        intent="Monitor a target for changes.",
        outcome="A subscription exists, and its callback has been verified.",
        impact="reversible",
        takes=_members(
            "target: WRITTEN, events: EVENTS, callback: LINE, threshold?: THRESHOLD, interval?: SECONDS",
            EVENTS=d.list_of(d.NAME, least=1, most=64),
            THRESHOLD={"type": ["number", "string", "object"], "maxLength": 2000},
        ),
        returns=_members(
            "subscription_id: NAME, target: ANYTHING, events: [NAME], interval?: SECONDS, expires_at?: TIME"
        ),
        errors=(
            MethodError("target-not-found", status.NOT_FOUND, "There is nothing to observe under this name."),
            MethodError("callback-refused", status.BAD_REQUEST, "The callback could not be verified."),
            d.NOT_LISTED,
            MethodError("invalid-target", status.BAD_REQUEST, "The target is not written as one."),
            MethodError("unknown-event", status.BAD_REQUEST, "The target has no such event."),
            MethodError("invalid-threshold", status.BAD_REQUEST, "The threshold does not fit the target."),
            MethodError("invalid-interval", status.BAD_REQUEST, "The interval is too short."),
            MethodError("too-many-monitors", status.RATE_LIMITED, "The agent has as many monitors as it may have."),
        ),
    ),
    _method(
        name="ROUTE",
        description="Chooses a handler for a work item by criteria, and hands the item over.",
        intent="Route a work item to the handler that fits.",
        outcome="The chosen handler and the reason are returned.",
        takes=_members(
            "payload: ANYTHING, criteria: OBJECT, candidates?: CANDIDATES, fallback?: WRITTEN",
            CANDIDATES=d.list_of(_WRITTEN, most=100),
        ),
        returns=_members(
            "handler: ANYTHING, reason: TEXT, score?: NUMBER, delivered: FLAG, message_id?: NAME, code?: COUNT, "
            "output?: ANYTHING, error?: OBJECT"
        ),
        errors=(
            MethodError("no-handler", status.NOT_FOUND, "No candidate fits, and there is no fallback."),
            MethodError("invalid-criteria", status.UNPROCESSABLE, "The criteria cannot be evaluated."),
            MethodError("invalid-candidate", status.UNPROCESSABLE, "A candidate cannot be a handler here."),
            d.NOT_LISTED,
            MethodError("handler-unavailable", status.UNAVAILABLE, "The chosen handler cannot be reached."),
        ),
        passes_on=True,
    ),
    _method(
        name="RETRY",
        description="Repeats a failed call by its Task-ID, without doing twice what was done.",
        intent="Retry a failed call.",
        outcome="The call has been repeated, or its earlier answer is returned.",
        takes=_members(
            "original_task_id: TASK, delay?: DELAY, max_attempts?: 1..100",
            DELAY={"type": "number", "minimum": 0, "maximum": 86400},
        ),
        returns=_members(
            "retry_id: NAME, original_task_id: TASK, attempt: COUNT, "
            "status: completed | failed | scheduled | suppressed, code?: COUNT, output?: ANYTHING"
        ),
        errors=(
            MethodError("task-not-found", status.NOT_FOUND, "The caller has no failed task with this id."),
            MethodError("attempts-exhausted", status.CONFLICT, "The task has been tried as often as allowed."),
            d.AMBIGUOUS,
            MethodError("task-running", status.CONFLICT, "The task is still running."),
        ),
        passes_on=True,
    ),
    _method(
        name="PAUSE",
        description="Halts a workflow after its running step, until it is resumed.",
        intent="Pause a workflow.",
        outcome="No further step begins before the workflow is resumed.",
        impact="reversible",
        takes=_members("workflow_id: NAME, reason?: LINE, resume_at?: TIME"),
        returns=_members("workflow_id: NAME, status: STATES, resumption_nonce: NAME, resume_at?: TIME"),
        errors=(
            d.INVALID_TIME,
            _NO_WORKFLOW,
            d.AMBIGUOUS,
            MethodError("already-paused", status.CONFLICT, "The workflow is paused already."),
            MethodError("workflow-ended", status.CONFLICT, "The workflow has ended."),
        ),
        recorded=("workflow_id", "reason"),
    ),
    _method(
        name="RESUME",
        description="Resumes a suspended session or a paused workflow with its resumption nonce.",
        intent="Resume what was suspended or paused.",
        outcome="The session is active or the workflow runs again; the nonce is used up.",
        impact="reversible",
        takes=_members(
            "workflow_id: TEXT, resumption_nonce?: NONCE, checkpoint?: ANYTHING", NONCE={**d.TEXT, "maxLength": 256}
        ),
        returns=_members(
            "workflow_id: NAME, status: active | running, suspension_id?: NAME, checkpoint?: ANYTHING, "
            "overridden?: COUNT"
        ),
        errors=(
            _NO_WORKFLOW,
            d.AMBIGUOUS,
            MethodError("session-not-found", status.NOT_FOUND, "The caller has no such session."),
            MethodError("workflow-expired", status.TIMEOUT, "The time of the workflow ran out while it was paused."),
            MethodError("session-expired", status.TIMEOUT, "The session was not resumed in time."),
            MethodError("workflow-not-paused", status.CONFLICT, "The workflow is not paused."),
            MethodError("session-not-suspended", status.CONFLICT, "The session is not suspended."),
            MethodError("resumption-nonce-wrong", status.CONFLICT, "PAUSE or SUSPEND did not return this nonce."),
            MethodError("resumption-nonce-used", status.CONFLICT, "The nonce has already been used."),
            MethodError("invalid-checkpoint", status.UNPROCESSABLE, "The checkpoint names a step that is not done."),
        ),
    ),
    _method(
        name="RUN",
        description="Runs a procedure that the operator has registered.",
        intent="Run a registered procedure.",
        outcome="The procedure has run, and its result is returned.",
        takes=_members("procedure_id: NAME, input?: OBJECT, timeout?: SECONDS, callback?: LINE"),
        returns=_members(
            "run_id: NAME, procedure_id: NAME, status: STATES, output?: ANYTHING, error?: OBJECT, steps?: [DONE], "
            "look?: OBJECT"
        ),
        errors=(
            MethodError("procedure-refused", status.FORBIDDEN, "The procedure waits for a review."),
            MethodError("procedure-not-found", status.NOT_FOUND, "No procedure is registered under this id."),
            MethodError("invalid-input", status.UNPROCESSABLE, "The procedure does not take this input."),
            _TOO_LONG,
            *_CALLBACK,
        ),
        scopes=(RUNS,),
        recorded=("procedure_id", "input"),
        passes_on=True,
    ),
    StandardMethod(
        name="CHECK",
        category="orchestrate",
        description="Reports the state of this server, an agent, an upstream, a workflow or a thing of the service.",
        intent="Check the status of a target.",
        outcome="A status with an indicator for each component is returned.",
        takes=_members("target: NAME, depth?: shallow | deep"),
        returns=_members(
            "target: NAME, status: NAME, components: [COMPONENT], checked_at: TIME, expires_at?: TIME, "
            "details?: OBJECT, task_id?: TASK, output?: ANYTHING, error?: OBJECT, steps?: [DONE]",
            COMPONENT=d.object_of(d.members("name: NAME, status: NAME, message?: TEXT")),
        ),
        errors=(
            MethodError("target-not-found", status.NOT_FOUND, "Nothing here has this name."),
            d.AMBIGUOUS,
            MethodError("timeout", status.TIMEOUT, "The target did not answer in time."),
            MethodError("delegation-failed", status.DELEGATION_FAILURE, "A delegate failed or missed the deadline."),
        ),
    ),
)
