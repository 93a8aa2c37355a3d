"""States of workflows, and of the things that they await."""

from __future__ import annotations

from typing import Final

from bespeak.state.store.commands import records

RUNNING: Final = "running"
WAITING: Final = records.WAITING
PAUSED: Final = "paused"
SLEEPING: Final = "sleeping"  # until a time, or until something arrives
STOPPED: Final = "stopped"  # the code asks for something else than the journal has
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
CANCELLING: Final = "cancelling"  # what was done is being undone
OPEN: Final = (RUNNING, WAITING, SLEEPING, STOPPED)  # can be paused
ENDED: Final = (COMPLETED, FAILED, CANCELLED)
CHANGES: Final = {
    "pause": (OPEN, PAUSED),
    "resume": ((PAUSED,), RUNNING),
    "cancel": ((*OPEN, PAUSED), CANCELLING),
}
"""What an operator may do with a workflow: from which states, and the state after it."""
ALL: Final = (RUNNING, WAITING, SLEEPING, PAUSED, STOPPED, COMPLETED, FAILED, CANCELLING, CANCELLED)

DONE: Final = "done"
STARTED: Final = "started"  # begun, and not to be begun again: what becomes of it is not known if its process dies
PENDING: Final = "pending"  # to be tried again
SKIPPED: Final = "skipped"
UNDONE: Final = "undone"
NOT_UNDONE: Final = "not-undone"  # done, and what should undo it has failed
ARRIVED: Final = "arrived"  # a signal that nobody has waited for yet
RECEIVED: Final = "received"  # a signal that a wait has taken
