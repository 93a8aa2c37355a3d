"""RETRY: repeats a failed call by its Task-ID, or a failed workflow, without doing twice what was done (Tier 2 8.5)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.orchestrate.resumption import is_workflow_id
from bespeak.runtime.retries import MOST_ATTEMPTS, KeptCall, Retries, restored
from bespeak.runtime.workflows.engine import Workflow
from bespeak.runtime.workflows.repetition import repeat_commands
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.kept_calls import FAILED, SUCCEEDED
from bespeak.state.store.commands.records import Record
from bespeak.state.store.commands.steps import COMPLETED
from bespeak.state.store.commands.steps import FAILED as WORKFLOW_FAILED

_RETRY: Final = STANDARD["RETRY"]


async def retry(call: RoutedCall) -> Effects | Envelope | Refused:
    """Answer RETRY /. The call is judged by every gate again, with the authority that the caller has now."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given, agent_id = call.input, call.agent_id or ""
    task_id: str = given["original_task_id"]
    retries: Retries | None = call.server.retries
    found = None if retries is None else await retries.find(agent_id, task_id)
    if found is None and is_workflow_id(task_id):  # a Task-ID may look like the id of a workflow
        return await _retry_workflow(call, task_id)
    if retries is None or found is None:
        return _not_found(task_id)
    record, kept = found
    if record.state == SUCCEEDED:
        return _tell(kept, "suppressed")
    if record.state != FAILED:
        return _RETRY.refuse("task-running", f"The task is {record.state}; its outcome is not known yet.")
    most = min(given.get("max_attempts", MOST_ATTEMPTS), MOST_ATTEMPTS)
    if kept.attempts >= most:
        message = f"The task has been tried {kept.attempts} times, and at most {most} attempts are allowed."
        return _RETRY.refuse("attempts-exhausted", message, attempts=kept.attempts)
    if given.get("delay"):
        # Later, too, it is repeated with no more authority than the caller has now.
        kept = msgspec.structs.replace(kept, authority=Authority.of(call.principal, call.request))
        return _schedule(retries, record, kept, given["delay"], given.get("max_attempts"))
    kept = msgspec.structs.replace(kept, delay=None, max_attempts=None)  # the caller waits for this one
    done = await retries.repeat(record, kept, restored(kept, call, call.request.connection))
    if done is None:
        return _RETRY.refuse("task-running", "The task is being repeated already.")
    if not status.is_success(done.status):
        return _tell(done, "failed")
    return _tell(done, "suppressed" if done.replayed else "completed")


def _schedule(retries: Retries, record: Record, kept: KeptCall, delay: float, most: int | None) -> Effects:
    planned = msgspec.structs.replace(kept, delay=delay, max_attempts=most)

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _RETRY.refuse("task-running", "The task is being repeated already.")
        return _tell(planned, "scheduled", attempt=kept.attempts + 1)

    return Effects((retries.schedule(record, planned, delay),), tell)


async def _retry_workflow(call: RoutedCall, workflow_id: str) -> Effects | Envelope | Refused:
    workflow: Workflow | None = await call.server.workflows.find(workflow_id, call.agent_id)
    if workflow is None:
        return _not_found(workflow_id)
    attempt = max((row.attempt for row in workflow.rows), default=1)
    result = {"retry_id": _new_id(), "original_task_id": workflow_id, "attempt": attempt + 1}
    if workflow.record.state == COMPLETED:
        return Envelope({**result, "attempt": attempt, "status": "suppressed"})
    if workflow.record.state != WORKFLOW_FAILED:
        return _RETRY.refuse("task-running", f"The workflow is {workflow.record.state}.")
    if attempt >= min(call.input.get("max_attempts", MOST_ATTEMPTS), MOST_ATTEMPTS):
        message = f"A step of the workflow has been tried {attempt} times, as often as allowed."
        return _RETRY.refuse("attempts-exhausted", message, attempts=attempt)
    authority = workflow.spec.authority.renew(call.principal, call.request)
    commands = repeat_commands(workflow.record, workflow.rows, call.input.get("delay", 0.0), authority)
    if isinstance(commands, str):
        return _RETRY.refuse("attempts-exhausted", f"{commands}; begin it anew.")

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _RETRY.refuse("task-running", "The workflow is being repeated already.")
        return Envelope({**result, "status": "scheduled"}, status.ACCEPTED)

    return Effects(commands, tell)


def _tell(kept: KeptCall, state: str, *, attempt: int | None = None) -> Envelope:
    result: dict[str, Any] = {
        "retry_id": _new_id(),
        "original_task_id": kept.task_id,
        "attempt": attempt or kept.attempts,
        "status": state,
    }
    if state != "scheduled":
        result |= {"code": kept.status, "output": kept.answer}
    return Envelope(result, status.ACCEPTED if state == "scheduled" else status.OK)


def _new_id() -> str:
    return f"retry-{secrets.token_hex(16)}"


def _not_found(task_id: str) -> Refused:
    message = f"This agent has no call with the Task-ID {task_id[:80]!r} that can be repeated; call the endpoint again."
    return _RETRY.refuse("task-not-found", message)
