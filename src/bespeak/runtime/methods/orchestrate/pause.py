"""PAUSE: a workflow begins no further step until it is resumed (Tier 2 8.6)."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import invalid, read_time, refuse_without_needs
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.records import ChangeRecord, PutRecord, RemoveRecord
from bespeak.state.store.commands.steps import PAUSED, RUNNING, WAITING, WORKFLOW

KIND: Final = "pause"
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
        PutRecord(pause_id(workflow_id), KIND, agent_id, "open", f'"{hash_nonce(nonce)}"', lifetime=_KEPT),
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
