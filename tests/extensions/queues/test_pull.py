"""PULL (Tier 2 3.4): agents work on the items of queues that have a model in place of a function."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.agent.discovery.web import always, serving
from tests.extensions.acquire.test_methods import code, good
from tests.messaging import BOB, CAT
from tests.queues import ended, queue_of, submitted
from tests.service import AGENT, make_endpoint
from tests.state.store.conftest import shared_place
from tests.stateful import StatefulBench, audited_backend, keeping
from tests.things import joining

from bespeak import App, Context, ContractError
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.queues import store as items
from bespeak.extensions.queues.store import PulledQueue, ReturnItems, retry_item
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, RenewRecords
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

anyio_backend = audited_backend
pytestmark = pytest.mark.anyio
__all__ = ["shared_place"]
PULLS = {"agent": BOB, "authority": "orders:pull"}


class Order(msgspec.Struct):
    sku: str
    count: int = 1


def declare(app: App) -> None:
    app.queue("orders", model=Order, retries=1, lease=60)


SERVICE: dict[str, Any] = {"methods": ("CHECK", "CANCEL"), "participants": joining(declare)}


@pytest.fixture
async def store(shared_place: str) -> AsyncIterator[Store]:
    """Open a store that several processes may share."""
    opened = open_store(shared_place)
    yield opened
    await opened.close()


@pytest.fixture
async def second(shared_place: str, store: Store) -> AsyncIterator[Store]:
    """Open the store again, as another process would."""
    opened = open_store(shared_place)
    yield opened
    await opened.close()


async def pulled(bench: StatefulBench, **given: Any) -> list[dict[str, Any]]:
    """Return the items of a PULL of Bob."""
    found: list[dict[str, Any]] = (await good(bench, "PULL", source="orders", **{**PULLS, **given}))["items"]
    return found


def held(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"item_id": item["item_id"], "receipt": item["receipt"], **more}


async def status_of(bench: StatefulBench, item_id: str) -> tuple[str, dict[str, Any]]:
    """Return what the submitter reads of an item: its state and its details."""
    found = await good(bench, "CHECK", target=item_id)
    return found["status"], found["details"]


async def expire(bench: StatefulBench, *taken: dict[str, Any]) -> None:
    """End the visibility timeout of items, as if its time had passed."""
    claims = tuple((item["item_id"], int(item["receipt"].rpartition(".")[2])) for item in taken)
    await bench.store.do(RenewRecords("running", claims, -1.0))


@pytest.mark.requirement("METHODS-3.4-2", "METHODS-3.4-4")
async def test_items_are_pulled_in_order_and_ended_by_the_call_that_pulls_more(store: Store) -> None:
    async with keeping(**SERVICE, store=store) as bench:
        ids = [await submitted(bench, "orders", sku=sku) for sku in "abc"]
        taken = await pulled(bench, max_items=2)
        assert [one["item_id"] for one in taken] == ids[:2]
        assert (taken[0]["payload"], taken[0]["attempts"]) == ({"sku": "a", "count": 1}, 1)
        assert taken[0]["submitter"] == AGENT
        assert await status_of(bench, ids[0]) == ("running", {"queue": "orders", "attempts": 1})
        told = await good(
            *(bench, "PULL"),
            **PULLS,
            source="orders",
            acknowledge=[held(taken[0], result={"packed": 1}), held(taken[1])],
        )
        assert told["settled"] == [{"item_id": one, "status": "done"} for one in ids[:2]]
        assert [one["item_id"] for one in told["items"]] == ids[2:]
        assert (await status_of(bench, ids[0]))[1] == {"queue": "orders", "attempts": 1, "result": {"packed": 1}}
        assert (await status_of(bench, ids[1]))[0] == "done"
        last = await good(bench, "PULL", **PULLS, source="orders", max_items=0, acknowledge=[held(told["items"][0])])
        assert (last["items"], last["count"], len(last["settled"])) == ([], 0, 1)


@pytest.mark.requirement("METHODS-3.4-3", "METHODS-3.4-6")
async def test_an_item_comes_back_after_its_time_and_a_late_or_foreign_end_changes_nothing(store: Store) -> None:
    async with keeping(**SERVICE, store=store) as bench:
        ids = [await submitted(bench, "orders", sku=sku) for sku in "ab"]
        late, good_one = await pulled(bench, max_items=2, visibility_timeout=600)
        await expire(bench, late)
        body = {"source": "orders", "acknowledge": [held(good_one), held(late)]}
        refused = await bench.send("PULL", "/", body, agent=BOB, authority_scope="orders:pull")
        assert (refused.refusal, refused.error["items"]) == ((409, "not-held"), [ids[0]])
        assert (await status_of(bench, ids[1]))[0] == "running"
        [again] = await pulled(bench, agent=CAT)
        assert (again["item_id"], again["attempts"]) == (ids[0], 2)
        for ending in ([held(late)], [held(good_one)] * 2, [held(again)], [{**held(late), "item_id": ids[1]}]):
            given = {"source": "orders", "acknowledge": ending}
            assert await code(bench, "PULL", **PULLS, **given) == (409, "not-held"), ending
        assert await code(bench, "CONFIRM", **PULLS, target_id=late["receipt"], status="accepted") == (409, "not-held")
        await pulled(bench, agent=CAT, acknowledge=[held(again)])
        await pulled(bench, acknowledge=[held(good_one)])
        assert [(await status_of(bench, one))[0] for one in ids] == ["done", "done"]


async def test_two_processes_never_have_an_item_together_and_one_that_dies_loses_none(
    store: Store, second: Store
) -> None:
    async with keeping(**SERVICE, store=store) as one, keeping(**SERVICE, store=second) as other:
        ids = {await submitted(one, "orders", sku=str(number)) for number in range(24)}
        parts = await asyncio.gather(*(pulled(bench, max_items=3) for bench in (one, other) * 4))
        taken = [item for part in parts for item in part]
        assert sorted(item["item_id"] for item in taken) == sorted(ids)
        # The first half is ended; the process that had the others is killed before it can say so.
        done, lost = taken[:12], taken[12:]
        await asyncio.gather(
            *(
                pulled(bench, max_items=0, acknowledge=[held(item)])
                for item, bench in zip(done, (one, other) * 6, strict=True)
            )
        )
        await expire(other, *lost)
        again = await pulled(one, max_items=100, agent=CAT)
        assert sorted(item["item_id"] for item in again) == sorted(item["item_id"] for item in lost)
        assert await pulled(other, max_items=100) == []
        endings = [
            code(other, "PULL", **PULLS, source="orders", acknowledge=[held(item)]) for item in (*lost[:6], *done[:6])
        ]
        assert set(await asyncio.gather(*endings)) == {(409, "not-held")}
        await pulled(other, max_items=0, agent=CAT, acknowledge=[held(item, result="cat") for item in again])
        counts = {(row.state, row.count) for row in await one.store.read(items.CountItems())}
        assert counts == {("done", 24)}
        assert (await status_of(one, again[0]["item_id"]))[1]["result"] == "cat"


async def test_an_item_that_is_never_ended_is_dead_after_its_attempts_and_can_be_tried_again(store: Store) -> None:
    async with keeping(**SERVICE, store=store) as bench:
        item_id = await submitted(bench, "orders", sku="a")
        for attempt in (1, 2):
            [item] = await pulled(bench)
            assert item["attempts"] == attempt
            await expire(bench, item)
        # Nobody needs to pull: each server returns what was not ended.
        await bench.store.do(ReturnItems(PulledQueue("orders", 1, "test.example")))
        state, details = await status_of(bench, item_id)
        assert (state, details["error"]["code"]) == ("dead", "not-acknowledged")
        assert await pulled(bench) == []
        await bench.store.do(retry_item(await bench.store.read(FindRecord(("submission",), item_id))))
        assert (await pulled(bench))[0]["attempts"] == 1


async def test_an_item_is_given_back_with_a_reason_until_it_is_dead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "_FIRST_DELAY", 0.0)
    async with keeping(**SERVICE, store=store) as bench:
        item_id = await submitted(bench, "orders", sku="a")
        [item] = await pulled(bench)
        [again] = await pulled(bench, reject=[held(item, reason="no box")])
        assert (again["item_id"], again["attempts"]) == (item_id, 2)
        assert (await status_of(bench, item_id))[1]["error"] == {"code": "rejected", "message": "no box"}
        told = await good(bench, "PULL", **PULLS, source="orders", reject=[held(again, reason="still none")])
        assert told["settled"] == [{"item_id": item_id, "status": "dead"}]
        assert (await status_of(bench, item_id))[1]["error"]["message"] == "still none"
        other = await submitted(bench, "orders", sku="b")
        [item] = await pulled(bench)
        await pulled(bench, reject=[held(item, reason="unknown sku", final=True)])
        assert (await status_of(bench, other))[0] == "dead"


@pytest.mark.requirement("METHODS-3.4-5")
async def test_a_queue_exists_for_agents_with_its_scopes_alone_and_only_without_a_function() -> None:
    def secret(app: App) -> None:
        declare(app)
        app.queue("secret", model=Order, scopes=["vault:open"])

    async with keeping(participants=(*joining(secret), queue_of())) as bench:
        await submitted(bench, "orders", sku="a")
        for scopes, source, known in (
            ("x:y", "orders", []),
            ("orders:pull, secret:pull, invoices:pull", "secret", ["orders"]),
            ("orders:pull, secret:pull, vault:open", "nothing", ["orders", "secret"]),
            ("orders:pull, invoices:pull", "invoices", ["orders"]),
        ):
            refused = await bench.send("PULL", "/", {"source": source}, agent=BOB, authority_scope=scopes)
            assert (refused.refusal, refused.error["queues"]) == ((404, "unknown-queue"), known)
        assert (await bench.send("PULL", "/", {"source": "orders"}, agent=None)).status in (262, 401)
        assert len(await pulled(bench, authority="orders:*")) == 1


async def test_an_item_ends_with_the_authority_of_its_submitter() -> None:
    async with keeping(**SERVICE) as bench:
        ids = [await submitted(bench, "orders", sku=sku) for sku in "ab"]
        record = await bench.store.read(FindRecord(("submission",), ids[0]))
        item = record.content()
        item["authority"]["expires"] = 1.0
        data = msgspec.json.encode(item).decode()
        await bench.store.do(ChangeRecord(ids[0], ("submission",), ("queued",), "queued", data=data, due=record.due))
        assert [one["item_id"] for one in await pulled(bench)] == ids[1:]
        state, details = await status_of(bench, ids[0])
        assert (state, details["error"]["code"]) == ("dead", "authority-expired")


@pytest.mark.parametrize("content", ["{", '{"queue": "orders", "payload": 7}', "[" * 5000])
async def test_an_item_that_cannot_be_read_is_dead_with_the_reason_and_keeps_no_other_back(
    store: Store, content: str
) -> None:
    async with keeping(**SERVICE, store=store) as bench:
        ids = [await submitted(bench, "orders", sku=sku) for sku in "abc"]
        for item_id, state in zip(ids[:2], ("queued", "running"), strict=True):
            await bench.store.do(ChangeRecord(item_id, ("submission",), ("queued",), state, data=content, delay=-9e9))
        assert [one["item_id"] for one in await pulled(bench, max_items=3)] == ids[2:]
        state, details = await status_of(bench, ids[0])
        assert (state, details["error"]["code"]) == ("dead", "unreadable-item")
        record = await bench.store.read(FindRecord(("submission",), ids[0]))
        assert record.content()["payload"] == content
        await bench.store.do(retry_item(record))
        assert await pulled(bench) == []
        assert (await status_of(bench, ids[0]))[0] == "dead"


@pytest.mark.requirement("METHODS-5.5-8")
async def test_an_item_is_confirmed_by_its_holder_and_cancelled_before_it_is_pulled() -> None:
    async with keeping(**SERVICE) as bench:
        ids = [await submitted(bench, "orders", sku=sku) for sku in "abc"]
        assert (await bench.send("CANCEL", "/", {"target_id": ids[2], "reason": "no"})).status == 200
        _, two = await pulled(bench, max_items=100)
        assert (await bench.send("CANCEL", "/", {"target_id": ids[0], "reason": "no"})).status == 409
        given = {"target_id": ids[0], "status": "accepted"}
        assert await code(bench, "CONFIRM", **given, agent=CAT) == (404, "target-not-found")
        assert await code(bench, "CONFIRM", **given, agent=CAT, authority="orders:pull") == (409, "not-held")
        assert await code(bench, "CONFIRM", **PULLS, target_id="item-none", status="accepted") == (
            404,
            "target-not-found",
        )
        assert await code(bench, "CONFIRM", **PULLS, **{**given, "status": "deferred"}) == (422, "invalid-status")
        told = await good(bench, "CONFIRM", **PULLS, **given)
        assert (told["target_id"], told["status"]) == (ids[0], "accepted")
        assert told["attestation_id"].startswith("att-")
        await good(bench, "CONFIRM", **PULLS, target_id=two["receipt"], status="rejected", reason="broken")
        assert (await status_of(bench, ids[0]))[0] == "done"
        state, details = await status_of(bench, ids[1])
        assert (state, details["error"]["message"]) == ("queued", "broken")


@pytest.mark.parametrize(("ending", "state"), [("acknowledge", "done"), ("reject", "dead")])
async def test_the_callback_of_the_submitter_is_told_the_end(ending: str, state: str) -> None:
    delivery = DeliverySettings(allow=("127.0.0.1",), recipients=("127.0.0.1",))
    document = ServerDocument(extension_tables={"delivery": delivery})
    async with serving(always(204), tls=False) as web, keeping(**SERVICE, document=document) as bench:
        callback = f"http://127.0.0.1:{web.port}/"
        await good(bench, "SUBMIT", target="orders", payload={"sku": "a"}, callback=callback)
        [item] = await pulled(bench)
        more: dict[str, Any] = {"result": 7} if state == "done" else {"reason": "no", "final": True}
        await pulled(bench, **{ending: [held(item, **more)]})
        async with asyncio.timeout(20):
            while len(web.asked) < 2:
                await asyncio.sleep(0.01)
        assert state.encode() in web.asked[1].body
        assert (await ended(bench, item["item_id"]))["status"] == state


async def test_one_answer_has_a_mebibyte_of_items_or_one_item() -> None:
    async with keeping(**SERVICE) as bench:
        for _ in range(6):
            await submitted(bench, "orders", sku="x" * 250_000)
        assert [len(await pulled(bench, max_items=100)) for _ in range(3)] == [4, 2, 0]


async def test_a_payload_is_what_the_model_takes_also_from_a_handler() -> None:
    def order(context: Context) -> dict[str, Any]:
        context.submit("orders", context.input)
        return {}

    endpoint = make_endpoint("ORDER", "/paper", order, impact="reversible", properties={"sku": {"type": "string"}})
    async with keeping(endpoint, **SERVICE) as bench:
        refused = await bench.send("SUBMIT", "/", {"target": "orders", "payload": {"sku": 1}})
        assert (refused.refusal, refused.error["field"]) == ((422, "invalid-payload"), "/payload/sku")
        reply = await bench.send("ORDER", "/paper", {"sku": "a"}, agent=None)
        assert reply.status == 200, reply.json
        assert (await pulled(bench))[0]["payload"] == {"sku": "a", "count": 1}


def test_a_queue_has_a_model_or_a_function() -> None:
    app = App("Desk", server_id="desk.example", operator="Desk", contact="ops@desk.example")
    with pytest.raises(ContractError, match="another queue has its name"):

        @app.queue("orders", model=Order)
        def work(sku: str) -> None:
            """Work."""

    assert app.service().participants[0].methods == ("SUBMIT", "PULL")
