"""What workflow functions wait for: times, signals, people, attempts; and the limits of it."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.agent.discovery.web import always, serving
from tests.extensions.messages.parts import letter_of
from tests.service import AGENT, Reply
from tests.state.store.conftest import first, second, shared_place
from tests.stateful import StatefulBench
from tests.workflow_functions import Travel, asked, begin, ended, eventually, output, run, send_signal

from bespeak import Context, Refusal, Run, StepError, WaitTimeoutError
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.workflows import durable, journal, store, turn
from bespeak.extensions.workflows.functions import MOST_MAPPED
from bespeak.extensions.workflows.spec import Spec, encode
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.store.commands.agents import PutAgent, SetAgentStatus
from bespeak.state.store.commands.cases import DecideCase
from bespeak.state.store.commands.records import ChangeRecord, ClaimDue, PutRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio

__all__ = ["first", "second", "shared_place"]
OTHER = "c" * 64


def waiting(travel: Travel, **options: Any) -> None:
    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Wait for two payments."""
        try:
            return {"paid": [await run.wait_for("payment", **options), await run.wait_for("payment", **options)]}
        except WaitTimeoutError as error:
            return {"late": error.code}


async def test_signals_before_and_while_a_run_waits_are_taken_in_their_order(shared_place: str) -> None:
    travel = Travel()
    waiting(travel)
    async with travel.serving(open_store(shared_place)) as bench:
        workflows = bench.bench.server.part("workflows")
        run_id = await begin(bench, "trip")
        assert await send_signal(workflows, run_id, "gift", "not waited for") in ("running", "sleeping")
        await ended(bench, run_id, "sleeping")
        for number in (1, 2):
            assert await send_signal(workflows, run_id, "payment", number) != "completed"
        found = await ended(bench, run_id)
        assert output(found) == {"paid": [1, 2]}
        assert [(row.asked, row.state) for row in found.rows if row.number < 0] == [
            ("payment", "received"),
            ("payment", "received"),
            ("gift", "arrived"),
        ]
        refused = await send_signal(workflows, run_id, "payment", 3)
        assert (refused.reason, refused.details) == ("ended", {"state": "completed"})


async def test_many_signals_at_once_wake_every_run_on_two_machines(shared_place: str) -> None:
    travel, beside = Travel(), Travel()
    waiting(travel)
    waiting(beside)
    async with travel.serving(open_store(shared_place)) as one, beside.serving(open_store(shared_place)) as other:
        runs = [await begin(one, "trip") for _ in range(30)]
        signals = [
            send_signal(bench.bench.server.part("workflows"), run_id, "payment", index)
            for run_id in runs
            for index, bench in enumerate((one, other))
        ]
        await asyncio.gather(*signals)
        for run_id in runs:
            assert sorted(output(await ended(one, run_id))["paid"]) == [0, 1]


async def test_a_wait_ends_after_its_time() -> None:
    travel = Travel()
    waiting(travel, timeout=timedelta(seconds=0.01))
    async with travel.serving() as bench:
        assert output(await ended(bench, await begin(bench, "trip"))) == {"late": "wait-timeout"}


async def notify(bench: StatefulBench, run_id: str, value: Any = 1, **more: Any) -> Reply:
    return await bench.send("NOTIFY", "/workflows", {"workflow_id": run_id, "name": "payment", "value": value}, **more)


async def test_agents_signal_their_own_runs_and_those_of_others_with_a_scope() -> None:
    travel = Travel()
    waiting(travel)
    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        assert (await notify(bench, run_id, agent=OTHER)).status == 404
        assert (await notify(bench, "run-" + "0" * 32)).status == 404
        assert (await notify(bench, run_id, 1)).status == 200
        reply = await notify(bench, run_id, 2, agent=OTHER, authority_scope="activation:signal")
        assert (reply.status, reply.json["result"]["name"]) == (200, "payment")
        assert output(await ended(bench, run_id)) == {"paid": [1, 2]}
        ended_one = await notify(bench, run_id)
        assert (ended_one.status, ended_one.json["error"]["code"]) == (409, "workflow-ended")


