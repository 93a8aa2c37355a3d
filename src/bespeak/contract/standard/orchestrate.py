"""ORCHESTRATE: methods that coordinate calls, workflows and agents (Tier 2 8)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from bespeak.contract.standard.definition import (
    AMBIGUOUS,
    ANYTHING,
    COUNT,
    EXPRESSION,
    FLAG,
    INVALID_TIME,
    LINE,
    METHOD,
    NAME,
    NOT_LISTED,
    OBJECT,
    PATH,
    SECONDS,
    TEXT,
    TIME,
    MethodError,
    Schema,
    StandardMethod,
    list_of,
    object_of,
    one_of,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import LONGEST_TASK_ID

RUNS: Final = "activation:run"
_STATES: Final = one_of(
    *("running", "completed", "failed", "paused", "cancelled", "cancelling", "waiting", "sleeping", "stopped")
)
_PAUSE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 3600}
_ATTEMPTS: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": 20}
_POLICY: Final = one_of("abort", "skip", "retry", "escalate")
_CALL: Final[Schema] = object_of({"method": METHOD, "path?": PATH, "parameters?": OBJECT}, closed=True)
MOST_LISTED: Final = 100  # steps of one list
MOST_BATCHED: Final = 1000  # calls of BATCH
_LISTED: Final = list_of(OBJECT, least=1, most=MOST_LISTED)  # steps again; `find_wrong_step` reads them
# A step is one of: a call, `together`, `for_each`, `delay`, `approve`. CHAIN / and BATCH / as calls are lists of steps.
STEP: Final[Schema] = object_of(
    {
        "name?": NAME,
        "method?": METHOD,
        "path?": PATH,
        "parameters?": OBJECT,
        "together?": _LISTED,
        "for_each?": object_of(
            {
                "items": ANYTHING,
                "max_items?": {"type": "integer", "minimum": 1, "maximum": 10_000},
                "as?": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
                "at_once?": {"type": "integer", "minimum": 1, "maximum": 16},
                "call?": OBJECT,
                "steps?": _LISTED,
            },
            closed=True,
        ),
        "delay?": {**object_of({"until": ANYTHING}, closed=True), **SECONDS, "type": ["number", "object"]},
        "approve?": object_of({"question": LINE, "who?": NAME, "within?": SECONDS}, closed=True),
        "when?": EXPRESSION,
        "timeout?": SECONDS,
        "retry?": object_of({"attempts": _ATTEMPTS, "delay?": _PAUSE}, closed=True),
        "on_failure?": _POLICY,
        "undo?": _CALL,
        "compensate?": _CALL,
        "output?": ANYTHING,
    },
    closed=True,
)
LISTS: Final[Mapping[str, str]] = {"CHAIN": "steps", "BATCH": "calls"}  # parameters with the steps
NESTED: Final[Mapping[str, Schema]] = {  # parameters of a list inside another
    "CHAIN": object_of({"steps": ANYTHING, "on_failure?": _POLICY, "context_propagation?": FLAG}, closed=True),
    "BATCH": object_of(
        {"calls": ANYTHING, "execution_mode?": one_of("parallel", "sequential"), "partial_success?": FLAG}, closed=True
    ),
}
_DONE: Final[Schema] = object_of(
    {
        "step": COUNT,
        "name?": NAME,
        "method?": METHOD,
        "path?": PATH,
        "status": NAME,
        "code?": COUNT,
        "output?": ANYTHING,
        "steps?": list_of(OBJECT),
    }
)
_TOO_LONG: Final = MethodError("timeout", status.TIMEOUT, "The time ran out; the receipt says how far it came.")
TASK: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": LONGEST_TASK_ID,
    "pattern": r"^[^\x00-\x08\x0a-\x1f\x7f]*$",
}  # schema of a Task-ID: whatever fits in the header
_NO_WORKFLOW: Final = MethodError("workflow-not-found", status.NOT_FOUND, "The caller has no such workflow.")
_NO_ENDPOINT: Final = MethodError(
    "endpoint-not-found", status.UNPROCESSABLE, "A call names no endpoint of this server."
)
_CALLBACK: Final = (
    MethodError("callback-refused", status.UNPROCESSABLE, "The callback must not be called."),
    NOT_LISTED,
)


def nested_steps(step: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Return where the steps inside a step are, and the steps as they are written; None for any other step."""
    if "together" in step:
        return "together", step["together"]
    if "for_each" in step:
        each = step["for_each"]
        return ("for_each/call", [each["call"]]) if "call" in each else ("for_each/steps", each.get("steps"))
    member = LISTS.get(step.get("method", "")) if step.get("path", "/") == "/" else None
    return None if member is None else (f"parameters/{member}", step.get("parameters", {}).get(member))


