"""Jobs: long work in steps, each committed with its checkpoint, carried on by any process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.agent.discovery.web import always, serving
from tests.extensions.messages.conftest import place, shared_place
from tests.extensions.messages.parts import letter_of
from tests.messaging import BOB
from tests.stateful import StatefulBench, audited_backend, keeping

from bespeak import extension as ext
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.integrate import jobs
from bespeak.extensions.integrate.extension import WORKS
from bespeak.extensions.integrate.jobs import Job, Progress, PutPart, ReadPart, Step, StepConflictError, Steps, begin
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import refusal, stateful
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, FindRecord
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["place", "shared_place"]
TALLY = ext.StandardMethod(
    name="TALLY",
    category="integrate",
    description="Counts to a number.",
    intent="Count.",
    outcome="Each number is noted.",
    impact="reversible",
    idempotent=False,
    takes={"to": {"type": "integer"}, "callback?": ext.LINE},
    returns={"job_id?": ext.NAME, "status?": ext.NAME, "look?": {"type": "object"}, "counted?": {"type": "integer"}},
)


@stateful
async def tally(call: RoutedCall) -> ext.Effects:
    return await begin(call, {"to": call.input["to"]}, total=call.input["to"], callback=call.input.get("callback"))


def counting(before: Callable[[Job, int], Any] = lambda *_: None) -> jobs.Work:
    """Return a work that puts a part for each number, so that one that is done twice has a conflict of its key."""

    async def count(_: RoutedCall, job: Job) -> Steps:
        at = job.checkpoint or 0
        while at < job.given["to"]:
            made = before(job, at)
            if asyncio.iscoroutine(made):
                await made
            at += 1
            yield Step(lambda _, at=at: Progress(at, at, job.total), (PutPart(f"seen-{job.job_id}", at, b"%d" % at),))
        yield Step(lambda _: Progress(at, at, job.total, result={"counted": at}))

    return count


@asynccontextmanager
async def tallying(work: jobs.Work, store: Store | None = None, **fields: Any) -> AsyncIterator[StatefulBench]:
    extension = ext.Extension(name="tallies", own_methods=[(TALLY, tally)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(WORKS, "TALLY", work)  # type: ignore[arg-type]
        async with keeping(extensions=(extension,), methods=("CHECK", "CANCEL"), store=store, **fields) as bench:
            yield bench


async def begun(bench: StatefulBench, to: int = 3, **headers: str) -> str:
    reply = await bench.send("TALLY", "/", {"to": to}, **headers)
    assert reply.status == 202, reply.json
    result = reply.json["result"]
    assert result["look"] == {"method": "CHECK", "path": "/", "parameters": {"target": result["job_id"]}}
    return str(result["job_id"])


async def look(bench: StatefulBench, name: str, *states: str) -> dict[str, Any]:
    """Return what CHECK tells of a job when it has ended, or is in one of the states."""
    async with asyncio.timeout(20):
        while True:
            reply = await bench.send("CHECK", "/", {"target": name})
            assert reply.status == 200, reply.json
            if reply.json["result"]["status"] in (states or ("done", "failed", "cancelled")):
                result: dict[str, Any] = reply.json["result"]
                return result
            await asyncio.sleep(0.005)


async def until_dropped(store: Store, job_id: str) -> None:
    """Wait until the parts of a job that has ended are removed."""
    async with asyncio.timeout(20):
        while await store.read(ReadPart(job_id, 0)) is not None:
            await asyncio.sleep(0.01)


async def test_a_job_ends_with_a_receipt_that_its_owner_finds_by_its_id_and_its_task_id(place: str) -> None:
    store = open_store(place, role="sole")
    try:
        async with tallying(counting(), store) as bench:
            job_id = await begun(bench, task_id="task-1")
            for name in (job_id, "task-1"):
                found = await look(bench, name)
                progress = {"done": 3, "total": 3}
                assert found["details"] == {"method": "TALLY", "progress": progress, "result": {"counted": 3}}
            assert (await bench.send("CHECK", "/", {"target": job_id}, agent=BOB)).status == 404
            assert await store.read(ReadPart(f"seen-{job_id}", 3)) == b"3"
    finally:
        await store.close()


async def test_another_process_goes_on_from_the_last_checkpoint_and_the_first_one_commits_no_more(
    shared_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 1)  # so that the first process does not claim it again
    held, reached = asyncio.Event(), asyncio.Event()

    async def stay(_: Job, at: int) -> None:
        if at == 2 and not reached.is_set():
            reached.set()
            await held.wait()

    first, second = open_store(shared_place), open_store(shared_place)
    try:
        async with tallying(counting(stay), first) as bench, tallying(counting(stay), second) as other:
            job_id = await begun(bench, to=4)
            await reached.wait()
            assert (await look(bench, job_id, "running"))["details"]["progress"] == {"done": 2, "total": 4}
            await first.do(ChangeRecord(job_id, ("job",), ("running",), "running", delay=0.0))  # as if its lease ended
            assert (await look(other, job_id))["details"]["result"] == {"counted": 4}
            held.set()
            assert (await look(bench, job_id))["status"] == "done"
            assert await first.read(ReadPart(f"seen-{job_id}", 5)) is None
    finally:
        await first.close()
        await second.close()


async def test_a_job_that_is_cancelled_keeps_what_was_committed_and_tells_how_far_it_came() -> None:
    held, reached = asyncio.Event(), asyncio.Event()

    async def stay(_: Job, at: int) -> None:
        if at == 2:
            reached.set()
            await held.wait()

    async with tallying(counting(stay)) as bench:
        job_id = await begun(bench)
        await bench.store.do(PutPart(job_id, 0, b"source"))
        await reached.wait()
        reply = await bench.send("CANCEL", "/", {"target_id": job_id})
        assert (reply.status, reply.json["result"]["status"]) == (200, "cancelled")
        held.set()
        found = await look(bench, job_id)
        assert (found["status"], found["details"]["progress"]) == ("cancelled", {"done": 2, "total": 3})
        assert [await bench.store.read(ReadPart(f"seen-{job_id}", at)) for at in (2, 3)] == [b"2", None]
        await until_dropped(bench.store, job_id)
        assert (await bench.send("CANCEL", "/", {"target_id": job_id})).refusal == (409, "already-cancelled")


async def test_a_failure_that_may_pass_is_tried_again_and_any_other_ends_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "_FIRST_DELAY", 0.0)
    failures = iter([503, 503, 422])
    seen: list[int] = []

    def fail(_: Job, at: int) -> None:
        seen.append(at)
        number = next(failures, None) if at == 1 else None
        if number is not None:
            raise refusal(number, "not-now", "The source is gone.", place=at)

    async with tallying(counting(fail)) as bench:
        found = await look(bench, await begun(bench))
        assert (found["status"], seen) == ("failed", [0, 1, 1, 1])
        assert found["details"]["error"] == {
            "code": "not-now",
            "message": "The source is gone.",
            "details": {"place": 1},
        }
        assert found["details"]["progress"] == {"done": 1, "total": 3}


async def test_a_work_learns_that_a_command_of_its_step_could_not_be_carried_out() -> None:
    async def work(_: RoutedCall, job: Job) -> Steps:
        reason = ""
        missing = ChangeRecord("nothing", ("job",), ("queued",), "running")
        try:
            yield Step(lambda _: Progress(1, 1), (PutPart(f"seen-{job.job_id}", 1, b""), missing))
        except StepConflictError as error:
            reason = error.conflict.reason
        yield Step(lambda _: Progress(1, 1, result={"reason": reason}))

    async with tallying(work) as bench:
        job_id = await begun(bench)
        assert (await look(bench, job_id))["details"]["result"] == {"reason": "not-found"}
        assert await bench.store.read(ReadPart(f"seen-{job_id}", 1)) is None


async def test_a_job_ends_with_the_credential_that_made_it() -> None:
    held, reached = asyncio.Event(), asyncio.Event()

    async def stay(_: Job, at: int) -> None:
        if at == 1:
            reached.set()
            await held.wait()

    async with tallying(counting(stay)) as bench:
        job_id = await begun(bench)
        await reached.wait()
        ended = Refused(401, "authority-expired", "The API key that made this was revoked.")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Authority, "judge", lambda *_: ended)
            held.set()
            found = await look(bench, job_id)
        assert (found["status"], found["details"]["error"]["code"]) == ("failed", "authority-expired")
        assert await bench.store.read(ReadPart(f"seen-{job_id}", 2)) is None


@pytest.mark.parametrize("ending", ["done", "cancelled"])
async def test_the_callback_is_told_the_end(ending: str) -> None:
    delivery = DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))
    document = ServerDocument(extension_tables={"delivery": delivery})
    held = asyncio.Event()

    async def stay(_: Job, at: int) -> None:
        if ending == "cancelled":
            await held.wait()

    async with serving(always(204), tls=False) as web, tallying(counting(stay), document=document) as bench:
        body = {"to": 1, "callback": f"http://127.0.0.1:{web.port}/"}
        job_id = (await bench.send("TALLY", "/", body)).json["result"]["job_id"]
        if ending == "cancelled":
            await bench.send("CANCEL", "/", {"target_id": job_id})
        async with asyncio.timeout(20):
            while len(web.asked) < 2:
                await asyncio.sleep(0.01)
    told = letter_of(web.asked[1])["content"]
    assert (told["job_id"], told["status"], told.get("result")) == (
        job_id,
        ending,
        {"counted": 1} if ending == "done" else None,
    )


async def test_jobs_that_wait_get_a_place_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 1)
    monkeypatch.setattr(jobs, "_TURN", -1.0)
    seen: list[str] = []
    both = asyncio.Event()

    async def note(job: Job, at: int) -> None:
        seen.append(job.job_id)
        if at == 0:
            await both.wait()

    async with tallying(counting(note)) as bench:
        first, second = [await begun(bench) for _ in range(2)]
        part = bench.bench.server.part("jobs")
        async with asyncio.timeout(20):
            while not part._is_crowded:
                await asyncio.sleep(0.005)
        both.set()
        assert [(await look(bench, job_id))["status"] for job_id in (first, second)] == ["done", "done"]
    assert seen.index(second) < max(at for at, job_id in enumerate(seen) if job_id == first)


async def test_a_job_whose_work_breaks_each_time_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jobs, "_LEASE", 0.01)

    def fail(_: Job, at: int) -> None:
        if at == 1:
            raise ValueError("a mistake")

    async with tallying(counting(fail)) as bench:
        found = await look(bench, await begun(bench))
        assert (found["status"], found["details"]["error"]["code"]) == ("failed", "interrupted")
        assert found["details"]["progress"]["done"] == 1
    assert "a mistake" in caplog.text


async def test_no_part_of_a_job_begins_after_the_end_of_its_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    begun_parts: list[int] = []

    async def work(_: RoutedCall, job: Job) -> Steps:
        def end(_: Any) -> Progress:
            ended = Refused(401, "authority-expired", "The API key that made this was revoked.")
            monkeypatch.setattr(Authority, "judge", lambda *_: ended)
            return Progress(1, 1)

        for number in (1, 2):
            begun_parts.append(number)  # a part may change things at other servers before it is committed
            yield Step(end)

    async with tallying(work) as bench:
        job_id = await begun(bench)
        async with asyncio.timeout(20):
            while (record := await bench.store.read(FindRecord(("job",), job_id))).state != "failed":
                await asyncio.sleep(0.005)
        assert (begun_parts, record.content()["error"]["code"]) == ([1], "authority-expired")