async def test_signals_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_SIGNALS", 3)
    travel = Travel()
    waiting(travel)
    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        assert (await notify(bench, run_id, "x" * 70_000)).status == 413
        for _ in range(3):
            given = {"workflow_id": run_id, "name": "gift"}
            assert (await bench.send("NOTIFY", "/workflows", given)).status == 200
        reply = await notify(bench, run_id)
        assert (reply.status, reply.json["error"]["code"]) == (429, "too-many-signals")


async def test_a_handler_starts_and_signals_runs_in_its_own_transaction() -> None:
    travel = Travel()
    waiting(travel)

    @travel.app.endpoint("ORDER", "/trips", impact="reversible", errors={"no": "No."})
    async def order(context: Context, fails: bool = False) -> dict[str, str]:
        """Order a trip.

        Outcome: A run is started.
        """
        run_id = context.start("trip")
        context.signal(run_id, "payment", "deposit")
        if fails:
            raise Refusal("no", "No.")
        return {"run": run_id}

    @travel.app.endpoint("CONFIRM", "/payments", impact="reversible")
    async def pay(context: Context, run: str) -> dict[str, str]:
        """Tell a run that it is paid.

        Outcome: The run goes on.
        """
        context.signal(run, "payment", {"by": context.agent_id})
        return {}

    async with travel.serving() as bench:
        assert (await bench.send("ORDER", "/trips", {"fails": True})).status == 422
        reply = await bench.send("ORDER", "/trips", {})
        assert reply.status == 200, reply.json
        run_id = reply.json["run"]
        await ended(bench, run_id, "sleeping")
        paid = await bench.send("CONFIRM", "/payments", {"run": run_id}, agent=OTHER)
        assert paid.status == 200, paid.json
        assert output(await ended(bench, run_id)) == {"paid": ["deposit", {"by": OTHER}]}
        assert (await bench.send("CONFIRM", "/payments", {"run": "run-" + "0" * 32})).status == 500
        listed = (await bench.send("QUERY", "/workflows")).json["result"]["workflows"]
        assert [one["workflow_id"] for one in listed] == [run_id], "a call that fails starts nothing"


def asking(travel: Travel, **options: Any) -> None:
    @travel.app.workflow("trip")
    async def trip(run: Run, price: int) -> dict[str, Any]:
        """Ask whether it may cost so much."""
        try:
            return {"yes": await run.ask("operator", f"May it cost {price}?", **options)}
        except StepError as error:
            return {"code": error.code}


async def decide(bench: StatefulBench, case_id: str, status: str) -> Any:
    return await bench.store.do(DecideCase(case_id, status, "operator:desk", f"att-{case_id}", kinds=("escalation",)))


@pytest.mark.parametrize(("decision", "yes"), [("accepted", True), ("rejected", False)])
async def test_a_person_decides_and_only_the_run_that_asked_is_woken(
    decision: str, yes: bool, shared_place: str
) -> None:
    travel = Travel()
    asking(travel, within=timedelta(hours=8))
    async with travel.serving(open_store(shared_place)) as bench:
        run_id, other = await begin(bench, "trip", price=70), await begin(bench, "trip", price=80)
        before = await ended(bench, other, "waiting")
        await ended(bench, run_id, "waiting")
        assert not isinstance(await decide(bench, f"esc-{run_id}-1", decision), Conflict)
        assert output(await ended(bench, run_id)) == {"yes": yes}
        assert (await ended(bench, other, "waiting")).record.fence == before.record.fence


async def test_a_decision_that_comes_while_the_run_parks_is_not_lost(shared_place: str) -> None:
    travel = Travel()
    asking(travel)
    async with travel.serving(open_store(shared_place)) as bench:
        runs = [await begin(bench, "trip", price=price) for price in range(20)]
        for run_id in runs:
            async with asyncio.timeout(10):
                while isinstance(await decide(bench, f"esc-{run_id}-1", "accepted"), Conflict):
                    await asyncio.sleep(0)
        for run_id in runs:
            assert output(await ended(bench, run_id)) == {"yes": True}