_method = partial(StandardMethod, category="orchestrate", impact="irreversible", idempotent=False)
ORCHESTRATE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="CHAIN",
        description="Runs calls one after the other; each may use what the earlier ones returned.",
        intent="Chain calls into one workflow.",
        outcome="The workflow has run as far as its receipt says, and it survives a restart of the server.",
        takes={
            "steps": list_of(STEP, least=1, most=MOST_LISTED),
            "on_failure?": _POLICY,
            "context_propagation?": FLAG,
            "timeout?": SECONDS,
            "output?": ANYTHING,
            "callback?": LINE,
        },
        returns={
            "chain_id": NAME,
            "status": _STATES,
            "steps": list_of(_DONE),
            "output?": ANYTHING,
            "error?": OBJECT,
        },
        errors=(
            MethodError("invalid-chain", status.UNPROCESSABLE, "The steps cannot be run as they are written."),
            _NO_ENDPOINT,
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
        takes={
            "calls": list_of(STEP, least=1, most=MOST_BATCHED),
            "execution_mode?": one_of("parallel", "sequential"),
            "partial_success?": FLAG,
            "timeout?": SECONDS,
            "callback?": LINE,
        },
        returns={
            "batch_id": NAME,
            "status": {**_STATES, "enum": ["partial", *_STATES["enum"]]},
            "succeeded": COUNT,
            "failed": COUNT,
            "results": list_of(_DONE),
        },
        errors=(
            MethodError("batch-failed", status.UNPROCESSABLE, "A call failed, and partial_success is not set."),
            _NO_ENDPOINT,
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
        takes={
            "target": {"type": ["string", "object"], "minLength": 1, "maxLength": 2000},
            "events": list_of(NAME, least=1, most=64),
            "callback": LINE,
            "threshold?": {"type": ["number", "string", "object"], "maxLength": 2000},
            "interval?": SECONDS,
        },
        returns={
            "subscription_id": NAME,
            "target": ANYTHING,
            "events": list_of(NAME),
            "interval?": SECONDS,
            "expires_at?": TIME,
        },
        errors=(
            MethodError("target-not-found", status.NOT_FOUND, "There is nothing to observe under this name."),
            MethodError("callback-refused", status.BAD_REQUEST, "The callback could not be verified."),
            NOT_LISTED,
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
        takes={
            "payload": ANYTHING,
            "criteria": OBJECT,
            "candidates?": list_of({"type": ["string", "object"], "minLength": 1, "maxLength": 2000}, most=100),
            "fallback?": {"type": ["string", "object"], "minLength": 1, "maxLength": 2000},
        },
        returns={
            "handler": ANYTHING,
            "reason": TEXT,
            "score?": {"type": "number"},
            "delivered": FLAG,
            "message_id?": NAME,
            "code?": COUNT,
            "output?": ANYTHING,
            "error?": OBJECT,
        },
        errors=(
            MethodError("no-handler", status.NOT_FOUND, "No candidate fits, and there is no fallback."),
            MethodError("invalid-criteria", status.UNPROCESSABLE, "The criteria cannot be evaluated."),
            MethodError("invalid-candidate", status.UNPROCESSABLE, "A candidate cannot be a handler here."),
            NOT_LISTED,
            MethodError("handler-unavailable", status.UNAVAILABLE, "The chosen handler cannot be reached."),
        ),
        passes_on=True,
    ),
    _method(
        name="RETRY",
        description="Repeats a failed call by its Task-ID, without doing twice what was done.",
        intent="Retry a failed call.",
        outcome="The call has been repeated, or its earlier answer is returned.",
        takes={
            "original_task_id": TASK,
            "delay?": {"type": "number", "minimum": 0, "maximum": 86400},
            "max_attempts?": {"type": "integer", "minimum": 1, "maximum": 100},
        },
        returns={
            "retry_id": NAME,
            "original_task_id": TASK,
            "attempt": COUNT,
            "status": one_of("completed", "failed", "scheduled", "suppressed"),
            "code?": COUNT,
            "output?": ANYTHING,
        },
        errors=(
            MethodError("task-not-found", status.NOT_FOUND, "The caller has no failed task with this id."),
            MethodError("attempts-exhausted", status.CONFLICT, "The task has been tried as often as allowed."),
            AMBIGUOUS,
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
        takes={"workflow_id": NAME, "reason?": LINE, "resume_at?": TIME},
        returns={"workflow_id": NAME, "status": _STATES, "resumption_nonce": NAME, "resume_at?": TIME},
        errors=(
            INVALID_TIME,
            _NO_WORKFLOW,
            AMBIGUOUS,
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
        takes={
            "workflow_id": {"type": "string", "minLength": 1},
            "resumption_nonce?": {"type": "string", "minLength": 1, "maxLength": 256},
            "checkpoint?": ANYTHING,
        },
        returns={
            "workflow_id": NAME,
            "status": one_of("active", "running"),
            "suspension_id?": NAME,
            "checkpoint?": ANYTHING,
            "overridden?": {"type": "integer", "minimum": 0},
        },
        errors=(
            _NO_WORKFLOW,
            AMBIGUOUS,
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
        takes={"procedure_id": NAME, "input?": OBJECT, "timeout?": SECONDS, "callback?": LINE},
        returns={"run_id": NAME, "procedure_id": NAME, "status": _STATES, "output?": ANYTHING, "error?": OBJECT},
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
        takes={"target": NAME, "depth?": one_of("shallow", "deep")},
        returns={
            "target": NAME,
            "status": NAME,
            "components": list_of(object_of({"name": NAME, "status": NAME, "message?": TEXT})),
            "checked_at": TIME,
            "expires_at?": TIME,
            "details?": OBJECT,
            "task_id?": TASK,
            "output?": ANYTHING,
            "error?": OBJECT,
            "steps?": list_of(_DONE),
        },
        errors=(
            MethodError("target-not-found", status.NOT_FOUND, "Nothing here has this name."),
            AMBIGUOUS,
            MethodError("timeout", status.TIMEOUT, "The target did not answer in time."),
            MethodError("delegation-failed", status.DELEGATION_FAILURE, "A delegate failed or missed the deadline."),
        ),
    ),
)
