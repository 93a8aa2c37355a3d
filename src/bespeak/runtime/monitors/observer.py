"""Looking at the target of a monitor: the values of its events now, with the authority of its owner."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from types import CoroutineType
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, Composing, RoutedCall, StepCall
from bespeak.runtime.call_statistics import WINDOW, CallStatistics, Summary
from bespeak.runtime.condition import MISSING, find_member
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.gates import find_route
from bespeak.runtime.health import FAILING, examine, judge
from bespeak.runtime.monitors import target as targets
from bespeak.runtime.monitors.monitor import Monitor, View
from bespeak.runtime.monitors.target import Target
from bespeak.state.store.commands.monitors import AGENT
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.store import Store

GONE: Final = "gone"
"""State of a record or an agent that is not there any more."""
_AVAILABLE: Final = "available"
_INVALID: Final = "input-validation-failed"
_FRESH: Final = 1.0
"""Seconds for which an examination of the server is good enough."""
_MOST_VALUE: Final = 4096
"""Maximum bytes of a value that is stored and told; of a larger one it is the digest."""
_AUTHORITY_LOST: Final = frozenset(
    {status.UNAUTHORIZED, status.AUTHORIZATION_REQUIRED, status.FORBIDDEN, status.NOT_FOUND, status.SCOPE_VIOLATION}
)


class Look(msgspec.Struct, frozen=True):
    """What one look has shown."""

    values: dict[str, Any]
    """Value of each event; one that could not be observed is left out."""
    version: int = 0
    views: dict[str, View] = {}
    ended: str = ""
    """Reason why there is nothing to look at any more; empty if there is."""


class Observer:
    """Looks at targets."""

    def __init__(self, dispatcher: Dispatcher, store: Store, kinds: tuple[str, ...]) -> None:
        """Create the observer of a process; `kinds` are the records that an agent can look at."""
        self._dispatcher = dispatcher
        self._store = store
        self._statistics: CallStatistics = dispatcher.server.statistics or CallStatistics()
        self._kinds = kinds
        self._name = secrets.token_hex(8)
        """Name of this process among the views of a monitor."""
        self._examining = asyncio.Lock()
        self._examined = (-_FRESH, "")
        """Time and result of the last examination."""

    async def look(self, call: RoutedCall, monitor: Monitor) -> Look | Refused:
        """Look once; a Refused if the target is not there for the owner, or its authority does not suffice."""
        target = monitor.target
        if target.kind == AGENT:
            return self._look_at_agent(call, target)
        if target.kind == targets.RECORD:
            return await self._look_at_record(call, target)
        if target.kind == targets.SERVER:
            return Look({targets.HEALTH: await self._examine(call)})
        return await self._look_at_endpoint(call, monitor)

    async def _examine(self, call: RoutedCall) -> str:
        """Return the health of the server. Those who look at the same time share one examination."""
        async with self._examining:
            if time.monotonic() >= self._examined[0] + _FRESH:
                try:
                    self._examined = time.monotonic(), judge(await examine(call.server))
                except TimeoutError:
                    self._examined = time.monotonic(), FAILING
            return self._examined[1]

    def _look_at_agent(self, call: RoutedCall, target: Target) -> Look | Refused:
        agent: Agent | None = call.server.agents.get(target.name)
        public = call.routes.service.agent_disclosure == "public"
        if agent is None or not (public or target.name == call.agent_id):
            return Refused(status.NOT_FOUND, "target-not-found", "No agent with this id is known here.")
        values = {targets.STATUS: agent.status, targets.TIER: agent.trust_tier, targets.SCORE: agent.trust_score}
        return Look(values)

    async def _look_at_record(self, call: RoutedCall, target: Target) -> Look | Refused:
        record: Record | None = await self._store.read(FindRecord(self._kinds, target.name))
        if record is None or record.owner not in (call.agent_id, call.principal.principal_id):
            message = f"This agent has nothing with the id {target.name[:80]!r} that can be observed."
            return Refused(status.NOT_FOUND, "target-not-found", message)
        return Look({targets.STATE: record.state}, record.version)

    async def _look_at_endpoint(self, call: RoutedCall, monitor: Monitor) -> Look | Refused:
        target = monitor.target
        request = msgspec.structs.replace(call.request, method=target.method, path=target.name, body=b"")
        asked = Call(request, call.server)
        asked.principal = call.principal
        found = find_route(asked)
        if isinstance(found, Refused):
            return Refused(status.NOT_FOUND, "target-not-found", found.message)
        now = time.time()
        views = {name: view for name, view in monitor.views.items() if view.at > now - WINDOW}
        views[self._name] = View(now, self._statistics.summarize(found.route.endpoint.key))
        total = sum((view.summary for view in views.values()), Summary())
        values: dict[str, Any] = {
            targets.AVAILABILITY: FAILING if total.failed * 2 > total.calls else _AVAILABLE,
            targets.ERROR_RATE: total.failed / total.calls if total.calls else 0.0,
            targets.LATENCY: total.seconds / total.calls if total.calls else None,
        }
        if targets.OUTPUT in monitor.events:
            output = await self._poll(call, found, target)
            if isinstance(output, Refused):
                return output
            if output is not MISSING:
                values[targets.OUTPUT] = output
        return Look(values, views=views)

    async def _poll(self, call: RoutedCall, found: RoutedCall, target: Target) -> Any | Refused:
        """Call the endpoint; return MISSING if it has no answer now, or none that has the selected member."""
        route = found.route
        if route.endpoint.semantic.impact != "informational" or route.endpoint.passes_on:
            message = f"{route.endpoint} does more than to inform, so it is not called to observe its output."
            return Refused(status.NOT_FOUND, "target-not-found", message)
        given = route.fill_captures(target.parameters, found.captures)
        call.composing = Composing(self._dispatcher.new_id(), {}, is_keyed=False)
        began = time.perf_counter()
        called = self._dispatcher.run_step(call, route, given, target.name, "1")
        done: StepCall = await called if type(called) is CoroutineType else called  # type: ignore[assignment]
        assert done.response is not None, "the step has been answered"
        code = done.response.status
        self._statistics.note(route.endpoint.key, time.perf_counter() - began, code)
        if status.is_success(code):
            return find_member(done.output, target.select) if target.select else done.output
        error = msgspec.json.decode(done.response.body).get("error", {})
        # Other refusals may pass: they are about the state of things.
        if code in _AUTHORITY_LOST or error.get("code") == _INVALID:
            return Refused(code, error.get("code", "refused"), error.get("message", "The call was refused."))
        return MISSING


def bound_value(value: Any) -> Any:
    """Return a value, or its digest if it is large."""
    text = msgspec.json.encode(value, order="sorted")
    return value if len(text) <= _MOST_VALUE else {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}