async def test_a_question_without_an_answer_in_time_raises() -> None:
    travel = Travel()
    asking(travel, within=1.0)
    async with travel.serving() as bench:
        assert output(await ended(bench, await begin(bench, "trip", price=7))) == {"code": "wait-timeout"}


async def test_steps_are_tried_again_with_their_key_and_exceptions_are_raised_in_noted_form() -> None:
    travel = Travel()
    keys: list[str] = []

    async def flaky(times: int, idempotency_key: str) -> int:
        keys.append(idempotency_key)
        if len(keys) <= times:
            raise ValueError("not yet")
        return len(keys)

    def refusing() -> None:
        keys.append(threading.current_thread().name)
        raise Refusal("never", "No.", why="rain")

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Try several times."""
        found = {"tries": await run.step(flaky, 1, retries=2)}
        for function in (flaky, refusing):
            try:
                await run.step(function, *([9] if function is flaky else []), retries=0 if function is flaky else 3)
            except StepError as error:
                found[error.code] = [error.message, type(error).__name__, error.error.get("why")]
        return found

    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        found = await ended(bench, run_id)
        assert output(found) == {
            "tries": 2,
            "ValueError": ["not yet", "StepError", None],
            "never": ["No.", "StepError", "rain"],
        }
        assert keys[:3] == [f"{run_id}-1", f"{run_id}-1", f"{run_id}-2"]
        assert keys[3].startswith("bespeak-handler"), "a `def` runs in a thread, and a refusal is final"
        assert len(keys) == 4
        assert [row.attempt for row in found.rows if row.number] == [2, 1, 1]


async def test_a_long_pause_before_another_attempt_outlives_a_restart(
    shared_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "FIRST_DELAY", 3600.0)
    travel = Travel()
    tries: list[int] = []

    async def failing() -> None:
        tries.append(1)
        raise ValueError("not yet")

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Try twice."""
        await run.step(failing, retries=1)

    async with travel.serving(open_store(shared_place)) as bench:
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
    async with travel.restarted(shared_place) as bench:
        found = await ended(bench, run_id, "sleeping", "running", "failed")
        assert (found.record.state, tries) == ("sleeping", [1])


async def test_calls_and_steps_have_time_limits_of_their_own() -> None:
    travel = Travel()
    travel.held = asyncio.Event()

    async def slow() -> None:
        await asyncio.Event().wait()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Wait for what does not come."""
        found = []
        for asked_for in (run.call("BOOK", "/room", guest="ann", timeout=0.02), run.step(slow, timeout=0.02)):
            try:
                await asked_for
            except StepError as error:
                found.append(error.code)
        return {"codes": found}

    async with travel.serving() as bench:
        assert output(await ended(bench, await begin(bench, "trip"))) == {"codes": ["timeout", "timeout"]}


async def test_a_step_that_runs_at_most_once_has_failed_after_a_crash(shared_place: str) -> None:
    travel = Travel()
    begun: list[int] = []

    async def once() -> None:
        begun.append(1)
        await asyncio.Event().wait()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, str]:
        """Do something once."""
        try:
            await run.step(once, at_most_once=True)
        except StepError as error:
            return {"code": error.code}
        return {}

    async with travel.serving(open_store(shared_place)) as bench:
        run_id = await begin(bench, "trip")
        await eventually(lambda: bool(begun))
    async with travel.restarted(shared_place) as bench:
        assert (output(await ended(bench, run_id)), len(begun)) == ({"code": "interrupted"}, 1)


async def test_map_runs_steps_and_branches_in_order_and_bounds_rows() -> None:
    travel = Travel()
    running: list[int] = []
    most = 0

    async def double(number: int) -> int:
        nonlocal most
        running.append(number)
        most = max(most, len(running))
        await asyncio.sleep(0)
        running.remove(number)
        return 2 * number

    async def branch(run: Run, number: int) -> int:
        return await run.step(double, number) + await run.step(double, number)

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Map rows."""
        try:
            await run.map(double, range(MOST_MAPPED + 1))
        except ValueError as error:
            said = str(error)
        return {
            "steps": await run.map(double, range(50), at_once=3),
            "branches": await run.map(branch, [1, 2]),
            "said": said,
        }

    async with travel.serving() as bench:
        found = output(await ended(bench, await begin(bench, "trip")))
        assert found["steps"] == [2 * number for number in range(50)]
        assert found["branches"] == [4, 8]
        assert 1 < most <= 3
        assert "at most 10000 rows" in found["said"]


