"""RESUME of a paused workflow (Tier 2 8.7)."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.orchestrate.pause import KIND, hash_nonce, pause_id
from bespeak.runtime.workflows.driving import KEPT
from bespeak.runtime.workflows.engine import Workflow, Workflows
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record
from bespeak.state.store.commands.steps import DONE, FAILED, PAUSED, RUNNING, WORKFLOW, JournalSteps, StepRow

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
    paused: Record | None = await call.server.store.read(FindRecord((KIND,), pause_id(found.record.record_id)))
    commands: list[Command] = []
    if "resumption_nonce" in given:
        if paused is None or not hmac.compare_digest(paused.content(), hash_nonce(given["resumption_nonce"])):
            return _WRONG
        commands.append(ChangeRecord(paused.record_id, (KIND,), ("open",), "used"))
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
