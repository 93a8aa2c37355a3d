"""BROADCAST reaches every member of an audience once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.messaging import ANN, BOB, CAT, DAN, METHODS, inbox, refusal, sent, soon, subscribe, until_received
from tests.stateful import keeping

from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio


def body(audience: Any, **fields: Any) -> dict[str, Any]:
    return {"audience": audience, "content": "maintenance", **fields}


@pytest.mark.requirement("METHODS-7.2-3")
async def test_agents_and_subscribers_receive_it_once(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await subscribe(bench, BOB, CAT)
        receipt = await sent(bench, "BROADCAST", body(["news", BOB, DAN, BOB], expiry=soon(600)))
        assert (receipt["deliveries"], receipt["channel"]) == (4, "agtp")
        assert receipt["expires_at"]
        [message] = await until_received(bench, 1, CAT)
        assert (message["kind"], message["content"], message["origin_id"]) == (
            "broadcast",
            "maintenance",
            receipt["message_id"],
        )
        assert (len(await inbox(bench, BOB)), len(await inbox(bench, DAN))) == (1, 1)


async def test_nobody_is_asked_for_an_answer_to_a_broadcast() -> None:
    async with keeping(methods=METHODS) as bench:
        await sent(bench, "BROADCAST", body([BOB]))
        [message] = await inbox(bench)
        answer = {"in_reply_to": message["message_id"], "content": "ok"}
        assert await refusal(bench, "REPLY", answer, BOB) == (400, "reply-not-expected")
        await sent(bench, "CONFIRM", {"target_id": message["message_id"], "status": "accepted"}, BOB)
        assert await inbox(bench, ANN) == []


@pytest.mark.requirement("METHODS-7.2-2", "METHODS-7.2-5")
async def test_an_audience_that_cannot_be_reached_is_refused() -> None:
    cases = {
        "nobody": (body("nobody"), (400, "empty-audience")),
        "past": (body([BOB], expiry="2001-01-01T00:00:00Z"), (400, "invalid-expiry")),
        "agent by e-mail": (body([BOB], channel="email"), (403, "audience-refused")),
        "private address": (body("http://127.0.0.1/", channel="webhook"), (503, "delivery-unavailable")),
        "mailbox without mail": (body("ann@example.com", channel="email"), (503, "delivery-unavailable")),
        "too many channels": (body([BOB, *map(str, range(20))]), (403, "audience-refused")),
        "large": (body([BOB], content="x" * 70_000), (413, "content-too-large")),
    }
    async with keeping(methods=METHODS) as bench:
        for name, (given, expected) in cases.items():
            assert await refusal(bench, "BROADCAST", given) == expected, name
        huge = await bench.send("BROADCAST", "/", body([f"{number:064x}" for number in range(100_000)]))
        assert huge.status in (413, 422)


async def test_a_registered_channel_is_for_its_owner() -> None:
    async with keeping(methods=METHODS) as bench:
        await sent(bench, "REGISTER", {"entity_type": "channel", "data": {"channel": "news"}}, BOB)
        await subscribe(bench, CAT)
        assert await refusal(bench, "BROADCAST", body("news")) == (403, "audience-refused")
        await sent(bench, "BROADCAST", body("news"), BOB)
        assert await until_received(bench, 1, CAT)


async def test_full_inboxes_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.messages.message.MOST_RECEIVED", 1)
    async with keeping(methods=METHODS) as bench:
        assert (await sent(bench, "BROADCAST", body([BOB])))["deliveries"] == 1
        assert (await sent(bench, "BROADCAST", body([BOB, CAT])))["deliveries"] == 1
        assert await refusal(bench, "BROADCAST", body([BOB, CAT])) == (503, "delivery-unavailable")


@pytest.mark.parametrize("method", ["BROADCAST", "ALERT"])
async def test_what_goes_to_many_addresses_is_not_large(method: str) -> None:
    document = ServerDocument(delivery=DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",)))
    names = [f"http://127.0.0.1:9/{number}" for number in range(1000)]
    async with keeping(methods=METHODS, document=document) as bench:
        for size, wanted in ((60_000, 413), (1_000, 200)):
            given = {"recipient": names, "message": "x" * size, "severity": "high"}
            if method == "BROADCAST":
                given = body(names, content="x" * size)
            assert (await bench.send(method, "/", given)).status == wanted