async def test_a_failure_in_a_branch_is_raised_when_all_have_ended_the_first_in_order() -> None:
    travel = Travel()

    async def fails(name: str) -> None:
        raise ValueError(name)

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, str]:
        """Fail twice."""
        try:
            await run.together(
                run.call("BOOK", "/room", guest="ann"), run.step(fails, "second"), run.step(fails, "third")
            )
        except StepError as error:
            return {"said": error.message}
        return {}

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "trip"))
        assert output(found) == {"said": "second"}
        assert [state for _, _, state in asked(found)] == ["done", "failed", "failed"]


async def test_branches_that_sleep_and_wait_are_put_away_together_and_wake_by_themselves(shared_place: str) -> None:
    travel = Travel()

    async def waits(run: Run, name: str) -> Any:
        return await run.wait_for(name)

    async def sleeps(run: Run) -> str:
        await run.sleep(0.8)
        await run.call("BOOK", "/room", guest="ann")
        return "slept"

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Wait for two signals and a time."""
        return {"all": await run.together(waits(run, "one"), sleeps(run), waits(run, "two"))}

    async with travel.serving(open_store(shared_place)) as bench:
        workflows = bench.bench.server.part("workflows")
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
        await eventually(lambda: workflows.driven == 0)
        await send_signal(workflows, run_id, "two", 2)
        await eventually(lambda: travel.done == ["book ann"])
        await send_signal(workflows, run_id, "one", 1)
        found = await ended(bench, run_id)
        assert output(found) == {"all": [1, "slept", 2]}
        assert travel.done == ["book ann"]


async def test_times_of_a_run_count_as_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "MOST_ROWS", 5)
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Ask for the time for ever."""
        while True:
            run.now()

    async with travel.serving() as bench:
        assert output(await ended(bench, await begin(bench, "trip")))["code"] == "workflow-too-large"


async def test_limits_on_steps_and_on_the_size_of_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "MOST_ROWS", 5)
    monkeypatch.setattr(journal, "MOST_RESULT", 1000)
    travel = Travel()

    async def give(size: int) -> str:
        return "x" * size

    @travel.app.workflow("trip")
    async def trip(run: Run, size: int) -> None:
        """Never end."""
        while True:
            await run.step(give, size)

    async with travel.serving() as bench:
        for size, code in ((10, "workflow-too-large"), (2000, "result-too-large")):
            found = await ended(bench, await begin(bench, "trip", size=size))
            assert (found.record.state, output(found)["code"]) == ("failed", code)


async def test_what_a_finally_block_asks_for_is_done_once_and_only_when_the_run_gets_there() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Book at the end."""
        try:
            return {"paid": await run.wait_for("payment")}
        finally:
            await run.call("BOOK", "/room", guest="ann")

    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        await ended(bench, run_id, "sleeping")
        assert travel.done == []
        await send_signal(bench.bench.server.part("workflows"), run_id, "payment", 1)
        await ended(bench, run_id)
        assert travel.done == ["book ann"]


async def test_what_is_read_before_an_effect_is_noted_before_it(shared_place: str) -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Book by a price."""
        found = await run.call("QUERY", "/fares")
        await run.call("BOOK", "/room", guest=f"guest-{found['price']}")

    async with travel.serving(open_store(shared_place)) as bench:
        travel.held = asyncio.Event()
        run_id = await begin(bench, "trip")
        await eventually(lambda: len(travel.keys) == 1)
        found = await bench.bench.server.part("workflows").find(run_id)
        assert [row.asked for row in found.rows] == ["QUERY /fares"]
    travel.held = None
    async with travel.restarted(shared_place) as bench:
        await ended(bench, run_id)
        assert (travel.done, travel.keys) == (["book guest-1"], [f"{run_id}-2"] * 2)


