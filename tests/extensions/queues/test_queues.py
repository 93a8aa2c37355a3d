"""Queues: agents submit items, and functions of the service work on them at least once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.agent.discovery.web import always, serving
from tests.extensions.messages.conftest import first, place, second, shared_place, store
from tests.extensions.messages.parts import letter_of
from tests.messaging import BOB
from tests.queues import ended, queue_of, submitted
from tests.service import AGENT, build, make_endpoint
from tests.stateful import audited_backend, keeping

from bespeak import App, Context, ContractError, EntityChange, Refusal
from bespeak.app.server.assembly import list_builtins
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Impact
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.messages.store import PutInChannel
from bespeak.extensions.queues import methods
from bespeak.extensions.queues import store as items
from bespeak.extensions.queues.store import ClaimItems, CountItems, Item, retry_item
from bespeak.runtime.handling import OpenLimit
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, PutRecord, RenewRecords
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio

__all__ = ["first", "place", "second", "shared_place", "store"]


async def bill(order: str, copies: int = 1) -> dict[str, Any]:
    """Write an invoice.

    Errors:
        no_such_order: There is no such order.
    """
    if order == "none":
        raise Refusal("no_such_order", "There is no such order.")
    return {"invoice": f"{order}x{copies}"}


@pytest.mark.requirement("METHODS-5.3-2", "METHODS-5.3-7")
async def test_an_item_is_done_and_its_owner_reads_the_result() -> None:
    async with keeping(participants=(queue_of(bill),)) as bench:
        tracking_id = await submitted(bench, order="77", copies=2)
        found = await ended(bench, tracking_id)
        assert (found["status"], found["details"]) == (
            "done",
            {"queue": "invoices", "attempts": 1, "result": {"invoice": "77x2"}},
        )
        assert (await bench.send("CHECK", "/", {"target": tracking_id}, agent=BOB)).status == 404


@pytest.mark.requirement("METHODS-8.9-1")
async def test_the_task_id_of_the_call_means_its_item() -> None:
    started = asyncio.Event()

    async def wait(order: str) -> None:
        """Wait."""
        started.set()
        await asyncio.Event().wait()

    async with keeping(participants=(queue_of(wait, concurrency=1),)) as bench:
        await submitted(bench, order="first")
        await started.wait()
        body = {"target": "invoices", "payload": {"order": "second"}}
        tracking_id = (await bench.send("SUBMIT", "/", body, task_id="task-7")).json["result"]["tracking_id"]
        assert (await bench.send("CHECK", "/", {"target": "task-7"})).json["result"]["status"] == "queued"
        for method, named in (("CHECK", "target"), ("CANCEL", "target_id")):
            assert (await bench.send(method, "/", {named: "task-7"}, agent=BOB)).status == 404
        cancelled = (await bench.send("CANCEL", "/", {"target_id": "task-7"})).json["result"]
        assert (cancelled["target_id"], cancelled["status"]) == (tracking_id, "cancelled")
        again = (await bench.send("SUBMIT", "/", body, task_id="task-7")).json["result"]["tracking_id"]
        doubtful = await bench.send("CHECK", "/", {"target": "task-7"})
        assert (doubtful.status, set(doubtful.error["ids"])) == (409, {tracking_id, again})


async def test_a_refusal_is_final_and_its_reason_is_kept() -> None:
    async with keeping(participants=(queue_of(bill, retries=5),)) as bench:
        found = await ended(bench, await submitted(bench, order="none"))
        assert (found["status"], found["details"]["attempts"]) == ("dead", 1)
        assert found["details"]["error"]["code"] == "no_such_order"


async def test_a_failure_is_tried_again_with_the_same_key_until_the_retries_are_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(items, "_FIRST_DELAY", 0.0)
    keys: list[str] = []

    def fail(context: Context) -> None:
        keys.append(context.request.headers["idempotency-key"])
        if context.input["until"] > len(keys):
            raise RuntimeError("the printer is off")

    def print_it(until: int, context: Context) -> None:
        """Print an invoice."""
        fail(context)

    async with keeping(participants=(queue_of(print_it, retries=2),)) as bench:
        tracking_id = await submitted(bench, until=3)
        assert (await ended(bench, tracking_id))["details"]["attempts"] == 3
        assert keys == [tracking_id] * 3
        keys.clear()
        dead = await ended(bench, await submitted(bench, until=9))
        assert (dead["status"], dead["details"]["attempts"], len(keys)) == ("dead", 3, 3)
        assert dead["details"]["error"]["code"] == "server-error"


@pytest.mark.requirement("METHODS-5.3-3")
@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"target": "reports", "payload": {}}, (404, "unknown-queue")),
        ({"target": "secret", "payload": {}}, (404, "unknown-queue")),
        ({"target": "invoices", "payload": {"copies": 1}}, (422, "invalid-payload")),
        ({"target": "invoices", "payload": "x"}, (422, "invalid-payload")),
        ({"target": "invoices", "payload": {"order": "x" * methods.MOST_PAYLOAD}}, (413, "payload-too-large")),
        ({"target": "invoices", "payload": {"order": "1"}, "callback": "agtp://a.example"}, (400, "callback-refused")),
    ],
)
async def test_what_no_queue_takes_is_refused_and_not_kept(body: dict[str, Any], answer: tuple[int, str]) -> None:
    participants = (queue_of(bill), queue_of(bill, "secret", scopes=("books:write",)))
    async with keeping(participants=participants) as bench:
        reply = await bench.send("SUBMIT", "/", body)
        assert (reply.status, reply.error["code"]) == answer
        if answer[0] == 404:
            assert reply.error["queues"] == ["invoices"]
        assert await bench.store.read(CountItems()) == []


@pytest.mark.requirement("METHODS-5.3-3")
async def test_a_full_queue_takes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "MOST_QUEUED", 1)
    release = asyncio.Event()

    async def wait() -> None:
        await release.wait()

    async with keeping(participants=(queue_of(wait),)) as bench:
        assert (await bench.send("SUBMIT", "/", b"{")).status == 400
        item = await submitted(bench)
        full = await bench.send("SUBMIT", "/", {"target": "invoices", "payload": {}})
        assert (full.status, full.error["code"]) == (503, "queue-full")
        release.set()
        await ended(bench, item)
        await submitted(bench)


async def test_calls_at_once_share_one_count_of_what_is_open(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counted, read = [], store.read

    async def count(command: Any) -> Any:
        counted.append(command)
        return await read(command)

    monkeypatch.setattr(store, "read", count)
    limit = OpenLimit("submission", 100)
    assert all(await asyncio.gather(*(limit.admits(store, AGENT) for _ in range(100 // 16))))
    assert len(counted) == 1
    assert await limit.admits(store, AGENT)
    assert len(counted) == 2


@pytest.mark.requirement("METHODS-5.3-4", "METHODS-5.5-8")
async def test_priorities_come_first_and_a_waiting_item_has_a_position_and_can_be_cancelled() -> None:
    begun, release, order = asyncio.Event(), asyncio.Event(), []

    async def work(name: str) -> None:
        order.append(name)
        begun.set()
        await release.wait()

    async with keeping(participants=(queue_of(work, concurrency=1),)) as bench:
        running = await submitted(bench, name="first")
        await begun.wait()
        items = {}
        for name, priority in (("low", 1), ("middle", 5), ("high", 9), ("withdrawn", 7)):
            body = {"target": "invoices", "payload": {"name": name}, "priority": priority}
            items[name] = (await bench.send("SUBMIT", "/", body)).json["result"]["tracking_id"]
        assert (await ended(bench, items["middle"], "queued"))["details"]["position"] == 3
        assert (await bench.send("CANCEL", "/", {"target_id": items["withdrawn"], "reason": "no"})).status == 200
        assert (await bench.send("CANCEL", "/", {"target_id": running, "reason": "no"})).status == 409
        release.set()
        await ended(bench, items["low"])
        assert order == ["first", "high", "middle", "low"]


async def test_no_more_items_run_at_once_than_the_queue_allows_and_queues_do_not_wait_for_each_other() -> None:
    running, most, release = 0, 0, asyncio.Event()

    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1

    async with keeping(participants=(queue_of(slow, "slow", concurrency=2), queue_of(bill))) as bench:
        items = [await submitted(bench, "slow") for _ in range(5)]
        await ended(bench, await submitted(bench, order="1"))
        release.set()
        for item in items:
            await ended(bench, item)
        assert most == 2


@pytest.mark.requirement("METHODS-5.3-5")
@pytest.mark.parametrize(("order", "state"), [("77", "done"), ("none", "dead")])
async def test_the_callback_is_told_the_end_with_the_result(order: str, state: str) -> None:
    delivery = DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))
    document = ServerDocument(extension_tables={"delivery": delivery})
    async with (
        serving(always(204), tls=False) as web,
        keeping(participants=(queue_of(bill),), document=document) as bench,
    ):
        callback = f"http://127.0.0.1:{web.port}/"
        body = {"target": "invoices", "payload": {"order": order}, "callback": callback}
        tracking_id = (await bench.send("SUBMIT", "/", body)).json["result"]["tracking_id"]
        async with asyncio.timeout(20):
            while len(web.asked) < 2:
                await asyncio.sleep(0.01)
    told = letter_of(web.asked[1])["content"]
    assert (told["tracking_id"], told["status"]) == (tracking_id, state)
    assert told["result"] == {"invoice": "77x1"} if state == "done" else told["error"]["code"] == "no_such_order"


async def test_an_item_ends_with_the_authority_of_its_agent() -> None:
    known = Agent(agent_id=AGENT, name="ann", status="active")
    release, begun = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await release.wait()

    async with keeping(participants=(queue_of(hold, concurrency=1),), agents=(known,)) as bench:
        first_item, second_item = [await submitted(bench) for _ in range(2)]
        await begun.wait()
        record = await bench.store.read(FindRecord(("submission",), second_item))
        item = msgspec.json.decode(record.data)
        item["authority"]["expires"] = 1.0
        data = msgspec.json.encode(item).decode()
        await bench.store.do(
            ChangeRecord(second_item, ("submission",), ("queued",), "queued", data=data, due=record.due)
        )
        release.set()
        await ended(bench, first_item)
        dead = await ended(bench, second_item)
        assert (dead["status"], dead["details"]["error"]["code"]) == ("dead", "authority-expired")


@pytest.mark.parametrize(("before", "state"), [(0, "done"), (1, "dead")])
async def test_an_abandoned_item_is_done_and_one_that_ends_its_processes_is_given_up(before: int, state: str) -> None:
    async with keeping(participants=(queue_of(bill),)) as bench:
        item = Item("invoices", {"order": "77"}, 5, Authority(agent_id=AGENT, scopes=(), headers={"agent-id": AGENT}))
        data = msgspec.json.encode(item).decode()
        await bench.store.do(
            PutInChannel(PutRecord("item-1", "submission", AGENT, "queued", data, delay=30.0), "invoices")
        )
        for _ in range(before):  # a process has died while it worked on it
            await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued",), "queued", delay=-1.0))
            await bench.store.do(ClaimItems("invoices", 1, 0.0))
        await bench.store.do(ChangeRecord("item-1", ("submission",), ("queued", "running"), "running", delay=0.0))
        assert (await ended(bench, "item-1"))["status"] == state


async def test_an_item_that_cannot_be_read_is_dead_with_the_reason() -> None:
    async with keeping(participants=(queue_of(bill),)) as bench:
        broken = PutRecord("item-1", "submission", AGENT, "queued", '{"queue": 1}', delay=0.0)
        await bench.store.do(PutInChannel(broken, "invoices"))
        dead = await ended(bench, "item-1")
        assert (dead["status"], dead["details"]["error"]["code"]) == ("dead", "unreadable-item")


async def test_item_whose_lease_ends_early_is_not_begun_again_by_the_process_that_works_on_it() -> None:
    begun, release, done = asyncio.Event(), asyncio.Event(), []

    async def work(order: str) -> None:
        if order == "first":
            begun.set()
            await release.wait()
        done.append(order)

    async with keeping(participants=(queue_of(work),)) as bench:
        first = await submitted(bench, order="first")
        await begun.wait()
        # The clock jumps, or the process was stopped for a while.
        await bench.store.do(ChangeRecord(first, ("submission",), ("running",), "running", delay=-1.0))
        await ended(bench, await submitted(bench, order="second"))
        record = await bench.store.read(FindRecord(("submission",), first))
        assert (record.state, record.fence) == ("running", 1)
        release.set()
        assert (await ended(bench, first))["status"] == "done"
        assert done == ["second", "first"]


async def test_a_server_that_stops_leaves_its_items_to_the_next_one(tmp_path: Path) -> None:
    begun, stops = asyncio.Event(), True

    async def work() -> None:
        begun.set()
        if stops:
            await asyncio.Event().wait()

    kept = open_store(str(tmp_path / "store.db"), role="sole")
    async with keeping(participants=(queue_of(work, retries=1),), store=kept) as bench:
        tracking_id = await submitted(bench)
        await begun.wait()
    stops = False
    kept = open_store(str(tmp_path / "store.db"), role="sole")
    async with keeping(participants=(queue_of(work, retries=1),), store=kept) as bench:
        assert (await ended(bench, tracking_id))["details"]["attempts"] == 2


@pytest.mark.parametrize("attempts", [1, 3])
async def test_claims_are_fenced_renewed_and_counted(store: Store, attempts: int) -> None:
    record = PutRecord("item-1", "submission", AGENT, "queued", "{}", delay=-10.0)
    await store.do(PutInChannel(record, "invoices"))
    for attempt in range(1, attempts + 1):
        (claimed,) = (await store.do(ClaimItems("invoices", 10, 0.0)))[0]
        assert (claimed.fence, claimed.state) == (attempt, "running")
    await store.do(RenewRecords("running", (("item-1", attempts - 1),), 60.0))  # of a process that has lost it
    assert (await store.do(ClaimItems("other", 10, 0.0)))[0] == []
    (again,) = (await store.do(ClaimItems("invoices", 10, 60.0)))[0]
    held = frozenset({("item-1", again.fence)})
    await store.do(RenewRecords("running", tuple(held), 60.0))
    assert (await store.do(ClaimItems("invoices", 10, 0.0)))[0] == []
    await store.do(RenewRecords("running", tuple(held), -1.0))  # a clock has jumped
    assert (await store.do(ClaimItems("invoices", 10, 60.0, held)))[0] == []
    assert (await store.do(ClaimItems("invoices", 10, 0.0)))[0] == []


async def test_a_dead_item_that_is_tried_again_has_all_its_attempts() -> None:
    works = False

    async def work() -> None:
        if not works:
            raise RuntimeError("not yet")

    async with keeping(participants=(queue_of(work),)) as bench:
        tracking_id = await submitted(bench)
        assert (await ended(bench, tracking_id))["status"] == "dead"
        works = True
        await bench.store.do(retry_item(await bench.store.read(FindRecord(("submission",), tracking_id))))
        found = await ended(bench, tracking_id, "done")
        assert (found["details"]["attempts"], "error" in found["details"]) == (1, False)


async def test_a_handler_submits_with_its_answer_also_for_an_anonymous_caller() -> None:
    def order(context: Context) -> dict[str, Any]:
        context.submit("invoices", {"order": "77"})
        return {}

    endpoint = make_endpoint("ORDER", "/paper", order, impact="reversible")
    async with keeping(endpoint, participants=(queue_of(bill, scopes=("books:write",)),)) as bench:
        assert (await bench.send("ORDER", "/paper", {}, agent=None)).status == 200
        async with asyncio.timeout(20):
            while True:
                counts = {(one.queue, one.state): one.count for one in await bench.store.read(CountItems())}
                if ("invoices", "queued") not in counts and ("invoices", "running") not in counts:
                    break
                await asyncio.sleep(0.005)
        assert list(counts) == [("invoices", "done")]


async def test_without_a_queue_the_method_is_published_as_not_implemented() -> None:
    async with keeping(methods=("SUBMIT",)) as bench:
        reply = await bench.send("SUBMIT", "/", {"target": "x", "payload": {}})
        assert (reply.status, reply.error["missing"]) == (501, "a queue (declare one with @app.queue)")
    assert build(methods=("SUBMIT",)).send("SUBMIT", "/", {"target": "x", "payload": {}}).status == 501


def test_options_out_of_bounds_are_refused_where_they_are_declared() -> None:
    app = App("Desk", server_id="desk.example", operator="Desk", contact="ops@desk.example")
    with pytest.raises(ContractError, match="concurrency must be 1 to 1000; got 0"):
        app.queue("invoices", concurrency=0)(bill)
    app.queue("invoices")(bill)
    assert [one.name for one in app.service().participants] == ["invoices"]


def test_submit_and_connect_cannot_be_undone_if_what_they_lead_to_cannot() -> None:
    def impacts(impact: Impact) -> dict[str, str]:
        app = App("Desk", server_id="desk.example", methods=("SUBMIT", "CONNECT", "REGISTER"))
        app.queue("invoices", impact=impact)(bill)

        @app.channel("ledger", impact=impact)
        def sink(row: dict[str, Any]) -> None:
            """Write a row into the ledger."""

        @app.entity("guest", model=dict[str, str])
        def changed(change: EntityChange) -> None:
            """Note the guest."""

        built = list_builtins(app.service(), stored=True)
        return {one.method: one.semantic.impact for one in built if one.method in ("SUBMIT", "CONNECT", "REGISTER")}

    assert impacts("reversible") == {"SUBMIT": "reversible", "CONNECT": "reversible", "REGISTER": "reversible"}
    assert impacts("irreversible") == {"SUBMIT": "irreversible", "CONNECT": "irreversible", "REGISTER": "reversible"}
