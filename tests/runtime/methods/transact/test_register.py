"""REGISTER creates entities and subscriptions that belong to the caller."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import AGENT
from tests.stateful import keeping

from bespeak.runtime.entities.methods import MOST_ENTITY_DATA, entity_of
from bespeak.state.store.commands.records import FindRecord, ListRecords

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("METHODS-5.2-3")
async def test_an_entity_is_stored_with_its_owner() -> None:
    async with keeping(methods=("REGISTER",)) as bench:
        reply = await bench.send("REGISTER", "/", {"entity_type": "contract", "data": {"title": "Lease"}})
        receipt = reply.json["result"]
        assert (reply.status, receipt["owner"], receipt["version"]) == (200, AGENT, 1)
        record = await bench.store.read(FindRecord(("entity",), receipt["entity_id"]))
        assert (record.owner, entity_of(record).data) == (AGENT, {"title": "Lease"})


@pytest.mark.requirement("METHODS-5.2-2")
async def test_the_same_key_registers_once() -> None:
    async with keeping(methods=("REGISTER",)) as bench:
        body = {"entity_type": "contract", "data": 1, "idempotency_key": "k"}
        first, again = await bench.send("REGISTER", "/", body), await bench.send("REGISTER", "/", body)
        assert first.json == again.json
        assert len(await bench.store.read(ListRecords("entity"))) == 1


@pytest.mark.requirement("METHODS-5.2-4")
async def test_an_agent_subscribes_once_to_a_channel() -> None:
    async with keeping(methods=("REGISTER",)) as bench:
        body = {"entity_type": "subscription", "data": {"channel": "news"}}
        assert (await bench.send("REGISTER", "/", body)).status == 200
        again = await bench.send("REGISTER", "/", body)
        assert (again.status, again.error["code"]) == (409, "already-registered")
        assert (await bench.send("REGISTER", "/", body, agent="b" * 64)).status == 200


@pytest.mark.requirement("METHODS-5.2-4")
@pytest.mark.parametrize(
    "body",
    [{"entity_type": "subscription", "data": {}}, {"entity_type": "contract", "data": "x" * MOST_ENTITY_DATA}],
)
async def test_data_that_cannot_be_kept_are_refused(body: dict[str, Any]) -> None:
    async with keeping(methods=("REGISTER",)) as bench:
        reply = await bench.send("REGISTER", "/", body)
        assert (reply.status, reply.error["code"]) == (422, "invalid-data")


async def test_a_subscription_can_be_made_again_after_it_was_cancelled() -> None:
    async with keeping(methods=("REGISTER", "CANCEL")) as bench:
        body = {"entity_type": "subscription", "data": {"channel": "news"}}
        made = (await bench.send("REGISTER", "/", body)).json["result"]
        await bench.send("CANCEL", "/", {"target_id": made["entity_id"]})
        assert (await bench.send("REGISTER", "/", body)).status == 200


async def test_a_callback_must_agree_before_it_is_used() -> None:
    async with keeping(methods=("REGISTER",)) as bench:
        for callback, code in ((7, "invalid-data"), ("", "invalid-data"), ("http://127.0.0.1:9/", "callback-refused")):
            body = {"entity_type": "subscription", "data": {"channel": "news", "callback": callback}}
            reply = await bench.send("REGISTER", "/", body)
            assert (reply.status, reply.error["code"]) == (422, code), callback
        assert await bench.store.read(ListRecords("subscription")) == []
