"""Workflow functions: what they await is noted, and they go on where they were."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.state.store.conftest import first, second, shared_place
from tests.stateful import StatefulBench
from tests.workflow_functions import Travel, asked, begin, ended, eventually, output, run, send_signal

from bespeak import Context, Refusal, Run, StepError
from bespeak.state.store.commands.cases import DecideCase, ReadCase
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio

__all__ = ["first", "second", "shared_place"]


class Trip(msgspec.Struct):
    room: str
    price: int


@asynccontextmanager
async def killed(travel: Travel, place: str) -> AsyncIterator[StatefulBench]:
    """Serve, and end as a process that is killed: nothing is released, and only leases end."""
    async with travel.serving(open_store(place)) as bench:
        yield bench
        workflows = bench.bench.server.part("workflows")
        for task in workflows._driving.values():
            task.cancel()
        await asyncio.gather(*workflows._driving.values(), return_exceptions=True)
        workflows._journals.clear()


async def test_a_function_calls_steps_and_endpoints_and_its_result_is_kept() -> None:
    travel = Travel()

    async def fare(day: date) -> Trip:
        return Trip("none", day.day)

    @travel.app.workflow("trip")
    async def trip(run: Run, guest: str, arrival: date) -> Trip:
        """Book a trip."""
        room = await run.call("BOOK", "/room", guest=guest)
        found = await run.step(fare, arrival)
        assert isinstance(found, Trip)
        return Trip(room["reservation_id"], found.price)

    async with travel.serving() as bench:
        given = {"guest": "ann", "arrival": "2026-12-24"}
        reply = await run(bench, "trip", given)
        result = reply.json["result"]
        assert (reply.status, result["status"], result["output"]) == (200, "completed", {"room": "r-ann", "price": 24})
        found = await ended(bench, result["run_id"])
        assert asked(found) == [(1, "BOOK /room", "done"), (2, f"step {fare.__qualname__}", "done")]
        assert all(row.began is not None and row.ended is not None for row in found.rows if row.number)
        assert travel.keys == [f"{result['run_id']}-1"]
        report = (await bench.send("CHECK", "/", {"target": result["run_id"]})).json["result"]
        assert (report["status"], report["output"]) == ("completed", {"room": "r-ann", "price": 24})


async def test_a_name_that_is_not_known_is_refused_with_the_workflows_that_the_agent_may_run() -> None:
    travel = Travel()

    async def work(run: Run) -> None:
        """Do nothing."""

    travel.app.workflow("trip")(work)
    travel.app.workflow("close-day", scopes=["books:close"])(work)
    async with travel.serving() as bench:
        error = (await run(bench, "tripp", {})).error
        assert (error["code"], error["message"].endswith("Workflows: trip.")) == ("procedure-not-found", True)


async def test_input_is_checked_against_the_types_of_the_function() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run, guest: UUID) -> None:
        """Do nothing."""

    async with travel.serving() as bench:
        for given in ({}, {"guest": "ann"}, {"guest": 7}):
            reply = await run(bench, "trip", given)
            assert (reply.status, reply.json["error"]["code"]) == (422, "invalid-input"), given
        assert (await run(bench, "tour", {})).status == 404


class Interrupted:
    """A workflow of every kind of await, which waits at one of them until its process is killed."""

    def __init__(self, travel: Travel, at: str) -> None:
        self.at, self.travel = at, travel
        self.reached = asyncio.Event()
        self.killed = False
        self.calls: list[str] = []
        travel.app.workflow("trip")(self.trip())

    async def step(self, name: str) -> str:
        self.calls.append(name)
        if self.at == name and not self.killed:
            self.reached.set()
            await asyncio.Event().wait()
        return name

    def trip(self) -> Any:
        async def branch(run: Run, name: str) -> str:
            await run.call("BOOK", "/room", guest=name)
            return await run.step(self.step, name)

        async def trip(run: Run) -> dict[str, Any]:
            """Do one of everything."""
            price = await run.call("QUERY", "/fares")
            first = await run.step(self.step, "first")
            now, key, number = run.now(), run.uuid(), run.random()
            await run.sleep(0.6)
            pair = await run.together(branch(run, "left"), branch(run, "right"), run.step(self.step, "middle"))
            mapped = await run.map(self.step, ["m1", "m2"])
            try:
                await run.call("BOOK", "/room", guest="nobody")
            except StepError as error:
                refused = [error.code, error.status, error.error["details"]]
            signal = await run.wait_for("payment")
            last = await run.step(self.step, "last")
            return {
                "price": price["price"],
                "now": now.isoformat(),
                "key": str(key),
                "number": number,
                "all": [first, *pair, *mapped, signal, last],
                "refused": refused,
            }

        return trip


@pytest.mark.parametrize("at", ["first", "left", "right", "middle", "m2", "last"])
async def test_a_run_goes_on_where_its_process_was_killed(at: str, shared_place: str) -> None:
    travel = Travel()
    killing = Interrupted(travel, at)
    async with killed(travel, shared_place) as bench:
        run_id = await begin(bench, "trip")
        assert await send_signal(bench.bench.server.part("workflows"), run_id, "payment", {"paid": 7}) in (
            "running",
            "sleeping",
        )
        await eventually(killing.reached.is_set)
        before = await bench.bench.server.part("workflows").find(run_id)
    killing.killed = True
    async with travel.restarted(shared_place) as bench:
        found = await ended(bench, run_id)
        assert found.record.state == "completed", output(found)
        result = output(found)
        assert result["all"] == ["first", "left", "right", "middle", "m1", "m2", {"paid": 7}, "last"]
        assert result["price"] == 1, "what was read is not read again"
        assert result["refused"] == ["sold_out", 422, {"nights": 2}]
        for row in before.rows:
            if row.state == "done":
                assert row in found.rows, "what was noted stays as it was"
        assert sorted(travel.done) == ["book left", "book right"]
        repeated = [name for name in set(killing.calls) if killing.calls.count(name) > 1]
        assert set(repeated) <= {at, "left", "right", "middle", "m1"} | {at}
        assert at in repeated


async def test_code_that_asks_for_something_else_is_stopped_and_goes_on_when_it_fits_again(shared_place: str) -> None:
    changed = False

    def travels() -> Travel:
        travel = Travel()

        async def trip(run: Run) -> dict[str, str]:
            """Wait between two bookings."""
            await run.call(
                "BOOK", "/room", guest="bob" if changed else "ann", undo=("CANCEL", "/room/{reservation_id}")
            )
            await run.wait_for("payment")
            return {"it": "paid"}

        travel.app.workflow("trip")(trip)
        return travel

    async with travels().serving(open_store(shared_place)) as bench:
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
    changed = True
    travel = travels()
    async with travel.serving(open_store(shared_place)) as bench:
        await send_signal(bench.bench.server.part("workflows"), run_id, "payment", None)
        found = await ended(bench, run_id, "stopped")
        said = "the code asks for 'BOOK /room' as number 1 with another input than the journal has."
        assert output(found) == {"code": "code-differs", "message": said}
        report = (await bench.send("CHECK", "/", {"target": run_id})).json["result"]
        assert (report["status"], report["error"]["code"]) == ("stopped", "code-differs")
        assert travel.done == [], "nothing is undone"
    changed = False
    async with travels().restarted(shared_place) as bench:
        found = await ended(bench, run_id)
        assert (found.record.state, output(found)) == ("completed", {"it": "paid"})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("unlike", "as number 1, and the journal has"),
        ("less", "the code has ended, and the journal has"),
        ("now", "the code asks for 'now' as number 1, and the journal has"),
    ],
)
async def test_code_that_asks_for_less_or_something_unlike_is_stopped_with_both_names(
    changed: str, said: str, shared_place: str
) -> None:
    how = "first"

    def travels() -> Travel:
        travel = Travel()

        async def first_step() -> int:
            return 1

        async def other_step() -> int:
            return 2

        async def trip(run: Run) -> dict[str, str]:
            """Do a step."""
            if how == "now":
                with suppress(Exception):  # catching it does not help
                    run.now()
            elif how != "less":
                await run.step(first_step if how == "first" else other_step)
                await run.wait_for("payment")
            return {"it": "done"}

        travel.app.workflow("trip")(trip)
        return travel

    async with travels().serving(open_store(shared_place)) as bench:
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
    how = changed
    async with travels().serving(open_store(shared_place)) as bench:
        await send_signal(bench.bench.server.part("workflows"), run_id, "payment", None)
        found = await ended(bench, run_id, "stopped")
        assert said in output(found)["message"]
        assert "first_step" in output(found)["message"]


async def test_runs_go_on_with_the_version_with_which_they_began(shared_place: str) -> None:
    def travels(*versions: int) -> Travel:
        travel = Travel()

        async def old(run: Run) -> dict[str, str]:
            """Wait once."""
            await run.wait_for("payment")
            return {"it": "old"}

        async def new(run: Run) -> dict[str, str]:
            """Do not wait."""
            return {"it": "new"}

        declared = travel.app.workflow("trip")(old if 1 in versions else new)
        if 2 in versions:
            declared.version(2)(new)
        return travel

    async with travels(1).serving(open_store(shared_place)) as bench:
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
        await send_signal(bench.bench.server.part("workflows"), run_id, "payment", None)
        await ended(bench, run_id)
        waiting = await begin(bench, "trip")
        await ended(bench, waiting, "sleeping")
    async with travels(1, 2).serving(open_store(shared_place)) as bench:
        assert output(await ended(bench, await begin(bench, "trip"))) == {"it": "new"}
        await send_signal(bench.bench.server.part("workflows"), waiting, "payment", None)
        assert output(await ended(bench, waiting)) == {"it": "old"}


async def test_a_machine_without_the_version_of_a_run_leaves_it_to_others(shared_place: str) -> None:
    def travels(*names: str) -> Travel:
        travel = Travel()

        async def trip(run: Run) -> dict[str, str]:
            """Wait once."""
            await run.wait_for("payment")
            return {"it": "done"}

        for name in names:
            travel.app.workflow(name)(trip)
        return travel

    async with travels("trip").serving(open_store(shared_place)) as bench:
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
    async with travels("tour").serving(open_store(shared_place)) as bench:
        await send_signal(bench.bench.server.part("workflows"), run_id, "payment", None)
        found = await ended(bench, run_id, "running")
        async with asyncio.timeout(10):
            while found.record.due is None or found.record.due > time.time() + 11:
                found = await ended(bench, run_id, "running")
        assert [row.state for row in found.rows] == ["arrived", "waiting"], "it is put back as it was"
    async with travels("trip").restarted(shared_place) as bench:
        assert output(await ended(bench, run_id)) == {"it": "done"}


@pytest.mark.parametrize("how", ["sleep", "nothing", "event"])
async def test_awaiting_anything_else_stops_the_run_and_says_what_to_write(how: str) -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Wait in the wrong way."""
        await (asyncio.Event().wait() if how == "event" else asyncio.sleep(how == "sleep"))

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "trip"), "stopped")
        assert "write `await run.step(function)`" in output(found)["message"]


