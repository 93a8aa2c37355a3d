"""Schedules of workflows: when each runs next, once over all machines, and what becomes of missed times.

A schedule is one record of the store that falls due. Whichever process claims it begins the run and sets the next time
in one transaction. The id of a run is made of its schedule and its planned time, so that it cannot begin twice.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from bespeak.contract.participant import WorkflowOptions
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.functions import newest, options_of
from bespeak.extensions.workflows.spec import Spec, encode
from bespeak.extensions.workflows.store import WORKFLOW
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import SERVICE
from bespeak.runtime.answer import Effects
from bespeak.runtime.bindings.participant import METHOD, Joined
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import effects, read_future, refusal, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutRecord, Record, RemoveRecord
from bespeak.state.store.store import Conflict, Store

_logger = logging.getLogger(__name__)

SCHEDULE: Final = "schedule"  # kind of the records
PREFIX: Final = "schedule:"  # what their ids begin with
ACTIVE: Final = "active"
SCOPE: Final = "schedules:manage"  # scope with which agents pause and resume schedules
PLANNED: Final = "planned"  # parameter of a workflow that is given the time for which it runs
MISSED: Final = ("skip", "once", "all")
MOST_MISSED: Final = 100  # missed times that are made up for, the last ones
MOST_SCHEDULES: Final = 1000
LATE: Final = 60.0  # seconds after which a time counts as missed
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
_DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_INTERVAL: Final = re.compile(r"(\d{1,6}) (second|minute|hour|day|week)s?")
_AT: Final = re.compile(r"(?:(\d{1,3}) days?|([a-z]+(?:, ?[a-z]+)*)) at (\d{1,2}):(\d{2})(?: (\S+))?")
_CRON: Final = re.compile(r"(\S+ \S+ \S+ \S+ \S+)(?: (\S+))?")
_FORMS: Final = (
    '"15 minutes", "1 day at 02:00 Europe/Berlin", "monday at 08:30 Europe/Paris" or "0 2 * * 1-5 Europe/Berlin"'
)


class Timing:
    """Times of a schedule, from its text. Raises ValueError for a text that is not valid."""

    def __init__(self, every: str) -> None:
        text = " ".join(every.split())
        self._seconds, self._cron, self._days, self._zone = 0, "", 1, ZoneInfo("UTC")
        if (found := _INTERVAL.fullmatch(text.lower())) is not None:
            self._seconds = int(found[1]) * _SECONDS[found[2]]
            if not 1 <= self._seconds <= 366 * 86400:
                raise ValueError(f"an interval must be 1 second to 366 days; got {every[:80]!r}")
            return
        if (found := _AT.fullmatch(text)) is not None:
            self._days = int(found[1] or 1)
            named = _read_days(found[2]) if found[2] else "*"
            zone, self._cron = found[5], f"{int(found[4])} {int(found[3])} * * {named}"
        elif (found := _CRON.fullmatch(text)) is not None:
            self._cron, zone = found[1], found[2]
        else:
            raise ValueError(f"{every[:80]!r} is not a valid schedule; write {_FORMS}")
        try:
            self._zone = ZoneInfo(zone or "UTC")
            CronSim(self._cron, datetime.now(UTC))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            known = "write one such as Europe/Berlin, or install tzdata"
            raise ValueError(f"the time zone {zone!r} of {every[:80]!r} is not known here; {known}") from None
        except CronSimError as error:
            raise ValueError(f"{every[:80]!r} is not a valid schedule ({error}); write {_FORMS}") from None
        if self._days < 1 or self.after(time.time()) is None:
            raise ValueError(f"{every[:80]!r} never comes")

    def after(self, moment: float) -> float | None:
        """Return the first time after a moment; None if there is none within 50 years."""
        return next((one for one in self._times(moment, reverse=False) if one > moment), None)

    def last(self, since: float, until: float, most: int) -> list[float]:
        """Return the last times of a period, both ends included, in order."""
        times = (one for one in self._times(until + 1, reverse=True) if one <= until)
        return sorted(set(islice(takewhile(lambda one: one >= since, times), most)))

    def _times(self, moment: float, *, reverse: bool) -> Iterator[float]:
        if self._seconds:
            # Counted from 1970, so that all machines and all starts agree.
            number, step = int(moment // self._seconds), -1 if reverse else 1
            while True:
                yield float(number * self._seconds)
                number += step
        # A time that does not exist is the end of the gap, and of one that exists twice the first is meant.
        for found in CronSim(self._cron, datetime.fromtimestamp(moment, self._zone), reverse=reverse):
            if found.date().toordinal() % self._days == 0:
                yield found.timestamp()


def _read_days(text: str) -> str:
    names = [name.strip().removesuffix("s") for name in text.split(",")]
    if names == ["weekday"]:
        return "1-5"
    unknown = next((name for name in names if name not in _DAYS), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} is not a day; write {', '.join(_DAYS[1:])}, sunday or weekdays")
    return ",".join(str(_DAYS.index(name)) for name in names)


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a schedule: what is declared, and how far it is."""

    name: str  # name of the workflow
    every: str
    missed: str = "once"
    scopes: tuple[str, ...] = ()  # scopes with which its runs act
    version: int = 1  # version of the workflow
    timeout: float = 86400.0  # seconds that a run may take
    told: bool = False  # True if the function takes the time for which it runs
    planned: float = 0.0  # next time
    last: str | None = None  # id of the last run
    nonce: str | None = None  # hash of the nonce of PAUSE

    @property
    def record_id(self) -> str:
        return PREFIX + self.name

    def times(self, now: float) -> list[float]:
        """Return the times for which a run begins now; the planned one has come."""
        times = Timing(self.every).last(self.planned, now, MOST_MISSED if self.missed == "all" else 1)
        return [one for one in times if self.missed != "skip" or now - one <= LATE]

    def resumed(self, now: float) -> Schedule:
        """Return it with the next time from now on: what was missed in a pause stays undone."""
        return msgspec.structs.replace(self, planned=Timing(self.every).after(now) or 0.0, nonce=None)