async def test_only_the_function_itself_may_use_its_run() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Use the run inside of a step."""

        async def inside() -> None:
            await run.call("BOOK", "/room", guest="ann")

        try:
            await run.step(inside)
        except StepError as error:
            return {"said": error.message}
        return {}

    async with travel.serving() as bench:
        found = output(await ended(bench, await begin(bench, "trip")))
        assert found == {"said": "only the function of the workflow itself may use its run, while it runs"}
        assert travel.done == []


@pytest.mark.parametrize("busy", [False, True], ids=["sleeping", "running"])
async def test_a_run_ends_with_the_authority_of_its_caller(busy: bool) -> None:
    travel = Travel()
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        await goes_on.wait()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Book after something else."""
        await (run.step(slow) if busy else run.wait_for("payment"))
        await run.call("BOOK", "/room", guest="ann")

    async with travel.serving() as bench:
        document = f'{{"agent_id": "{AGENT}", "name": "porter", "scopes_accepted": ["activation:run"]}}'
        await bench.store.do(PutAgent(AGENT, "porter", "active", document, "operator"))
        await bench.bench.server.agents.refresh()
        run_id = await begin(bench, "trip")
        if busy:
            await begun.wait()
        else:
            await ended(bench, run_id, "sleeping")
        await bench.store.do(SetAgentStatus(AGENT, "DEACTIVATE", frozenset({"active"}), "suspended", "operator", ""))
        await bench.bench.server.agents.refresh()
        goes_on.set()
        if not busy:
            await send_signal(bench.bench.server.part("workflows"), run_id, "payment", 1)
        found = await ended(bench, run_id)
        assert (found.record.state, travel.done) == ("failed", [])
        assert "suspended" in str(output(found))


async def test_a_signal_that_is_sent_again_with_its_key_is_left_once() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> list[int]:
        """Wait for two payments."""
        return [await run.wait_for("payment"), await run.wait_for("payment")]

    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        for number, key in ((1, "a"), (1, "a"), (2, "b")):
            given = {"workflow_id": run_id, "name": "payment", "value": number}
            assert (await bench.send("NOTIFY", "/workflows", given, idempotency_key=key)).status == 200
        assert output(await ended(bench, run_id)) == [1, 2]


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_a_callback_is_told_the_end_in_the_transaction_that_ends_the_run(end: str) -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, str]:
        """End in one way or the other."""
        await run.call("BOOK", "/room", guest="nobody" if end == "failed" else "ann")
        if end == "cancelled":
            await run.wait_for("nothing")
        return {"it": "done"}

    delivery = DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))
    document = ServerDocument(extension_tables={"delivery": delivery})
    async with serving(always(204), tls=False) as web, travel.serving(document=document) as bench:
        server = bench.bench.server
        authority = Authority(agent_id=AGENT, scopes=("activation:run",), headers={"agent-id": AGENT})
        call = restore_call(authority, server, "RUN")
        assert isinstance(call, RoutedCall)
        callback = f"http://127.0.0.1:{web.port}/"
        spec = Spec("RUN", (), authority, time.time() + 60, given={}, workflow="trip", callback=callback)
        run_id = await server.part("workflows").begin(call, spec)
        if end == "cancelled":
            await ended(bench, run_id, "sleeping")
            assert (await bench.send("CANCEL", "/", {"target_id": run_id})).status == 202
        await eventually(lambda: len(web.asked) >= 1)
    assert len(web.asked) == 1
    content = letter_of(web.asked[-1])["content"]
    assert content["workflow_id"] == run_id
    outcome = {"failed": {"code": "sold_out"}, "completed": {"output": {"it": "done"}}, "cancelled": {}}[end]
    told = content["error"] if end == "failed" else content
    assert (content["status"], outcome.items() <= told.items()) == (end, True)


