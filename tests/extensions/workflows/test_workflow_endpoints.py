"""Endpoints whose handler is a workflow: they answer with its result, or with 202 and where to look."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.service import AGENT
from tests.workflow_functions import Travel, begin, ended, eventually, output, run, send_signal

from bespeak import ContractError, Refusal, Run
from bespeak.extensions.workflows import start
from bespeak.state.store.commands.records import ChangeRecord
from bespeak.state.store.store import Conflict

pytestmark = pytest.mark.anyio


class Stay(msgspec.Struct):
    room: str
    nights: int = 1


def staying(travel: Travel) -> None:
    async def rates(guest: str) -> dict[str, int]:
        return {"nights": len(guest)}

    @travel.app.workflow("stay", errors={"too_short": "The name is too short."})
    async def stay(run: Run, guest: str, signal: bool = False) -> Stay:
        """Stay in a hotel.

        Outcome: A room is booked for as many nights as the name has letters.
        """
        found = await run.step(rates, guest)
        if len(guest) < 2:
            raise Refusal("too_short", "The name is too short.", least=2)
        if guest == "broken":
            raise ValueError("a secret reason")
        room = await run.call("BOOK", "/room", guest=guest)
        if signal:
            await run.wait_for("payment")
        return Stay(room["reservation_id"], found["nights"])

    travel.app.endpoint("BOOK", "/stay", impact="reversible", errors={"too_short": "The name is too short."})(stay)


async def test_an_endpoint_answers_with_the_result_of_its_run() -> None:
    travel = Travel()
    staying(travel)
    async with travel.serving() as bench:
        reply = await bench.send("BOOK", "/stay", {"guest": "ann"}, task_id="task-7")
        assert (reply.status, reply.json) == (200, {"room": "r-ann", "nights": 3})
        listed = (await bench.send("QUERY", "/workflows", {"task_id": "task-7"})).json["result"]["workflows"]
        assert [(one["name"], one["status"]) for one in listed] == [("stay", "completed")]
        assert (await bench.send("BOOK", "/stay", {"guest": 7})).status == 422
        assert (await bench.send("BOOK", "/stay", {"guest": "ann"}, agent=None)).status == 262


async def test_refusals_of_the_function_and_of_its_calls_are_those_of_the_endpoint() -> None:
    travel = Travel()
    staying(travel)
    async with travel.serving() as bench:
        short = await bench.send("BOOK", "/stay", {"guest": "a"})
        assert (short.status, short.json["error"]["code"]) == (422, "too_short")
        assert short.json["error"]["details"] == {"least": 2}
        refused = await bench.send("BOOK", "/stay", {"guest": "nobody"})
        assert (refused.status, refused.json["error"]["code"]) == (422, "sold_out")
        broken = await bench.send("BOOK", "/stay", {"guest": "broken"})
        assert (broken.status, broken.json["error"]["code"]) == (500, "workflow-failed")
        assert "secret" not in str(broken.json)


async def test_respond_async_answers_202_with_the_run_and_check_has_its_result() -> None:
    travel = Travel()
    staying(travel)
    async with travel.serving() as bench:
        reply = await bench.send("BOOK", "/stay", {"guest": "ann", "signal": True}, prefer="respond-async")
        run_id = reply.json["run_id"]
        assert (reply.status, reply.json["look"]["parameters"]) == (202, {"target": run_id})
        assert reply.header("Preference-Applied") == "respond-async"
        await send_signal(bench.bench.server.part("workflows"), run_id, "payment", 1)
        await ended(bench, run_id)
        report = (await bench.send("CHECK", "/", {"target": run_id})).json["result"]
        assert report["output"] == {"room": "r-ann", "nights": 3}


async def test_a_run_that_does_not_end_in_time_is_answered_with_202(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "ANSWERED_WITHIN", 0.05)
    travel = Travel()
    staying(travel)
    async with travel.serving() as bench:
        reply = await bench.send("BOOK", "/stay", {"guest": "ann", "signal": True})
        assert reply.status == 202
        assert reply.json["status"] in ("running", "sleeping"), "it may not have come to its wait yet"


async def test_the_same_key_is_the_same_run_and_another_endpoint_another_one() -> None:
    travel = Travel()
    staying(travel)
    async with travel.serving() as bench:
        replies = [await bench.send("BOOK", "/stay", {"guest": "ann"}, idempotency_key="k") for _ in range(2)]
        assert [reply.json for reply in replies] == [{"room": "r-ann", "nights": 3}] * 2
        await run(bench, "stay", {"guest": "ann"}, idempotency_key="k")
        assert travel.done == ["book ann", "book ann"]


async def test_a_workflow_calls_an_endpoint_that_is_a_workflow_and_waits_for_it() -> None:
    travel = Travel()
    staying(travel)

    @travel.app.workflow("tour")
    async def tour(run: Run) -> dict[str, Any]:
        """Stay somewhere."""
        return {"stay": await run.call("BOOK", "/stay", guest="ann", signal=True)}

    async with travel.serving() as bench:
        run_id = await begin(bench, "tour")
        await eventually(lambda: bool(travel.done))
        listed = (await bench.send("QUERY", "/workflows", {"name": "stay"})).json["result"]["workflows"]
        await send_signal(bench.bench.server.part("workflows"), listed[0]["workflow_id"], "payment", 1)
        assert output(await ended(bench, run_id)) == {"stay": {"room": "r-ann", "nights": 3}}


async def test_scopes_of_a_workflow_are_asked_for_by_run() -> None:
    travel = Travel()

    @travel.app.workflow("close-day", scopes=["day:close"])
    async def close_day(run: Run) -> None:
        """Close the day."""

    async with travel.serving() as bench:
        reply = await run(bench, "close-day", {})
        assert (reply.status, reply.json["error"]["missing_scopes"]) == (455, ["day:close"])
        assert (await run(bench, "close-day", {}, authority_scope="activation:run, day:close")).status == 200


async def test_a_result_that_is_not_of_the_declared_type_fails_the_run() -> None:
    travel = Travel()

    @travel.app.workflow("stay")
    async def stay(run: Run) -> Stay:
        """Return something else."""
        return {"nights": "many"}  # type: ignore[return-value]

    async with travel.serving() as bench:
        found = await ended(bench, await begin(bench, "stay"))
        assert (found.record.state, output(found)["code"]) == ("failed", "unexpected-result")


def test_what_is_not_a_workflow_function_is_refused_when_it_is_declared() -> None:
    app = Travel().app

    def plain(run: Run) -> None:
        """Do nothing."""

    async def without() -> None:
        """Do nothing."""

    async def fine(run: Run) -> None:
        """Do nothing."""

    for function, said in ((plain, "not an `async def`"), (without, "no parameter `run: Run`")):
        with pytest.raises(ContractError, match=said):
            app.workflow("stay")(function)
    with pytest.raises(ContractError, match="timeout must be"):
        app.workflow("stay", timeout=0)(fine)
    with pytest.raises(ContractError, match="the name must be"):
        app.workflow("Stay Here")(fine)
    declared = app.workflow("stay")(fine)
    with pytest.raises(ContractError, match="another workflow has its name"):
        app.workflow("stay")(fine)
    declared.version(2)(fine)
    with pytest.raises(ContractError, match="version 2 exists"):
        declared.version(2)(fine)


async def test_one_record_that_cannot_be_driven_keeps_no_other_from_it() -> None:
    travel = Travel()
    staying(travel)
    async with travel.serving() as bench:
        workflows = bench.bench.server.part("workflows")
        runs = [await begin(bench, "stay", guest="ann", signal=True) for _ in range(3)]
        for run_id in runs:
            await ended(bench, run_id, "sleeping")
        of_another_time = ChangeRecord(runs[0], ("workflow",), ("sleeping",), "sleeping", data="{}", delay=3600.0)
        assert not isinstance(await bench.store.do(of_another_time), Conflict)
        await asyncio.gather(*(send_signal(workflows, run_id, "payment", 1) for run_id in runs))
        for run_id in runs[1:]:
            assert (await ended(bench, run_id)).record.state == "completed"


__all__ = ["AGENT"]