async def test_a_timeout_of_asyncio_fails_the_run_instead_of_breaking_it_off_later() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Bound a wait in the wrong way."""
        async with asyncio.timeout(0.01):
            await run.sleep(3600)

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "trip"))
        assert (found.record.state, output(found)["code"]) == ("failed", "RuntimeError")


async def test_a_call_whose_handler_starts_another_run_is_noted_with_it() -> None:
    travel = Travel()

    @travel.app.endpoint("ORDER", "/trips", impact="reversible")
    async def order(context: Context) -> dict[str, str]:
        """Order a trip.

        Outcome: A run is started.
        """
        return {"run": context.start("other")}

    @travel.app.workflow("other")
    async def other(run: Run) -> dict[str, str]:
        """End at once."""
        return {"it": "other"}

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, str]:
        """Start another run."""
        started: dict[str, str] = await run.call("ORDER", "/trips")
        return started

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "trip"))
        assert output(await ended(bench, output(found)["run"])) == {"it": "other"}


async def test_a_call_that_needs_a_confirmation_waits_for_it() -> None:
    travel = Travel()

    @travel.app.endpoint("ORDER", "/trips", impact="irreversible", confirm=True)
    async def order() -> dict[str, str]:
        """Order a trip.

        Outcome: It is ordered.
        """
        return {"it": "ordered"}

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, str]:
        """Order a trip."""
        found: dict[str, str] = await run.call("ORDER", "/trips")
        return found

    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        found = await ended(bench, run_id, "waiting")
        case_id = found.rows[0].waits_for
        decided = await bench.store.do(DecideCase(case_id, "accepted", "boss", "att-1", kinds=("confirmation",)))
        assert not isinstance(decided, Conflict)
        assert output(await ended(bench, run_id)) == {"it": "ordered"}


async def test_a_run_whose_code_is_gone_can_be_cancelled_and_is_undone(shared_place: str) -> None:
    travel, without = Travel(), Travel()

    async def trip(run: Run) -> None:
        """Book and wait."""
        await run.call("BOOK", "/room", guest="ann", undo=("CANCEL", "/room/{reservation_id}"))
        await run.wait_for("payment")

    travel.app.workflow("trip")(trip)
    without.app.workflow("tour")(trip)
    async with travel.serving(open_store(shared_place)) as bench:
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
    async with without.serving(open_store(shared_place)) as bench:
        assert (await bench.send("CANCEL", "/", {"target_id": run_id})).status == 202
        assert (await ended(bench, run_id)).record.state == "cancelled"
        assert without.done == ["cancel r-ann"]


async def test_a_failed_run_is_undone_the_last_call_first() -> None:
    travel = Travel()
    cancel = ("CANCEL", "/room/{reservation_id}")

    async def branch(run: Run, guest: str) -> None:
        await run.call("BOOK", "/room", guest=guest, undo=cancel)

    @travel.app.workflow("trip", errors={"no_way": "It does not work."})
    async def trip(run: Run, how: str) -> None:
        """Book rooms, and fail."""
        await run.call("BOOK", "/room", guest="ann", undo=cancel)
        await run.together(branch(run, "bob"), run.call("BOOK", "/room", guest="cid", undo=cancel))
        await run.call("BOOK", "/room", guest="dan", undo=cancel)
        if how == "refused":
            raise Refusal("no_way", "It does not work.", reason="weather")
        if how == "call":
            await run.call("BOOK", "/room", guest="nobody")
        raise ValueError("a mistake")

    expected = {
        "refused": {"code": "no_way", "message": "It does not work.", "reason": "weather"},
        "call": {"code": "sold_out", "message": "No room is free.", "details": {"nights": 2}},
        "raised": {"code": "ValueError", "message": "a mistake", "internal": True},
    }
    for how, error in expected.items():
        async with travel.serving() as bench:
            travel.done.clear()
            found = await ended(bench, await begin(bench, "trip", how=how))
            told = output(found)
            assert (found.record.state, {name: told[name] for name in error}) == ("failed", error)
            undone = [one for one in travel.done if one.startswith("cancel")]
            assert undone[0] == "cancel r-dan"
            assert set(undone[1:3]) == {"cancel r-bob", "cancel r-cid"}
            assert undone[3] == "cancel r-ann"
            assert {row.state for row in found.rows if row.undo} == {"undone"}


async def test_what_exceptions_of_the_service_say_is_for_the_operator_only() -> None:
    travel = Travel()

    async def fails() -> None:
        raise ValueError("a secret")

    @travel.app.workflow("trip")
    async def trip(run: Run, how: str) -> None:
        """Fail in a step or in the function."""
        if how == "exits":
            raise SystemExit("a secret")
        await run.step(fails)

    async with travel.serving() as bench:
        for how in ("step", "exits"):
            reply = await run(bench, "trip", {"how": how})
            report = await bench.send("CHECK", "/", {"target": reply.json["result"]["run_id"]})
            for answer in (reply, report):
                assert answer.json["result"]["error"]["code"] == "failed"
                assert "secret" not in str(answer.json)


async def test_an_undo_that_fails_is_told_to_somebody_and_the_others_are_undone() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Book rooms, of which one cannot be cancelled, and fail."""
        for guest in ("ann", "late"):
            await run.call("BOOK", "/room", guest=guest, undo=("CANCEL", "/room/{reservation_id}"))
        raise ValueError("a mistake")

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "trip"))
        assert [row.state for row in found.rows if row.number] == ["undone", "not-undone"]
        case_id = msgspec.json.decode(found.rows[-1].output)["escalation_id"]
        case = await bench.store.read(ReadCase(case_id))
        assert (case.state, msgspec.json.decode(case.subject)["error"]["code"]) == ("pending", "too_late")