async def test_budget_is_counted_over_replays() -> None:
    travel = Travel()

    @travel.app.endpoint("BUY", "/seats", impact="reversible", cost={"EUR": "6.00"})
    async def buy() -> dict[str, int]:
        """Buy a seat.

        Outcome: A seat is bought.
        """
        travel.done.append("seat")
        return {"seat": 1}

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Buy two seats, with a pause."""
        await run.call("BUY", "/seats")
        await run.wait_for("payment")
        await run.call("BUY", "/seats")

    async with travel.serving() as bench:
        reply = await run(bench, "trip", {}, prefer="respond-async", budget_limit="EUR=10.00")
        run_id = reply.json["result"]["run_id"]
        await ended(bench, run_id, "sleeping")
        await send_signal(bench.bench.server.part("workflows"), run_id, "payment", 1)
        found = await ended(bench, run_id)
        assert (found.record.state, travel.done) == ("failed", ["seat"])
        assert "budget" in output(found)["code"]


async def test_runs_that_wake_together_have_their_own_authority_and_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "_SHORT", 0.0)  # so that they are put away
    travel, seen = Travel(), ContextVar("seen", default="")

    @travel.app.endpoint("BOOK", "/seat", impact="reversible", scopes=["booking:seat"])
    async def seat(context: Context) -> dict[str, Any]:
        """Book a seat.

        Outcome: A seat is booked.
        """
        return {"guest": context.agent_id}

    @travel.app.workflow("trip")
    async def trip(run: Run, at: datetime, books: bool) -> dict[str, Any]:
        """Sleep, and perhaps book a seat."""
        await run.sleep(until=at)
        before, found = seen.get(), {"guest": run.agent_id}
        seen.set(run.id)
        try:
            found = await run.call("BOOK", "/seat") if books else found
        except StepError as error:
            found = {"guest": error.code}
        return {**found, "before": before}

    async with travel.serving() as bench:
        scopes, wanted = ("activation:run", "activation:run, booking:seat"), {}
        at = datetime.now(UTC) + timedelta(seconds=1)
        for agent in (AGENT, OTHER):
            for scope in scopes:
                for books in (False, True):
                    more = {"agent": agent, "authority_scope": scope, "prefer": "respond-async"}
                    reply = await run(bench, "trip", {"at": at.isoformat(), "books": books}, **more)
                    guest = "scope-violation" if books and scope == scopes[0] else agent
                    wanted[reply.json["result"]["run_id"]] = {"guest": guest, "before": ""}
        assert {run_id: output(await ended(bench, run_id)) for run_id in wanted} == wanted


async def test_a_run_that_another_process_has_claimed_meanwhile_is_not_ended_by_the_first() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> dict[str, Any]:
        """Return at once."""
        return {"now": run.now().isoformat()}

    async with travel.serving() as bench:
        authority = Authority(AGENT, ("activation:run",), {})
        data = encode(Spec("RUN", (), authority, 4e12, given={}, workflow="trip")).decode()
        await bench.store.do(PutRecord("run-1", "workflow", AGENT, "running", data, delay=3600.0))
        due = ChangeRecord("run-1", ("workflow",), ("running",), "running", delay=-1.0)
        first, second = [(await bench.store.do(due, ClaimDue("workflow", 1, 3600.0)))[1] for _ in range(2)]
        workflows = bench.bench.server.part("workflows")
        await workflows.take_over(first)
        found = await workflows.find("run-1")
        assert (found.record.state, found.rows) == ("running", [])
        await workflows.take_over(second)
        assert (await workflows.find("run-1")).record.state == "completed"


async def test_a_run_that_is_woken_too_early_sleeps_again() -> None:
    travel = Travel()

    @travel.app.workflow("trip")
    async def trip(run: Run) -> None:
        """Sleep for a while."""
        await run.sleep(3600)

    async with travel.serving() as bench:
        run_id = await begin(bench, "trip")
        before = await ended(bench, run_id, "sleeping")
        listed = await bench.send("QUERY", "/workflows", {"state": "sleeping"})
        assert [one["workflow_id"] for one in listed.json["result"]["workflows"]] == [run_id]
        await bench.store.do(ChangeRecord(run_id, ("workflow",), ("sleeping",), "sleeping", delay=0.0))
        async with asyncio.timeout(10):
            while (found := await ended(bench, run_id, "sleeping", "running")).record.fence == before.record.fence:
                await asyncio.sleep(0.005)
        found = await ended(bench, run_id, "sleeping")
        assert [row.output for row in found.rows] == [row.output for row in before.rows]
        assert abs(found.record.due - before.record.due) < 5
