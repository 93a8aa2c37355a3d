"""Monitors: targets, their events and thresholds; observed when they are due, and each change is reported once."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.participant import CHECKS
from bespeak.errors import StoreError
from bespeak.extensions.messages.message import KEPT, Message, put_messages
from bespeak.extensions.messages.posting import Posting, post
from bespeak.extensions.monitors import store as commands
from bespeak.extensions.monitors.health import FAILING, WINDOW, CallStatistics, Summary, examine, judge
from bespeak.extensions.monitors.store import ACTIVE, AGENT, ENDPOINT, MONITOR, RECORD, SERVER
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import Call, Composing, RoutedCall
from bespeak.runtime.composition.values import COMPARE
from bespeak.runtime.concurrency import FairSemaphore, cancel_tasks
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.expressions.pool import ExpressionFault, Expressions
from bespeak.runtime.gates import find_route
from bespeak.runtime.handling import RefusedError, ask_service, finish_step, new_id, to_json
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record, topic_of
from bespeak.state.store.store import Command, Conflict, Store

STATUS: Final = "status_changed"
TIER: Final = "trust_tier_changed"
SCORE: Final = "trust_score_changed"
AVAILABILITY: Final = "availability_changed"
ERROR_RATE: Final = "error_rate_changed"
LATENCY: Final = "latency_changed"
OUTPUT: Final = "output_changed"
STATE: Final = "state_changed"
HEALTH: Final = "health_changed"

EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    AGENT: (STATUS, TIER, SCORE),
    ENDPOINT: (AVAILABILITY, ERROR_RATE, LATENCY, OUTPUT),
    RECORD: (STATE,),
    SERVER: (HEALTH,),
}
"""Events of each kind of target."""
NUMBERS: Final = frozenset({TIER, SCORE, ERROR_RATE, LATENCY, OUTPUT})  # events whose values can be numbers
MEASURED: Final = frozenset({ERROR_RATE, LATENCY})  # events that change with every call, so that they need a threshold
_MEMBERS: Final = frozenset({"method", "path", "parameters", "select"})
_LONGEST: Final = 1000
_URI: Final = re.compile(
    r"agtp://(?:(?P<agent>[0-9a-f]{64})(?:@[^/]*)?|(?P<host>[^/@:]+)(?::[0-9]+)?)(?P<path>(?:/.*)?)"
)


class MonitorTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str
    name: str  # Agent-ID, path, id of a record, or `server`
    method: str = ""  # method of an endpoint
    parameters: dict[str, Any] = {}  # input of the calls that poll an endpoint
    select: str = ""  # path to the part of the output that counts; empty for all of it


def parse_target(given: Any, server_id: str) -> MonitorTarget | str:
    """Read a target, without looking for it; return what is wrong with it as a text, for an object."""
    if isinstance(given, str):
        server_names = (SERVER, "self", server_id)
        if is_canonical_id(given):
            return MonitorTarget(AGENT, given)
        uri = _URI.fullmatch(given)
        if uri is not None and uri["agent"]:
            return MonitorTarget(AGENT, uri["agent"])
        if uri is not None and uri["host"] in server_names and uri["path"].strip("/"):
            return MonitorTarget(ENDPOINT, uri["path"], "FETCH")
        if given in server_names or (uri is not None and uri["host"] in server_names):
            return MonitorTarget(SERVER, SERVER)
        method, _, path = given.partition(" ")
        return MonitorTarget(ENDPOINT, path, method) if path.startswith("/") else MonitorTarget(RECORD, given)
    unknown = given.keys() - _MEMBERS
    if unknown:
        return f"has the unknown member {min(unknown)[:40]!r}; it takes {', '.join(sorted(_MEMBERS))}"
    method, path, select = given.get("method"), given.get("path", "/"), given.get("select", "")
    texts = all(isinstance(one, str) and len(one) <= _LONGEST for one in (method, path, select))
    if not texts or not isinstance(given.get("parameters", {}), dict):
        return "needs a text `method`, and may have the texts `path` and `select` and an object `parameters`"
    return MonitorTarget(ENDPOINT, path, method, given.get("parameters", {}), select)


class Seen(msgspec.Struct, frozen=True, omit_defaults=True):
    value: Any = None  # the value, or its digest if it is large
    beyond: bool = False  # True if it was on the far side of the threshold


class View(msgspec.Struct, frozen=True):
    at: float
    summary: Summary


class Monitor(msgspec.Struct, frozen=True, omit_defaults=True):
    target: MonitorTarget
    events: tuple[str, ...]
    callback: str  # Agent-ID of the owner for its inbox, or an address that was verified
    interval: float
    authority: Authority
    threshold: Any = None
    version: int = 0  # version of the record that is looked at, when it was
    seen: dict[str, Seen] = {}
    views: dict[str, View] = {}  # views of the processes that share the store, by the id of each
    ended: dict[str, Any] | None = None  # code and message of the reason why it ended by itself; None while it looks


decode: Final = msgspec.json.Decoder(Monitor).decode


MISSING: Final = object()  # what a path leads to where nothing is; no condition holds for it


def find_fault(condition: Any) -> str | None:
    """Return what is wrong with a condition; None if it can be tested."""
    if not isinstance(condition, Mapping):
        return None
    unknown = condition.keys() - COMPARE.keys()
    if unknown or not condition:
        named = f"{min(unknown)[:40]!r} is not a comparison" if unknown else "it has no comparison"
        return f"{named}; use {', '.join(COMPARE)}"
    if "in" in condition and not isinstance(condition["in"], list):
        return "`in` takes a list"
    return None


def holds(condition: Any, value: Any) -> bool:
    """Return True if a value meets a condition without faults."""
    if value is MISSING:
        return False
    if not isinstance(condition, Mapping):
        return COMPARE["eq"](condition)(value)
    return all(COMPARE[name](wanted)(value) for name, wanted in condition.items())


def find_member(value: Any, path: str) -> Any:
    """Follow a path of member names and positions with dots; return MISSING if it leads nowhere."""
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and part.isascii() and int(part[:9]) < len(value):
            value = value[int(part[:9])]
        else:
            return MISSING
    return value


async def check_threshold(
    threshold: Any, events: Sequence[str], expressions: Expressions, owner: str | None = None
) -> str | None:
    """Return what is wrong with a threshold for these events; None if it can be used."""
    if threshold is None:
        needing = sorted(MEASURED.intersection(events))
        return f"is missing; {needing[0]} changes with every call and needs one" if needing else None
    if isinstance(threshold, (int, float)):
        unfit = sorted(set(events) - NUMBERS)
        return f"is a number, but {unfit[0]} has no number to compare" if unfit else None
    if len(events) != 1:
        return "is a condition, which takes one event; use one monitor for each event"
    if isinstance(threshold, Mapping):
        fault = find_fault(threshold)
    else:
        fault = await expressions.check(threshold, ("value", "previous"), owner)
    return None if fault is None else f"cannot be used: {fault}"


async def is_beyond(
    threshold: Any, value: Any, previous: Any, expressions: Expressions, owner: str | None = None
) -> bool | ExpressionFault:
    """Return True if a value is on the far side of a threshold."""
    if isinstance(threshold, (int, float)):
        return holds({"gte": threshold}, value)
    if isinstance(threshold, Mapping):
        return holds(threshold, value)
    found = await expressions.evaluate(threshold, {"value": value, "previous": previous}, owner)
    if isinstance(found, bool | ExpressionFault):
        return found
    return ExpressionFault("the expression must be true or false")


def is_news(threshold: Any, *, was: bool, now: bool) -> bool:
    """Return True if the change of sides is worth a notification."""
    return was != now if isinstance(threshold, (int, float)) else now and not was


GONE: Final = "gone"  # state of a record or an agent that is not there any more
_FRESH: Final = 1.0  # seconds for which an examination of the server is good enough
_MOST_VALUE: Final = 4096  # maximum bytes of a value that is stored and told; of a larger one it is the digest
_AUTHORITY_LOST: Final = frozenset(
    {status.UNAUTHORIZED, status.AUTHORIZATION_REQUIRED, status.FORBIDDEN, status.NOT_FOUND, status.SCOPE_VIOLATION}
)


class Observation(msgspec.Struct, frozen=True):
    values: dict[str, Any]  # value of each event; one that could not be observed is left out
    version: int = 0
    views: dict[str, View] = {}


def bound_value(value: Any) -> Any:
    """Return a value, or its digest if it is large."""
    text = msgspec.json.encode(value, order="sorted")
    return value if len(text) <= _MOST_VALUE else {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}


_logger = logging.getLogger(__name__)

STOPPED: Final = "stopped"  # state of a monitor that ended by itself
NOTICE: Final = "monitor"  # kind of the messages and postings of monitors
_AT_ONCE: Final = 32  # looks of this process at the same time
_MOST_WAITING: Final = 5_000  # looks that wait for their turn, or are made
_WITHIN: Final = 20.0  # seconds for one look: less than the time for which it is claimed
_CALM: Final = 0.2  # seconds between two searches for monitors that are behind
_SHARE: Final = 20  # ratio of waiting to searching: with many monitors a search takes time that requests need


class Monitors:
    """Looks at what is due, and finds out what is due sooner."""

    def __init__(self, dispatcher: Dispatcher, store: Store, kinds: Sequence[str]) -> None:
        self._dispatcher, self._server, self._store, self._kinds = dispatcher, dispatcher.server, store, tuple(kinds)
        self._statistics: CallStatistics = dispatcher.server.part("statistics") or CallStatistics()
        self._name = secrets.token_hex(8)  # name of this process among the views of a monitor
        self._examining = asyncio.Lock()
        self._examined = (-_FRESH, "")  # time and result of the last examination
        self._looking: set[asyncio.Task[None]] = set()
        self._claimed: dict[str, Record] = {}  # monitors that wait for their turn, as they were last claimed
        self._turns = FairSemaphore(_AT_ONCE, most=_MOST_WAITING, most_of_one=_MOST_WAITING)
        self._changed: set[bool] = set()  # what has changed since the last search: agents (True), records (False)
        self._waking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Follow what is looked at."""
        for kind in self._kinds:
            self._store.watch(topic_of(kind), lambda: self._wake(agents=False))
        self._server.agents.watch(lambda: self._wake(agents=True))

    async def close(self) -> None:
        """Stop looking; what is not finished is due again after its lease."""
        await cancel_tasks(self._waking, *self._looking)

    async def carry(self, records: Sequence[Record]) -> None:
        """Look at monitors that are due. Their owners take turns: looks that take long hold up only their own."""
        for record in records:
            while len(self._looking) >= _MOST_WAITING:
                await asyncio.wait(self._looking, return_when=asyncio.FIRST_COMPLETED)
            waits = record.record_id in self._claimed
            self._claimed[record.record_id] = record
            if waits:
                continue
            run = self._take_turn(record.record_id, record.owner)
            task = asyncio.get_running_loop().create_task(run, name=f"bespeak-{record.record_id}")
            self._looking.add(task)
            task.add_done_callback(self._finished)

    async def _take_turn(self, record_id: str, owner: str) -> None:
        async with self._turns.take(owner):
            await self._look(self._claimed.pop(record_id))

    async def observe(self, call: RoutedCall, monitor: Monitor) -> tuple[Monitor, list[dict[str, Any]]] | Refused:
        """Look once; return the monitor with what it has seen now, and the changes that are worth telling."""
        look = await self.look(call, monitor)
        if isinstance(look, Refused):
            return look
        seen, news = dict(monitor.seen), []
        for event in monitor.events:
            if event not in look.values:
                continue
            value, before, beyond = look.values[event], seen.get(event, Seen()), False
            if monitor.threshold is not None:
                if value is None:
                    continue
                expressions, owner = self._server.expressions, monitor.authority.agent_id
                judged = await is_beyond(monitor.threshold, value, before.value, expressions, owner)
                if isinstance(judged, ExpressionFault):
                    message = f"The threshold has no value for {event}: {judged.message}"
                    return Refused(status.BAD_REQUEST, "invalid-threshold", message, {"field": "/threshold"})
                beyond = judged
            told = bound_value(value)
            seen[event] = Seen(told, beyond)
            crossed = is_news(monitor.threshold, was=before.beyond, now=beyond)
            if told != before.value if monitor.threshold is None else crossed:
                news.append({"event": event, "value": told, "previous": before.value})
        return msgspec.structs.replace(monitor, seen=seen, version=look.version, views=look.views), news

    async def look(self, call: RoutedCall, monitor: Monitor) -> Observation | Refused:
        """Look once; a Refused if the target is not there for the owner, or its authority does not suffice."""
        target = monitor.target
        if target.kind == AGENT:
            return self._look_at_agent(call, target)
        if target.kind == RECORD:
            return await self._look_at_record(call, target)
        if target.kind == SERVER:
            return Observation({HEALTH: await self._examine(call)})
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

    def _look_at_agent(self, call: RoutedCall, target: MonitorTarget) -> Observation | Refused:
        agent: Agent | None = call.server.agents.get(target.name)
        public = call.routes.service.agent_disclosure == "public"
        if agent is None or not (public or target.name == call.agent_id):
            return Refused(status.NOT_FOUND, "target-not-found", "No agent with this id is known here.")
        return Observation({STATUS: agent.status, TIER: agent.trust_tier, SCORE: agent.trust_score})

    async def _look_at_record(self, call: RoutedCall, target: MonitorTarget) -> Observation | Refused:
        record: Record | None = await self._store.read(FindRecord(self._kinds, target.name))
        if record is None or record.owner not in (call.agent_id, call.principal.principal_id):
            try:
                thing = await ask_service(call, CHECKS, target.name, {})
            except RefusedError as error:
                # Other refusals may pass: they are about the state of things.
                return error.refused if error.refused.status in _AUTHORITY_LOST else Observation({})
            if thing is not None:
                # With the version of a record of somebody else under this id, whose changes must not wake the monitor.
                return Observation({STATE: thing.state}, 0 if record is None else record.version)
            message = f"This agent has nothing with the id {target.name[:80]!r} that can be observed."
            return Refused(status.NOT_FOUND, "target-not-found", message)
        return Observation({STATE: record.state}, record.version)

    async def _look_at_endpoint(self, call: RoutedCall, monitor: Monitor) -> Observation | Refused:
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
            AVAILABILITY: FAILING if total.failed * 2 > total.calls else "available",
            ERROR_RATE: total.failed / total.calls if total.calls else 0.0,
            LATENCY: total.seconds / total.calls if total.calls else None,
        }
        if OUTPUT in monitor.events:
            output = await self._poll(call, found, target)
            if isinstance(output, Refused):
                return output
            if output is not MISSING:
                values[OUTPUT] = output
        return Observation(values, views=views)

    async def _poll(self, call: RoutedCall, found: RoutedCall, target: MonitorTarget) -> Any | Refused:
        """Call the endpoint; return MISSING if it has no answer now, or none that has the selected member."""
        route = found.route
        if route.endpoint.semantic.impact != "informational" or route.endpoint.passes_on:
            message = f"{route.endpoint} does more than to inform, so it is not called to observe its output."
            return Refused(status.NOT_FOUND, "target-not-found", message)
        given = route.fill_captures(target.parameters, found.captures)
        call.composing = Composing(self._dispatcher.new_id(), {}, is_keyed=False)
        began = time.perf_counter()
        done, response = await finish_step(self._dispatcher.run_step(call, route, given, target.name, "1"))
        code = response.status
        self._statistics.note(route.endpoint.key, time.perf_counter() - began, code)
        if status.is_success(code):
            return find_member(done.output, target.select) if target.select else done.output
        error = msgspec.json.decode(response.body).get("error", {})
        # Other refusals may pass: they are about the state of things.
        if code in _AUTHORITY_LOST or error.get("code") == "input-validation-failed":
            return Refused(code, error.get("code", "refused"), error.get("message", "The call was refused."))
        return MISSING

    async def _look(self, record: Record) -> None:
        monitor = decode(record.data)
        if self._server.routes.router.find("MONITOR", "/") is None:
            return  # it is not enabled now; the record waits
        # The authority of the owner is checked again each time: a suspended agent observes nothing.
        call = restore_call(monitor.authority, self._server, "MONITOR")
        if isinstance(call, Refused):
            await self._stop(record, monitor, call, tell=False)
            return
        async with asyncio.timeout(_WITHIN):
            found = await self.observe(call, monitor)
        if isinstance(found, Refused):
            if found.code == "invalid-threshold":
                await self._store.do(self._change(record, monitor))
            else:
                await self._stop(record, monitor, found, tell=True)
            return
        after, news = found
        done = await self._store.do(
            self._change(record, after, changed=True),
            commands.NoteVersion(record.record_id, after.version),
            *(command for one in news for command in self._tell(record, monitor, one)),
        )
        if isinstance(done, Conflict) and done.reason == "inbox-full":
            # What is not told is not noted as seen either, so that it is told when the inbox has room.
            _logger.info("the inbox of %s is full; %s looks again later", record.owner, record.record_id)
            await self._store.do(self._change(record, monitor))

    async def _stop(self, record: Record, monitor: Monitor, refused: Refused, *, tell: bool) -> None:
        """End a monitor whose target is gone, or whose owner must not observe it any more."""
        _logger.info("%s ends: %s", record.record_id, refused.message)
        told: tuple[Command, ...] = ()
        if tell:
            event = monitor.events[0]
            before = monitor.seen.get(event, Seen()).value
            told = self._tell(record, monitor, {"event": event, "value": GONE, "previous": before})
        ended = msgspec.structs.replace(monitor, ended={"code": refused.code, "message": refused.message})
        more: dict[str, Any] = {"fence": record.fence, "data": to_json(ended), "lifetime": KEPT}
        stopped = ChangeRecord(record.record_id, (MONITOR,), (ACTIVE,), STOPPED, **more)
        if isinstance(await self._store.do(stopped, *told), Conflict):
            await self._store.do(stopped)

    def _change(self, record: Record, monitor: Monitor, *, changed: bool = False) -> ChangeRecord:
        """Return the command that lets a monitor look again: after its interval, or at the end of its authority."""
        data = to_json(monitor) if changed else None
        delay = monitor.authority.within(self._server.principals, monitor.interval)
        return ChangeRecord(record.record_id, (MONITOR,), (ACTIVE,), ACTIVE, fence=record.fence, data=data, delay=delay)

    def _tell(self, record: Record, monitor: Monitor, news: Mapping[str, Any]) -> tuple[Command, ...]:
        """Return the commands that tell the owner, in the transaction that notes the change as seen."""
        notice_id, content = new_id("ntf"), {"subscription_id": record.record_id, "target": describe(monitor.target)}
        content |= {**news, "observed_at": write_instant(time.time())}
        sender = self._server.registrar.service.identity.server_id
        if monitor.callback == record.owner:
            message = Message(sender=sender, kind=NOTICE, content=content)
            return (put_messages(notice_id, message, (record.owner,), share=None),)
        return (post(monitor.callback, Posting(notice_id, NOTICE, sender, content, recipient=record.owner)),)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._looking.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            level = logging.INFO if isinstance(error, StoreError | TimeoutError) else logging.ERROR
            _logger.log(level, "%s failed here; it looks again when its claim ends", task.get_name(), exc_info=error)

    def _wake(self, *, agents: bool) -> None:
        self._changed.add(agents)
        if self._waking is None or self._waking.done():
            self._waking = asyncio.get_running_loop().create_task(self._wake_changed(), name="bespeak-monitors")

    async def _wake_changed(self) -> None:
        """Make the monitors due whose targets have changed. What is missed here is seen at the next interval."""
        while self._changed:
            agents, began = self._changed.pop(), time.monotonic()
            try:
                await self._store.do(commands.WakeMonitors(agents=agents))
            except StoreError as error:
                _logger.info("could not look for monitors that are behind: %s", error)
            await asyncio.sleep(max(_CALM, _SHARE * (time.monotonic() - began)))


def describe(target: MonitorTarget) -> Any:
    """Return a target as its owner has written it."""
    if target.kind != ENDPOINT:
        return target.name
    if not target.parameters and not target.select:
        return f"{target.method} {target.name}"
    made: dict[str, Any] = {"method": target.method, "path": target.name, "parameters": target.parameters}
    return {**made, "select": target.select} if target.select else made
