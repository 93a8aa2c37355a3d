"""Calls of a paused task: an escalated task does not continue before its decision (core 4.9)."""

from __future__ import annotations

from typing import Any, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.tasks import Tasks
from bespeak.state.store.commands.cases import REJECTED
from bespeak.state.store.commands.tasks import FindPausedTask, PausedTask

PAUSED: Final = "task-paused"
"""Error code of calls of a task that waits for a decision."""

_PASSING: Final = frozenset({"ESCALATE", "CONFIRM", "SUSPEND", "RESUME", "DISCOVER", "DESCRIBE", "INSPECT"})
"""Built-in methods that decide, pause or only look: they do not continue the task."""


def working_agents(call: RoutedCall) -> tuple[str, ...]:
    """Return the agents that work on the task of a call: the caller and those it acts for."""
    return (call.agent_id or "", *call.principal.delegators)


class Pausing:
    """Refuses calls of paused tasks: those of the agent that escalated, of its delegators, and of their delegates."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def concerns(self, call: RoutedCall) -> bool:
        """Return True if a call may belong to a paused task."""
        return (
            self._tasks.watched
            and TASK_ID in call.request.headers
            and not (call.route.builtin and call.method in _PASSING)
        )

    def ask(self, call: RoutedCall) -> FindPausedTask | Refused | None:
        """Return None if the call is admitted, a refusal, or a command whose result decides."""
        if not self.concerns(call):
            return None
        task_id, agents = call.request.headers[TASK_ID], working_agents(call)
        for agent_id in agents:
            task = self._tasks.get(agent_id, task_id)
            if task is not None:
                return _refuse(task)
        return None if self._tasks.complete else FindPausedTask(task_id, agents)

    def judge(self, call: RoutedCall, found: Any) -> Refused | None:
        """Refuse the call if its task is paused."""
        return _refuse(found) if isinstance(found, PausedTask) else None


def _refuse(task: PausedTask) -> Refused:
    details = {"task_id": task.task_id, "escalation_id": task.case_id, "escalation_status": task.state}
    if task.state == REJECTED:
        if task.reason:
            details["reason"] = task.reason
        message = "The escalation of this task was rejected; begin a new task with a new Task-ID."
        return Refused(status.FORBIDDEN, "task-rejected", message, details)
    message = f"The task is paused until {task.recipient} has decided its escalation; repeat the call then."
    return Refused(status.CONFLICT, PAUSED, message, {**details, "routed_to": task.recipient})
