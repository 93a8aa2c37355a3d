"""ORCHESTRATE: methods that coordinate calls, workflows and agents (Tier 2 8)."""

from __future__ import annotations

from typing import Final

from bespeak.contract.standard.method import (
    ANYTHING,
    COUNT,
    EXPRESSION,
    FLAG,
    LINE,
    METHOD,
    NAME,
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

RUNS: Final = "activation:run"

_STATES: Final = one_of("running", "completed", "failed", "paused", "cancelled", "waiting")
_STEP: Final[Schema] = object_of(
    {
        "name": NAME,
        "method": METHOD,
        "path": PATH,
        "parameters": OBJECT,
        "on_failure": one_of("abort", "skip", "retry", "escalate"),
        "when": EXPRESSION,
        "compensate": object_of({"method": METHOD, "path": PATH, "parameters": OBJECT}, "method", closed=True),
    },
    "method",
    closed=True,
)
_CALL: Final[Schema] = object_of({"method": METHOD, "path": PATH, "parameters": OBJECT}, "method", closed=True)
_DONE: Final[Schema] = object_of(
    {"step": COUNT, "name": NAME, "method": METHOD, "path": PATH, "status": NAME, "code": COUNT, "output": ANYTHING},
    "step",
    "method",
    "path",
    "status",
)
_TOO_LONG: Final = MethodError("timeout", status.TIMEOUT, "The time ran out; the receipt says how far it came.")
_NO_WORKFLOW: Final = MethodError("workflow-not-found", status.NOT_FOUND, "The caller has no such workflow.")
_NO_ENDPOINT: Final = MethodError(
    "endpoint-not-found", status.UNPROCESSABLE, "A call names no endpoint of this server."
)

ORCHESTRATE: Final[tuple[StandardMethod, ...]] = (
    StandardMethod(
        name="CHAIN",
        category="orchestrate",
        description="Runs calls one after the other; each may use what the earlier ones returned.",
        intent="Chain calls into one workflow.",
        outcome="The workflow has run as far as its receipt says, and it survives a restart of the server.",
        impact="irreversible",
        idempotent=False,
        parameters={
            "steps": list_of(_STEP, least=1, most=100),
            "on_failure": one_of("abort", "skip", "retry", "escalate"),
            "context_propagation": FLAG,
            "timeout": SECONDS,
        },
        required=("steps",),
        result={"chain_id": NAME, "status": _STATES, "steps": list_of(_DONE), "output": ANYTHING},
        returned=("chain_id", "status", "steps"),
        errors=(
            MethodError("invalid-chain", status.UNPROCESSABLE, "The steps cannot be run as they are written."),
            _NO_ENDPOINT,
            _TOO_LONG,
        ),
        passes_on=True,
    ),
    StandardMethod(
        name="BATCH",
        category="orchestrate",
        description="Runs independent calls together.",
        intent="Batch independent calls.",
        outcome="Every call has an outcome of its own in the receipt.",
        impact="irreversible",
        idempotent=False,
        parameters={
            "calls": list_of(_CALL, least=1, most=1000),
            "execution_mode": one_of("parallel", "sequential"),
            "partial_success": FLAG,
            "timeout": SECONDS,
        },
        required=("calls",),
        result={
            "batch_id": NAME,
            "status": one_of("completed", "partial", "failed", "running", "waiting", "paused", "cancelled"),
            "succeeded": COUNT,
            "failed": COUNT,
            "results": list_of(_DONE),
        },
        returned=("batch_id", "status", "succeeded", "failed", "results"),
        errors=(
            MethodError("batch-failed", status.UNPROCESSABLE, "A call failed, and partial_success is not set."),
            _NO_ENDPOINT,
            _TOO_LONG,
        ),
        passes_on=True,
    ),
    StandardMethod(
        name="MONITOR",
        category="orchestrate",
        description="Observes an agent, an endpoint or a condition, and notifies when it changes.",
        intent="Monitor a target for changes.",
        outcome="A subscription exists, and its callback has been verified.",
        impact="reversible",
        idempotent=False,
        parameters={
            "target": {"type": ["string", "object"], "minLength": 1, "maxLength": 2000},
            "events": list_of(NAME, least=1, most=64),
            "callback": LINE,
            "threshold": {"type": ["number", "string", "object"], "maxLength": 2000},
            "interval": SECONDS,
        },
        required=("target", "events", "callback"),
        result={"subscription_id": NAME, "target": ANYTHING, "events": list_of(NAME), "interval": SECONDS},
        returned=("subscription_id", "target", "events"),
        errors=(
            MethodError("target-not-found", status.NOT_FOUND, "There is nothing to observe under this name."),
            MethodError("callback-refused", status.BAD_REQUEST, "The callback could not be verified."),
            MethodError("invalid-threshold", status.BAD_REQUEST, "The threshold does not fit the target."),
        ),
    ),
    StandardMethod(
        name="ROUTE",
        category="orchestrate",
        description="Chooses a handler for a work item by criteria, and hands the item over.",
        intent="Route a work item to the handler that fits.",
        outcome="The chosen handler and the reason are returned.",
        impact="irreversible",
        idempotent=False,
        parameters={
            "payload": ANYTHING,
            "criteria": OBJECT,
            "candidates": list_of({"type": ["string", "object"], "minLength": 1, "maxLength": 2000}, most=100),
            "fallback": {"type": ["string", "object"], "minLength": 1, "maxLength": 2000},
        },
        required=("payload", "criteria"),
        result={
            "handler": ANYTHING,
            "reason": TEXT,
            "score": {"type": "number"},
            "delivered": FLAG,
            "output": ANYTHING,
        },
        returned=("handler", "reason", "delivered"),
        errors=(
            MethodError("no-handler", status.NOT_FOUND, "No candidate fits, and there is no fallback."),
            MethodError("invalid-criteria", status.UNPROCESSABLE, "The criteria cannot be evaluated."),
            MethodError("handler-unavailable", status.UNAVAILABLE, "The chosen handler cannot be reached."),
        ),
        passes_on=True,
    ),
    StandardMethod(
        name="RETRY",
        category="orchestrate",
        description="Repeats a failed call by its Task-ID, without doing twice what was done.",
        intent="Retry a failed call.",
        outcome="The call has been repeated, or its earlier answer is returned.",
        impact="irreversible",
        idempotent=False,
        parameters={
            "original_task_id": NAME,
            "delay": {"type": "number", "minimum": 0, "maximum": 86400},
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": 100},
        },
        required=("original_task_id",),
        result={
            "retry_id": NAME,
            "original_task_id": NAME,
            "attempt": COUNT,
            "status": one_of("completed", "failed", "scheduled", "suppressed"),
            "code": COUNT,
            "output": ANYTHING,
        },
        returned=("retry_id", "original_task_id", "attempt", "status"),
        errors=(
            MethodError("task-not-found", status.NOT_FOUND, "The caller has no failed task with this id."),
            MethodError("attempts-exhausted", status.CONFLICT, "The task has been tried as often as allowed."),
            MethodError("task-running", status.CONFLICT, "The task is still running."),
        ),
        passes_on=True,
    ),
    StandardMethod(
        name="PAUSE",
        category="orchestrate",
        description="Halts a workflow after its running step, until it is resumed.",
        intent="Pause a workflow.",
        outcome="No further step begins before the workflow is resumed.",
        impact="reversible",
        idempotent=False,
        parameters={"workflow_id": NAME, "reason": LINE, "resume_at": TIME},
        required=("workflow_id",),
        result={"workflow_id": NAME, "status": _STATES, "resumption_nonce": NAME, "resume_at": TIME},
        returned=("workflow_id", "status", "resumption_nonce"),
        errors=(
            _NO_WORKFLOW,
            MethodError("already-paused", status.CONFLICT, "The workflow is paused already."),
            MethodError("workflow-ended", status.CONFLICT, "The workflow has ended."),
        ),
    ),
    StandardMethod(
        name="RUN",
        category="orchestrate",
        description="Runs a procedure that the operator has registered.",
        intent="Run a registered procedure.",
        outcome="The procedure has run, and its result is returned.",
        impact="irreversible",
        idempotent=False,
        parameters={"procedure_id": NAME, "input": OBJECT, "timeout": SECONDS},
        required=("procedure_id",),
        result={"run_id": NAME, "procedure_id": NAME, "status": _STATES, "output": ANYTHING},
        returned=("run_id", "procedure_id", "status"),
        errors=(
            MethodError("procedure-refused", status.FORBIDDEN, "The procedure waits for a review."),
            MethodError("procedure-not-found", status.NOT_FOUND, "No procedure is registered under this id."),
            MethodError("invalid-input", status.UNPROCESSABLE, "The procedure does not take this input."),
            _TOO_LONG,
        ),
        scopes=(RUNS,),
        recorded=("procedure_id", "input"),
        passes_on=True,
    ),
    StandardMethod(
        name="CHECK",
        category="orchestrate",
        description="Reports the health of this server, an agent, an upstream or a workflow.",
        intent="Check the status of a target.",
        outcome="A status with an indicator for each component is returned.",
        parameters={"target": NAME, "depth": one_of("shallow", "deep")},
        required=("target",),
        result={
            "target": NAME,
            "status": NAME,
            "components": list_of(object_of({"name": NAME, "status": NAME, "message": TEXT}, "name", "status")),
            "checked_at": TIME,
        },
        returned=("target", "status", "components", "checked_at"),
        errors=(
            MethodError("target-not-found", status.NOT_FOUND, "Nothing here has this name."),
            MethodError("timeout", status.TIMEOUT, "The target did not answer in time."),
        ),
    ),
)
