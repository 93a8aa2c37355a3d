"""The extension: work that agents submit and functions of the service do."""

from __future__ import annotations

from typing import Final

from bespeak.extensions.queues import methods
from bespeak.extensions.queues.methods import confirm_pulled, describe_item, pull, submit
from bespeak.extensions.queues.queues import Queues
from bespeak.extensions.queues.store import QUEUED, SUBMISSION
from bespeak.runtime.extension import Cancelling, Extension, Opening, RecordKind
from bespeak.runtime.handling import OpenLimit
from bespeak.terminal.panels import panel_in


def _open(opening: Opening) -> None:
    participants = opening.server.registrar.participants
    # What is sent to people waits in a queue of each, whose name no other queue can have.
    recipients = {f"@{name}": one for name, one in participants.get("recipient", {}).items()}
    joined = {**participants.get("queue", {}), **recipients}
    if opening.store is None or not joined:
        return
    opening.provide("submissions", OpenLimit(SUBMISSION, methods.MOST_QUEUED))
    queues = Queues(opening.dispatcher, opening.store, joined)
    opening.on_run(queues.start)
    opening.on_stop(queues.stop)


queues: Final = Extension(
    name="queues",
    methods={"SUBMIT": submit, "PULL": pull},
    hooks={"confirm items": confirm_pulled},
    kinds={SUBMISSION: RecordKind(cancelling=Cancelling((QUEUED,)), named=True, describe=describe_item)},
    open=_open,
    panels=(panel_in(__name__, "queues", "Queues", one=True, act=("retry",)),),
)