async def test_undoing_goes_on_after_a_crash_and_the_function_does_not_run_again(shared_place: str) -> None:
    travel = Travel()
    runs = 0

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Book two rooms, and fail."""
        nonlocal runs
        runs += 1
        for guest in ("ann", "bob"):
            await run.call("BOOK", "/room", guest=guest, undo=("CANCEL", "/room/{reservation_id}"))
        raise ValueError("a mistake")

    async with killed(travel, shared_place) as bench:
        travel.cancelling = asyncio.Event()
        run_id = await begin(bench, "trip")
        await eventually(lambda: travel.cancelled == 1)
    travel.cancelling = None
    async with travel.restarted(shared_place) as bench:
        found = await ended(bench, run_id)
        assert (found.record.state, output(found)["message"], runs) == ("failed", "a mistake", 1)
        assert travel.done[-2:] == ["cancel r-bob", "cancel r-ann"]


async def test_a_time_limit_ends_a_run_that_sleeps_and_undoes_it() -> None:
    travel = Travel()

    @travel.app.workflow("trip", timeout=0.7)
    async def trip(run: Run) -> None:
        """Sleep for too long."""
        await run.call("BOOK", "/room", guest="ann", undo=("CANCEL", "/room/{reservation_id}"))
        await run.sleep(timedelta(days=3))

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "trip"))
        assert (found.record.state, output(found)["code"]) == ("failed", "timeout")
        assert travel.done == ["book ann", "cancel r-ann"]


async def test_time_is_not_short_for_undoing_what_was_done() -> None:
    travel = Travel()

    @travel.app.workflow("trip", timeout=0.6)
    async def trip(run: Run) -> None:
        """Sleep for too long."""
        await run.call("BOOK", "/room", guest="ann", undo=("CANCEL", "/room/{reservation_id}"))
        await run.sleep(timedelta(days=3))

    async with travel.serving() as bench:
        travel.cancelling = asyncio.Event()
        run_id = await begin(bench, "trip")
        await eventually(lambda: travel.cancelled == 1)
        asyncio.get_running_loop().call_later(0.05, travel.cancelling.set)  # long after the deadline
        found = await ended(bench, run_id)
        assert (found.record.state, travel.done) == ("failed", ["book ann", "cancel r-ann"])


async def test_a_call_and_a_step_that_ran_when_the_time_was_over_have_an_unknown_outcome() -> None:
    travel = Travel()
    travel.held = asyncio.Event()

    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    @travel.app.workflow("trip", timeout=0.4)
    async def trip(run: Run) -> None:
        """Wait for too long."""
        await run.together(run.call("BOOK", "/room", guest="ann"), run.step(wait_for_ever))

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "trip"))
        assert (found.record.state, output(found)["code"]) == ("failed", "timeout")
        told = [(row.state, msgspec.json.decode(row.output)["code"]) for row in found.rows if row.number > 0]
        assert told == [("failed", "interrupted")] * 2


async def test_a_run_that_sleeps_is_paused_resumed_and_cancelled() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, str]:
        """Wait for a payment."""
        await run.call("BOOK", "/room", guest="ann", undo=("CANCEL", "/room/{reservation_id}"))
        await run.wait_for("payment", timeout=timedelta(days=2))
        return {"it": "paid"}

    async with travel.serving() as bench:
        first, second = await begin(bench, "trip"), await begin(bench, "trip")
        await ended(bench, first, "sleeping")
        await ended(bench, second, "sleeping")
        report = (await bench.send("CHECK", "/", {"target": first})).json["result"]
        assert (report["status"], "until" in report["steps"][1]) == ("sleeping", True)
        assert (await bench.send("PAUSE", "/", {"workflow_id": first})).status == 200
        assert await send_signal(bench.bench.server.part("workflows"), first, "payment", 1) == "paused"
        assert (await bench.send("RESUME", "/", {"workflow_id": first})).status == 200
        assert output(await ended(bench, first)) == {"it": "paid"}
        reply = await bench.send("CANCEL", "/", {"target_id": second})
        assert reply.status == 202, reply.json
        assert (await ended(bench, second)).record.state == "cancelled"
        assert travel.done == ["book ann", "book ann", "cancel r-ann"]


async def test_a_function_that_returns_nothing_is_completed() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Book."""
        await run.call("BOOK", "/room", guest="ann")

    async with travel.serving() as bench:
        result = (await run(bench, "trip", {})).json["result"]
        assert (result["status"], result["output"]) == ("completed", {})