def find_fault(options: WorkflowOptions, handler: Callable[..., Any]) -> str | None:
    """Return what is wrong with the schedule of a workflow; None if it is valid, or there is none."""
    if options.every is None:
        return None
    if options.missed not in MISSED:
        return f"missed must be {', '.join(MISSED)}; got {options.missed[:80]!r}"
    # The first parameter is the context.
    taken = list(inspect.signature(handler).parameters.items())[1:]
    needed = [name for name, one in taken if one.default is one.empty and name != PLANNED]
    if needed:
        return f"a schedule gives it {PLANNED!r} and no other input, so that {needed[0]!r} needs a default"
    try:
        Timing(options.every)
    except ValueError as error:
        return str(error)
    return None


def find_schedules(workflows: Iterable[Joined]) -> Iterator[Schedule]:
    for joined in workflows:
        one, options = joined.participant, options_of(joined)
        if options.every is not None:
            version = newest(joined)
            told = PLANNED in joined.routes[str(version)].endpoint.input_schema.get("properties", {})
            yield Schedule(one.name, options.every, options.missed, one.scopes, version, options.timeout, told=told)


read_schedule = msgspec.json.Decoder(Schedule).decode


class Schedules:
    def __init__(
        self, server_id: str, store: Store, declared: Iterable[Schedule], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._server_id = server_id
        self._store = store
        self._declared = {one.record_id: one for one in declared}
        self._clock = clock

    async def start(self) -> None:
        """Store what is declared: new schedules begin, changed ones count from now, and others of the service end."""
        known: list[Record] = await self._store.read(ListRecords(SCHEDULE, self._server_id, limit=MOST_SCHEDULES))
        for record in known:
            now, before = self._declared.get(record.record_id), read_schedule(record.data)
            if now is None:
                await self._store.do(RemoveRecord(record.record_id))
            elif now != msgspec.structs.replace(before, planned=0.0, last=None, nonce=None):  # what is declared
                changed = msgspec.structs.replace(now.resumed(self._clock()), last=before.last, nonce=before.nonce)
                due = record.due if record.state == states.PAUSED else changed.planned
                await self._store.do(_change(record, record.state, changed, due=due, version=record.version))
        for record_id in self._declared.keys() - {record.record_id for record in known}:
            new = self._declared[record_id].resumed(self._clock())
            # Another machine may be faster.
            await self._store.do(PutRecord(record_id, SCHEDULE, self._server_id, ACTIVE, to_json(new), due=new.planned))

    async def take(self, records: Sequence[Record]) -> None:
        """Begin the runs of schedules that are due, and set the next time of each in the same transaction."""
        for record in records:
            try:
                await self._take(record, read_schedule(record.data))
            except ValueError as error:  # a zone that is not known here; another machine may have it
                _logger.error("%s cannot be carried out here; it is tried again later: %s", record.record_id, error)

    async def _take(self, record: Record, schedule: Schedule) -> None:
        # The clock of the store may be ahead of ours.
        now = max(self._clock(), schedule.planned)
        runs = [] if record.state == states.PAUSED else [self._run(schedule, one) for one in schedule.times(now)]
        following = schedule.resumed(self._clock() if record.state == states.PAUSED else now)
        if runs:
            following = msgspec.structs.replace(following, last=runs[-1].record_id)
        # Code that has started since, with another schedule, has another version of the record.
        held = {"fence": record.fence, "version": record.version}
        advance = _change(record, ACTIVE, following, due=following.planned or None, **held)
        done = await self._store.do(*runs, advance)
        if isinstance(done, Conflict) and done.reason == "exists":
            for run in runs:  # one of them began before the schedule was declared anew
                await self._store.do(run)
            await self._store.do(advance)

    def _run(self, schedule: Schedule, planned: float) -> PutRecord:
        authority = Authority(self._server_id, schedule.scopes, {}, verified=SERVICE)
        deadline, name = max(self._clock(), planned) + schedule.timeout, schedule.name
        given = {PLANNED: write_instant(planned)} if schedule.told else {}
        spec = Spec(METHOD, (), authority, deadline, given=given, name=name, workflow=name, version=schedule.version)
        digest = hashlib.sha256(f"{self._server_id} {schedule.name}".encode()).hexdigest()
        run_id = f"run-{int(planned * 1000):012x}{digest[:20]}"
        # Any machine may drive it: it is due at once.
        what = (run_id, WORKFLOW, self._server_id, states.RUNNING, encode(spec).decode())
        return PutRecord(*what, key=run_id, delay=0.0)


def _change(record: Record, state: str, schedule: Schedule, **more: Any) -> ChangeRecord:
    return ChangeRecord(record.record_id, (SCHEDULE,), (record.state,), state, data=to_json(schedule), **more)


def pause_change(record: Record, *, due: float | None = None, nonce: str | None = None) -> ChangeRecord:
    """Return the command that pauses a schedule, until a time or until it is resumed."""
    paused = msgspec.structs.replace(read_schedule(record.data), nonce=nonce)
    return ChangeRecord(record.record_id, (SCHEDULE,), (ACTIVE,), states.PAUSED, data=to_json(paused), due=due)


def resume_change(record: Record, now: float) -> ChangeRecord:
    going = read_schedule(record.data).resumed(now)
    return ChangeRecord(record.record_id, (SCHEDULE,), (states.PAUSED,), ACTIVE, data=to_json(going), due=going.planned)


_PAUSE: Final = STANDARD["PAUSE"]
_RESUME: Final = STANDARD["RESUME"]


def is_schedule(name: str) -> bool:
    return name.startswith(PREFIX)


def hash_nonce(nonce: str) -> str:
    return hashlib.sha256(nonce.encode(errors="surrogatepass")).hexdigest()


async def pause_schedule(call: RoutedCall) -> Effects:
    """Answer PAUSE / of a schedule, for agents with the scope."""
    resume_at = read_future(call.input, "resume_at", most=float("inf"))
    record, nonce = await _find(call), secrets.token_urlsafe(16)
    command = pause_change(record, due=resume_at, nonce=hash_nonce(nonce))
    result = {"workflow_id": record.record_id, "status": states.PAUSED, "resumption_nonce": nonce}
    if resume_at is not None:
        result["resume_at"] = write_instant(resume_at)
    return effects([command], lambda _: result, _PAUSE.refuse("already-paused", "The schedule is paused already."))


async def resume_schedule(call: RoutedCall) -> Effects:
    """Answer RESUME / of a schedule, for agents with the scope; a nonce is not needed, and must be right if given."""
    record, given = await _find(call), call.input
    kept = read_schedule(record.data).nonce or ""
    if "resumption_nonce" in given and not hmac.compare_digest(kept, hash_nonce(given["resumption_nonce"])):
        raise refusal(_RESUME, "resumption-nonce-wrong", "PAUSE did not return this nonce for the schedule.")
    result = {"workflow_id": record.record_id, "status": ACTIVE}
    active = _RESUME.refuse("workflow-not-paused", "The schedule is not paused.")
    return effects([resume_change(record, time.time())], lambda _: result, active)


async def _find(call: RoutedCall) -> Record:
    """Return the schedule that a call names; refuse an unknown one, and any to an agent without the scope."""
    name, store = call.input["workflow_id"], call.server.store
    record: Record | None = None
    if store is not None and not call.principal.scopes.missing((SCOPE,)):
        record = await store.read(FindRecord((SCHEDULE,), name))
    if record is None:
        message = f"This agent has no schedule {name[:80]!r}; to pause or resume one, it needs the scope {SCOPE}."
        raise refusal(status.NOT_FOUND, "workflow-not-found", message)
    return record
