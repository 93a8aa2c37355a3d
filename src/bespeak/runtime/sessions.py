"""Sessions and paused tasks: cached, so that most requests do not ask the store (core 4.9, 8)."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from math import inf
from typing import Any, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import WANTED_BITS, estimated_bits, is_session_id
from bespeak.protocol.exchange.headers import SESSION_ID, TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Response
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.exchange import Exchange
from bespeak.runtime.server import PausedTasks
from bespeak.state.store.commands.cases import REJECTED, FindPausedTask, PausedTask
from bespeak.state.store.commands.sessions import ACTIVE, TOPIC, BindSession, SeekSession
from bespeak.state.store.settings import SessionSettings
from bespeak.state.store.store import Conflict, Store

_logger = logging.getLogger(__name__)

MOST_SESSIONS: Final = 65_536  # maximum number of cached sessions; any other is looked up in the store
SUSPENDED: Final = "session-suspended"  # error code of requests in a suspended session

_WEAK: Final = Refused(
    status.BAD_REQUEST,
    "session-id-weak",
    f"The Session-ID is too easy to guess; use a new one of at least {WANTED_BITS} random bits for each "
    "session, such as 32 random hexadecimal digits or a UUID of version 4.",
)
_MALFORMED: Final = Refused(
    status.BAD_REQUEST,
    "invalid-session-id",
    "A Session-ID is 1 to 256 letters, digits and characters of . _ ~ : @ + / = -.",
)
_OF_ANOTHER: Final = Refused(
    status.FORBIDDEN,
    "session-of-another",
    "The Session-ID belongs to another agent, or to another TLS identity of this one; start a session of your own "
    "with a new id.",
)
EXPIRED: Final = Refused(
    status.TIMEOUT,
    "session-expired",
    "The session was suspended and not resumed in time; start a new one with a new id.",
)  # refusal for a session that was not resumed in time


class Sessions:
    """Admits the requests of an active session: from the agent and the TLS identity that used it first."""

    def __init__(
        self, settings: SessionSettings, clock: Callable[[], float] = time.monotonic, most: int = MOST_SESSIONS
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._most = most
        self._fresh_for = settings.idle / 4
        # The owner of each session, and the time until which the store need not be asked.
        self._known: OrderedDict[str, tuple[str, str, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def watch(self, store: Store) -> None:
        store.watch(TOPIC, self._known.clear)

    def ask(self, call: Call) -> BindSession | SeekSession | Refused | None:
        """Return None if the call is admitted, a refusal, or a command whose result decides."""
        session_id = call.request.headers.get(SESSION_ID)
        if session_id is None:
            return None
        agent_id, tls_identity = call.principal.agent_id or "", call.principal.tls_identity or ""
        known = self._known.get(session_id)
        if known is None:
            if not is_session_id(session_id):
                return _MALFORMED
            if self.settings.entropy and estimated_bits(session_id) < WANTED_BITS:
                return _WEAK
        elif self._clock() < known[2]:
            return None if known[:2] == (agent_id, tls_identity) else self._refuse_other_owner(call)
        if not agent_id:
            # There is no agent to bind it to, and anonymous callers must not fill the store with rows.
            return SeekSession(session_id)
        # A place is reserved for the answer of the store. If it is cleared meanwhile, the answer is not cached.
        self._known.setdefault(session_id, (agent_id, tls_identity, -inf))
        self._known.move_to_end(session_id)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        # An operator's own RESUME of something else does not resume the session.
        resuming = call.method == "RESUME" and call.route is not None and call.route.builtin
        return BindSession(session_id, agent_id, tls_identity, self.settings.idle, resuming)

    def judge(self, call: Call, found: Any) -> Refused | None:
        """Judge the result of the command, which may be a Conflict."""
        if call.principal.agent_id is None:
            return self._refuse_other_owner(call) if isinstance(found, Conflict) else None
        session_id = call.request.headers[SESSION_ID]
        if found == ACTIVE:
            if session_id in self._known:  # else it was suspended after the store answered
                owner = (call.principal.agent_id or "", call.principal.tls_identity or "")
                self._known[session_id] = (*owner, self._clock() + self._fresh_for)
            return None
        self._known.pop(session_id, None)
        if not isinstance(found, Conflict):
            return None  # suspended, and about to be resumed
        return self._refuse_other_owner(call) if found.reason == "of-another" else refuse_session(found)

    def _refuse_other_owner(self, call: Call) -> Refused:
        particulars = Exchange(call, Response(_OF_ANOTHER.status)).particulars
        _logger.warning(
            "a request named a session of another agent: %s %s by %s from %s",
            *(particulars["method"], particulars["path"], particulars["agent_id"], particulars["peer"]),
            extra={"particulars": particulars},
        )
        return _OF_ANOTHER


def refuse_session(conflict: Conflict) -> Refused:
    if conflict.reason == "of-another":
        return _OF_ANOTHER
    if conflict.reason == "expired":
        return EXPIRED
    resume_by = conflict.details.get("resume_by")
    details = {"resume_by": write_instant(resume_by)} if resume_by else {}
    message = "The session is suspended; resume it first: RESUME / with its resumption nonce."
    return Refused(status.CONFLICT, SUSPENDED, message, details)


TASK_PAUSED: Final = "task-paused"  # error code of calls of a task that waits for a decision

_PASSING: Final = frozenset({"ESCALATE", "CONFIRM", "SUSPEND", "RESUME", "DISCOVER", "DESCRIBE", "INSPECT"})
"""Built-in methods that decide, pause or only look: they do not continue the task."""


def working_agents(call: RoutedCall) -> tuple[str, ...]:
    """Return the agents that work on the task of a call: the caller and those it acts for."""
    return (call.agent_id or "", *call.principal.delegators)


class Pausing:
    """Refuses calls of paused tasks: those of the agent that escalated, of its delegators, and of their delegates."""

    def __init__(self, tasks: PausedTasks) -> None:
        self._tasks = tasks

    def concerns(self, call: RoutedCall) -> bool:
        """Return True if a call may belong to a paused task."""
        passes = call.route.builtin and call.method in _PASSING
        return self._tasks.watched and TASK_ID in call.request.headers and not passes

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
        return _refuse(found) if isinstance(found, PausedTask) else None


def _refuse(task: PausedTask) -> Refused:
    details = {"task_id": task.task_id, "escalation_id": task.case_id, "escalation_status": task.state}
    if task.state == REJECTED:
        if task.reason:
            details["reason"] = task.reason
        message = "The escalation of this task was rejected; begin a new task with a new Task-ID."
        return Refused(status.FORBIDDEN, "task-rejected", message, details)
    message = f"The task is paused until {task.recipient} has decided its escalation; repeat the call then."
    return Refused(status.CONFLICT, TASK_PAUSED, message, {**details, "routed_to": task.recipient})
