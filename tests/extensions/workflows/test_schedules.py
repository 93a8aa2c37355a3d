"""Schedules: which times a text means, one run for each over all machines, missed times, pauses and changed code."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stateful import StatefulBench, keeping
from tests.workflow_functions import Travel, ended, output

from bespeak import Context, ContractError, Run, StepError
from bespeak.contract.participant import WorkflowOptions
from bespeak.extensions.workflows.schedules import (
    ACTIVE,
    MOST_MISSED,
    SCHEDULE,
    Schedule,
    Schedules,
    Timing,
    find_fault,
    pause_change,
    read_schedule,
    resume_change,
)
from bespeak.extensions.workflows.spec import decode
from bespeak.runtime.handling import to_json
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, FindRecord, ListRecords, Record
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

BERLIN = ZoneInfo("Europe/Berlin")
SERVER = "rooms.example"
NIGHT = "1 day at 02:00 Europe/Berlin"


def at(*parts: int, fold: int = 0) -> float:
    """Return a time in Berlin, in seconds since 1970."""
    return datetime(*parts, tzinfo=BERLIN, fold=fold).timestamp()  # type: ignore[arg-type]  # year, month, day and so on


def following(every: str, moment: float, count: int = 3) -> list[str]:
    """Return the times after a moment, in Berlin."""
    timing, found = Timing(every), list[str]()
    for _ in range(count):
        after = timing.after(moment)
        assert after is not None
        moment = after
        found.append(datetime.fromtimestamp(moment, BERLIN).strftime("%m-%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        ("1 day at 02:00 Europe/Berlin", ["06-03 02:00+0200", "06-04 02:00+0200"]),
        ("1 day at 2:00", ["06-03 04:00+0200", "06-04 04:00+0200"]),
        ("2 days at 02:00 Europe/Berlin", ["06-04 02:00+0200", "06-06 02:00+0200"]),
        ("monday at 08:30 Europe/Paris", ["06-09 08:30+0200", "06-16 08:30+0200"]),
        ("mondays, thursdays at 08:30 Europe/Paris", ["06-05 08:30+0200", "06-09 08:30+0200"]),
        ("weekdays at 23:00 Europe/Berlin", ["06-02 23:00+0200", "06-03 23:00+0200"]),
        ("0 2 * * 1-5 Europe/Berlin", ["06-03 02:00+0200", "06-04 02:00+0200"]),
        ("*/15 * * * *", ["06-02 12:15+0200", "06-02 12:30+0200"]),
        ("15 minutes", ["06-02 12:15+0200", "06-02 12:30+0200"]),
        ("90 minutes", ["06-02 12:30+0200", "06-02 14:00+0200"]),
        ("1 day", ["06-03 02:00+0200", "06-04 02:00+0200"]),
    ],
)
def test_text_means_these_times(every: str, expected: list[str]) -> None:
    assert following(every, at(2025, 6, 2, 12), 2) == expected


@pytest.mark.parametrize(
    ("every", "fault"),
    [
        ("", "is not a valid schedule; write"),
        ("sometimes", "is not a valid schedule"),
        ("0 seconds", "must be 1 second to 366 days"),
        ("999999 days", "must be 1 second to 366 days"),
        ("moonday at 08:30", "'moonday' is not a day; write monday"),
        ("1 day at 25:00", "is not a valid schedule (Bad hour)"),
        ("61 * * * *", "is not a valid schedule (Bad minute)"),
        ("0 2 * * * Europe/Atlantis", "the time zone 'Europe/Atlantis'"),
        ("0 2 * * * ../../etc/passwd", "the time zone"),
        ("0 0 30 2 *", "is not a valid schedule (Bad day-of-month)"),
        ("0 days at 02:00", "never comes"),
    ],
)
def test_text_that_is_not_a_schedule_is_refused_with_the_forms(every: str, fault: str) -> None:
    with pytest.raises(ValueError) as caught:
        Timing(every)
    assert fault in str(caught.value)
    assert find_fault(WorkflowOptions(timeout=60, every=every), lambda context: None) == str(caught.value)


def test_unknown_way_with_missed_times_and_needed_input_are_refused() -> None:
    never = WorkflowOptions(timeout=60, every=NIGHT, missed="never")
    assert find_fault(never, lambda context: None) == "missed must be skip, once, all; got 'never'"
    fault = find_fault(WorkflowOptions(timeout=60, every=NIGHT), lambda context, day: None)
    assert fault == "a schedule gives it 'planned' and no other input, so that 'day' needs a default"


def test_time_that_does_not_exist_is_the_end_of_the_gap_and_a_double_one_comes_once() -> None:
    gap = ["03-29 02:30+0100", "03-30 03:00+0200", "03-31 02:30+0200"]
    assert following("1 day at 02:30 Europe/Berlin", at(2025, 3, 28, 12)) == gap
    twice = ["10-26 02:30+0200", "10-27 02:30+0100", "10-28 02:30+0100"]
    assert following("1 day at 02:30 Europe/Berlin", at(2025, 10, 25, 12)) == twice
    within = following("1 day at 02:30 Europe/Berlin", at(2025, 10, 26, 2, 10, fold=1))
    assert within[0] == "10-27 02:30+0100", "the first 02:30 has passed"


@settings(max_examples=60)
@given(
    every=st.sampled_from(
        ["7 minutes", "1 day at 02:30 Europe/Berlin", "*/20 1-3 * * *", "sunday at 02:00 Europe/Berlin"]
    ),
    moment=st.floats(at(2025, 1, 1), at(2026, 1, 1)),
    count=st.integers(1, 5),
)
def test_last_times_are_those_that_follow_each_other(every: str, moment: float, count: int) -> None:
    timing, times = Timing(every), [moment]
    for _ in range(count):
        after = timing.after(times[-1])
        assert after is not None
        times.append(after)
    assert all(one < other for one, other in pairwise(times))
    assert timing.last(times[1], times[-1], 10) == times[1:]
    assert timing.last(times[1], times[-1] + 0.5, 1) == times[-1:]


class Machine:
    """One process with schedules, whose clock the test sets."""

    def __init__(self, store: Store, *declared: Schedule, now: float) -> None:
        self.store = store
        self.now = now
        self.schedules = Schedules(SERVER, store, declared, clock=lambda: self.now)

    async def claim(self) -> Sequence[Record]:
        """Claim what is due by the clock of the store, which is later than any time of these tests."""
        done = await self.store.do(ClaimDue(SCHEDULE, 10, 30.0))
        assert not isinstance(done, Conflict)
        claimed: Sequence[Record] = done[0]
        return claimed

    async def turn(self, now: float) -> None:
        self.now = now
        await self.schedules.take(await self.claim())

    async def runs(self) -> list[Record]:
        found: list[Record] = await self.store.read(ListRecords("workflow"))
        return found

    async def read(self, name: str = "close-day") -> tuple[str, Schedule] | None:
        record: Record | None = await self.store.read(FindRecord((SCHEDULE,), f"schedule:{name}"))
        return None if record is None else (record.state, read_schedule(record.data))


@asynccontextmanager
async def machine(*declared: Schedule, now: float = at(2025, 6, 2, 12)) -> AsyncIterator[Machine]:
    store = open_store("memory", role="sole")
    await store.start()
    made = Machine(store, *declared, now=now)
    await made.schedules.start()
    yield made
    await store.close()


async def test_due_schedule_begins_a_run_of_the_service_and_sets_its_next_time() -> None:
    async with machine(Schedule("close-day", NIGHT, scopes=("ledger:close",))) as one:
        assert await one.runs() == []
        await one.turn(at(2025, 6, 3, 2))
        (run,) = await one.runs()
        spec = decode(run.data)
        found = await one.read()
    assert (run.owner, run.state, spec.name, spec.given) == (SERVER, "running", "close-day", {})
    assert (spec.authority.verified, spec.authority.scopes) == ("service", ("ledger:close",))
    assert found is not None
    assert (found[0], found[1].planned, found[1].last) == (ACTIVE, at(2025, 6, 4, 2), run.record_id)


@pytest.mark.parametrize(("missed", "expected"), [("skip", 0), ("once", 1), ("all", 5)])
async def test_missed_times_are_made_up_for_as_declared(missed: str, expected: int) -> None:
    async with machine(Schedule("close-day", NIGHT, missed)) as one:
        await one.turn(at(2025, 6, 7, 12))
        assert len(await one.runs()) == expected
        found = await one.read()
        assert found is not None
        assert found[1].planned == at(2025, 6, 8, 2)
        await one.turn(at(2025, 6, 8, 2, 0, 30))
        assert len(await one.runs()) == expected + 1, "half a minute is not late"


async def test_only_so_many_missed_times_are_made_up_for() -> None:
    async with machine(Schedule("close-day", "1 minute", "all")) as one:
        await one.turn(at(2025, 6, 7, 12))
        assert len(await one.runs()) == MOST_MISSED


async def test_a_time_begins_one_run_however_many_machines_take_it() -> None:
    night = Schedule("close-day", NIGHT)
    async with machine(night) as one:
        other = Machine(one.store, night, now=one.now)
        await other.schedules.start()
        stalled = await one.claim()
        one.now = at(2025, 6, 3, 2)
        await other.turn(one.now)
        assert await one.runs() == [], "the first one holds the claim"
        await one.schedules.take(stalled)
        await one.schedules.take(stalled)
        assert len(await one.runs()) == 1


async def test_a_claim_that_was_lost_begins_nothing() -> None:
    async with machine(Schedule("close-day", NIGHT)) as one:
        lost = await one.claim()
        record = lost[0]
        await one.store.do(pause_change(record), resume_change(record, at(2025, 6, 2, 12)))
        await one.turn(at(2025, 6, 3, 2))
        begun = await one.runs()
        await one.schedules.take(lost)
        assert [run.record_id for run in await one.runs()] == [run.record_id for run in begun]


async def test_schedule_that_is_declared_anew_does_not_begin_a_run_twice() -> None:
    night = Schedule("close-day", NIGHT)
    async with machine(night) as one:
        await one.turn(at(2025, 6, 3, 2))
        await Machine(one.store, now=one.now).schedules.start()
        assert await one.read() is None, "a schedule that is not in the code any more ends"
        one.now = at(2025, 6, 2, 12)  # a clock that was set back
        await one.schedules.start()
        await one.turn(at(2025, 6, 3, 2))
        assert len(await one.runs()) == 1
        found = await one.read()
        assert found is not None
        assert found[1].planned == at(2025, 6, 4, 2)


async def test_changed_time_counts_from_the_start_on_and_a_pause_stays() -> None:
    async with machine(Schedule("close-day", NIGHT), Schedule("tidy", NIGHT)) as one:
        record: Record | None = await one.store.read(FindRecord((SCHEDULE,), "schedule:tidy"))
        assert record is not None
        await one.store.do(pause_change(record))
        noon = "1 day at 12:30 Europe/Berlin"
        await Machine(one.store, Schedule("close-day", noon), Schedule("tidy", noon), now=one.now).schedules.start()
        found, paused = await one.read(), await one.read("tidy")
        claimed = await one.claim()
    assert found is not None
    assert paused is not None
    assert (found[0], found[1].planned) == (ACTIVE, at(2025, 6, 2, 12, 30))
    assert (paused[0], paused[1].every) == ("paused", noon)
    assert [record.record_id for record in claimed] == ["schedule:close-day"]


async def test_pause_until_a_time_outlives_a_change_of_the_code() -> None:
    async with machine(Schedule("close-day", NIGHT)) as one:
        record: Record | None = await one.store.read(FindRecord((SCHEDULE,), "schedule:close-day"))
        assert record is not None
        await one.store.do(pause_change(record, due=at(2025, 6, 9, 12)))
        await Machine(one.store, Schedule("close-day", "1 hour"), now=one.now).schedules.start()
        await one.turn(at(2025, 6, 9, 12))
        found = await one.read()
    assert found is not None
    assert (found[0], found[1].every, found[1].planned) == (ACTIVE, "1 hour", at(2025, 6, 9, 13))


async def test_machine_with_older_code_does_not_undo_a_change_of_the_schedule() -> None:
    async with machine(Schedule("close-day", NIGHT)) as one:
        claimed = await one.claim()
        await Machine(one.store, Schedule("close-day", "1 hour"), now=one.now).schedules.start()
        await one.schedules.take(claimed)
        found = await one.read()
        assert found is not None
        assert (found[1].every, await one.runs()) == ("1 hour", [])


async def test_schedule_that_cannot_be_read_here_does_not_keep_others() -> None:
    async with machine(Schedule("close-day", NIGHT), Schedule("tidy", NIGHT)) as one:
        first, second = await one.claim()
        foreign = msgspec.structs.replace(first, data=first.data.replace("Berlin", "Atlantis"))
        await one.schedules.take([foreign, second])
        assert [decode(run.data).name for run in await one.runs()] == [read_schedule(second.data).name]


async def test_times_of_a_pause_are_not_made_up_for() -> None:
    async with machine(Schedule("close-day", NIGHT, "all")) as one:
        record: Record | None = await one.store.read(FindRecord((SCHEDULE,), "schedule:close-day"))
        assert record is not None
        await one.store.do(pause_change(record, due=at(2025, 6, 9, 12)))
        await one.turn(at(2025, 6, 9, 12))
        assert await one.runs() == []
        found = await one.read()
        assert found is not None
        assert (found[0], found[1].planned) == (ACTIVE, at(2025, 6, 10, 2))


async def test_schedules_of_another_service_in_the_store_stay() -> None:
    async with machine(Schedule("close-day", NIGHT)) as one:
        await Schedules("other.example", one.store, (), clock=lambda: one.now).start()
        assert await one.read() is not None


@pytest.mark.process
async def test_two_machines_on_one_database_begin_each_time_once(postgres_dsn: str) -> None:
    night = Schedule("close-day", NIGHT, "all")
    stores = [open_store(postgres_dsn), open_store(postgres_dsn)]
    await asyncio.gather(*(store.start() for store in stores))
    machines = [Machine(store, night, now=at(2025, 6, 2, 12)) for store in stores]
    await asyncio.gather(*(one.schedules.start() for one in machines))
    for day in (3, 5, 6):
        claimed = await asyncio.gather(*(one.claim() for one in machines * 3))
        for one in machines:
            one.now = at(2025, 6, day, 2)
        await asyncio.gather(*(one.schedules.take(records) for one, records in zip(machines * 3, claimed, strict=True)))
    spans = [decode(run.data).name for run in await machines[0].runs()]
    found = await machines[1].read()
    await asyncio.gather(*(store.close() for store in stores))
    assert spans == ["close-day"] * 4
    assert found is not None
    assert found[1].planned == at(2025, 6, 7, 2)


METHODS = ("CHAIN", "PAUSE", "RESUME")
KEEPER = {"authority_scope": "schedules:manage"}


@pytest.mark.requirement("METHODS-8.6-7")
async def test_agent_with_the_scope_pauses_and_resumes_a_schedule() -> None:
    async with keeping(methods=METHODS) as bench:
        await Schedules(SERVER, bench.store, [Schedule("close-day", NIGHT)]).start()
        asked = {"workflow_id": "schedule:close-day"}
        refused = [await bench.send(method, "/", asked) for method in ("PAUSE", "RESUME")]
        unknown = await bench.send("PAUSE", "/", {"workflow_id": "schedule:tidy"}, **KEEPER)
        paused = await bench.send("PAUSE", "/", asked, **KEEPER)
        again = await bench.send("PAUSE", "/", asked, **KEEPER)
        wrong = await bench.send("RESUME", "/", {**asked, "resumption_nonce": "x"}, **KEEPER)
        nonce = paused.json["result"]["resumption_nonce"]
        resumed = await bench.send("RESUME", "/", {**asked, "resumption_nonce": nonce}, **KEEPER)
        twice = await bench.send("RESUME", "/", asked, **KEEPER)
    assert [(reply.status, reply.error["code"]) for reply in (*refused, unknown)] == [(404, "workflow-not-found")] * 3
    assert (paused.status, paused.json["result"]["status"]) == (200, "paused")
    assert [reply.error["code"] for reply in (again, wrong, twice)] == [
        "already-paused",
        "resumption-nonce-wrong",
        "workflow-not-paused",
    ]
    assert resumed.json["result"] == {"workflow_id": "schedule:close-day", "status": "active"}


async def make_due(bench: StatefulBench, name: str) -> str:
    """Let the last planned time of a schedule be a minute ago; return the id of the run that begins."""
    record: Record | None = await bench.store.read(FindRecord((SCHEDULE,), f"schedule:{name}"))
    assert record is not None
    declared = read_schedule(record.data)
    (planned,) = Timing(declared.every).last(0.0, time.time(), 1)
    data = to_json(msgspec.structs.replace(declared, planned=planned))
    await bench.store.do(ChangeRecord(record.record_id, (SCHEDULE,), (ACTIVE,), ACTIVE, data=data, due=planned))
    async with asyncio.timeout(20):
        while True:
            state = read_schedule((await bench.store.read(FindRecord((SCHEDULE,), record.record_id))).data)
            if state.last is not None:
                return state.last
            await asyncio.sleep(0.005)


async def test_declared_workflow_runs_by_itself_with_the_scopes_that_it_declares() -> None:
    travel = Travel()
    travel.app.endpoint("CLOSE", "/ledger", impact="reversible", scopes=["ledger:close"])(closing)
    travel.app.endpoint("CLOSE", "/safe", impact="reversible", scopes=["safe:close"])(closing)

    @travel.app.workflow("close-day", every=NIGHT, scopes=["ledger:close"])
    async def close_day(run: Run, planned: datetime, day: str = "today") -> dict[str, Any]:
        """Close the day."""
        closed = await run.call("CLOSE", "/ledger")
        try:
            await run.call("CLOSE", "/safe")
        except StepError as error:
            return {"by": closed["by"], "refused": error.code, "day": day, "planned": planned.timestamp()}
        return {}

    async with travel.serving() as bench:
        found = await ended(bench, await make_due(bench, "close-day"))
        checked = await bench.send("CHECK", "/", {"target": found.record.record_id})
    server_id = found.record.owner
    said = output(found)
    (latest,) = Timing(NIGHT).last(0.0, time.time(), 1)
    assert said == {"by": [server_id, "service"], "refused": "scope-violation", "day": "today", "planned": latest}
    assert found.spec.workflow == "close-day"
    assert checked.status == 404, "it is the service's own, not an agent's"


def closing(context: Context) -> dict[str, Any]:
    """Close the books.

    Outcome: The books are closed.
    """
    return {"by": [context.agent_id, context.principal.verified]}


async def test_schedule_that_is_not_valid_is_refused_where_it_is_declared() -> None:
    async def tidy(run: Run) -> None:
        """Tidy up."""

    async def tidy_on(run: Run, day: str) -> None:
        """Tidy up on a day."""

    wrong: list[tuple[Any, str, str, str]] = [
        (tidy, "sometimes", "once", "'sometimes' is not a valid schedule"),
        (tidy, NIGHT, "maybe", "missed must be skip, once, all; got 'maybe'"),
        (tidy_on, NIGHT, "once", "a schedule gives it 'planned' and no other input, so that 'day' needs a default"),
    ]
    for function, every, missed, fault in wrong:
        with pytest.raises(ContractError, match=re.escape(fault)):
            Travel().app.workflow("tidy", every=every, missed=missed)(function)


async def test_restart_with_other_code_changes_and_ends_schedules(tmp_path: Path) -> None:
    async def tidy(run: Run) -> None:
        """Tidy up."""

    seen = []
    for every in (NIGHT, "monday at 08:30 Europe/Paris", None):
        travel = Travel()
        travel.app.workflow("tidy", every=every)(tidy)
        store = open_store(str(tmp_path / "store.db"), role="sole")
        async with travel.serving(store):
            seen.append([read_schedule(one.data).every for one in await store.read(ListRecords(SCHEDULE))])
    assert seen == [[NIGHT], ["monday at 08:30 Europe/Paris"], []]