@pytest.mark.parametrize("last", ["call", "step", "together", "failure"])
async def test_a_run_that_is_cancelled_during_its_last_step_is_undone(last: str) -> None:
    travel = Travel()
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        begun.set()
        await goes_on.wait()
        return "slow"

    @travel.app.endpoint("AWAIT", "/porter", impact="reversible")
    async def call_porter() -> dict[str, str]:
        """Wait for the porter.

        Outcome: The porter is there.
        """
        return {"it": await wait()}

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Book, and wait."""
        await run.call("BOOK", "/room", guest="ann", undo=("CANCEL", "/room/{reservation_id}"))
        if last == "call":
            await run.call("AWAIT", "/porter", undo=("CANCEL", "/room/{reservation_id}", {"reservation_id": "porter"}))
        elif last == "step":
            await run.step(wait, undo=("CANCEL", "/room/{reservation_id}", {"reservation_id": "porter"}))
        else:
            await run.together(run.step(wait), run.call("BOOK", "/room", guest="bob"))
        if last == "failure":
            raise ValueError("the end is wrong")

    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        await begun.wait()
        assert (await bench.send("CANCEL", "/", {"target_id": run_id})).status == 202
        goes_on.set()
        found = await ended(bench, run_id)
        assert found.record.state == "cancelled"
        undone = [one for one in travel.done if one.startswith("cancel")]
        assert undone == (["cancel r-ann"] if last in ("together", "failure") else ["cancel porter", "cancel r-ann"])


async def test_a_run_that_is_cancelled_while_a_step_runs_ends_after_it_and_is_undone() -> None:
    travel = Travel()
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        begun.set()
        await goes_on.wait()
        return "slow"

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Do something slow."""
        await run.call("BOOK", "/room", guest="ann", undo=("CANCEL", "/room/{reservation_id}"))
        await run.step(slow)
        await run.call("BOOK", "/room", guest="bob")

    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        await begun.wait()
        assert (await bench.send("CANCEL", "/", {"target_id": run_id})).status == 202
        journals = bench.bench.server.part("workflows")._journals
        await eventually(lambda: journals[run_id].state == "cancelling")
        goes_on.set()
        assert (await ended(bench, run_id)).record.state == "cancelled"
        assert travel.done == ["book ann", "cancel r-ann"]
