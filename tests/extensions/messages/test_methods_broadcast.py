"""ALERT goes on to the next recipient at each deadline, unless somebody has acknowledged it."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from tests.messaging import ANN, BOB, CAT, DAN, METHODS, contents, inbox, refusal, sent, soon, subscribe, until_received
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

HOOK = "http://127.0.0.1:9/hook"
DELIVERING = ServerDocument(
    extension_tables={"delivery": DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",))}
)


def body(**fields: Any) -> dict[str, Any]:
    return {"recipient": BOB, "message": "disk full", "severity": "critical", **fields}


async def acknowledge(bench: StatefulBench, target_id: str, agent: str = BOB) -> dict[str, Any]:
    return await sent(bench, "CONFIRM", {"target_id": target_id, "status": "accepted"}, agent)


async def state_of(bench: StatefulBench, alert_id: str) -> str:
    state: str = (await sent(bench, "CHECK", {"target": alert_id}))["status"]
    return state


@pytest.mark.requirement("METHODS-7.1-2", "METHODS-7.1-3", "METHODS-7.1-4")
async def test_an_alert_is_received_at_once_and_acknowledged_by_its_id(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(600), escalation_path=[CAT]))
        assert (receipt["status"], receipt["recipients"], receipt["escalates_to"]) == ("sent", 1, [CAT])
        [message] = await inbox(bench)
        assert message["content"] == {"severity": "critical", "message": "disk full"}
        assert (message["kind"], message["origin_id"]) == ("alert", receipt["alert_id"])
        assert (await inbox(bench, CAT), await state_of(bench, receipt["alert_id"])) == ([], "sent")
        await acknowledge(bench, receipt["alert_id"])
        assert await state_of(bench, receipt["alert_id"]) == "acknowledged"
        [told] = await inbox(bench, ANN)
        assert (told["kind"], told["content"]["origin_id"]) == ("confirmation", receipt["alert_id"])


@pytest.mark.requirement("METHODS-7.1-2", "METHODS-7.1-4", "METHODS-7.1-5", "METHODS-7.1-7")
async def test_it_walks_the_path_to_its_end_after_a_restart_too(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(0.2), escalation_path=[CAT, DAN]))
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        [told] = await until_received(bench, 1, ANN)
        assert (told["kind"], told["origin_id"]) == ("unacknowledged", receipt["alert_id"])
        for agent in (CAT, DAN):
            [message] = await inbox(bench, agent)
            assert (message["kind"], message["content"]["message"]) == ("alert", "disk full")
        found = await sent(bench, "CHECK", {"target": receipt["alert_id"]})
        assert (found["status"], found["details"]) == ("sent", {"escalated_to": [CAT, DAN]})
        await acknowledge(bench, receipt["alert_id"], DAN)


@pytest.mark.requirement("METHODS-7.1-4")
async def test_an_acknowledged_alert_goes_no_further(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await subscribe(bench, DAN, channel="on-call")
        first = await sent(bench, "ALERT", body(acknowledge_by=soon(0.4), escalation_path=[CAT, "on-call"]))
        await acknowledge(bench, first["alert_id"])
        assert "escalated_to" not in (await sent(bench, "CHECK", {"target": first["alert_id"]}))["details"]
        second = await sent(bench, "ALERT", body(acknowledge_by=soon(0.4), escalation_path=["on-call"]))
        [message] = await until_received(bench, 1, DAN)
        assert message["origin_id"] == second["alert_id"]
        assert await inbox(bench, CAT) == []


async def test_two_processes_alert_a_group_once(shared_place: str) -> None:
    async with (
        keeping(methods=METHODS, store=open_store(shared_place)) as bench,
        keeping(methods=METHODS, store=open_store(shared_place)) as other,
    ):
        await subscribe(bench, DAN, CAT, channel="on-call")
        for _ in range(5):
            await sent(bench, "ALERT", body(acknowledge_by=soon(0.2), escalation_path="on-call"))
        await until_received(other, 5, DAN)
        await until_received(bench, 5, CAT)
        assert (len(await inbox(bench, DAN)), len(await inbox(other, CAT))) == (5, 5)


async def test_an_address_on_the_path_is_withdrawn_with_the_alert() -> None:
    async with keeping(methods=METHODS, document=DELIVERING) as bench:
        first = await sent(bench, "ALERT", body(acknowledge_by=soon(600), escalation_path=HOOK))
        assert any(HOOK in row for row in await contents(bench))
        await acknowledge(bench, first["alert_id"])
        assert not any(HOOK in row for row in await contents(bench))
        now = await sent(bench, "ALERT", body(recipient=[HOOK, BOB]))
        [row] = [row for row in await contents(bench) if HOOK in row]
        posting = msgspec.json.decode(next(cell for cell in row if str(cell).startswith("{")))
        assert posting["posting_id"].startswith(now["alert_id"])


async def test_the_author_cancels_an_alert_and_the_recipients_are_told() -> None:
    async with keeping(methods=METHODS) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(0.3), escalation_path=[CAT]))
        assert (await bench.send("CANCEL", "/", {"target_id": receipt["alert_id"]}, agent=BOB)).status == 404
        cancel = {"target_id": receipt["alert_id"], "notify_parties": True, "reason": "false alarm"}
        assert (await sent(bench, "CANCEL", cancel))["notified"] == [BOB]
        [_, told] = await inbox(bench)
        assert (told["kind"], told["content"]["reason"]) == ("cancellation", "false alarm")
        later = await sent(bench, "ALERT", body(acknowledge_by=soon(0.4), escalation_path=[CAT]))
        [message] = await until_received(bench, 1, CAT)
        assert message["origin_id"] == later["alert_id"]


@pytest.mark.requirement("METHODS-7.1-6")
async def test_bad_input_is_refused_and_changes_nothing() -> None:
    cases = {
        "unknown": (body(recipient=["nobody"]), (404, "unknown-recipient")),
        "mailbox without mail": (body(recipient="ann@example.com"), (503, "delivery-unavailable")),
        "unknown later": (body(escalation_path=[CAT, "nobody"]), (404, "unknown-recipient")),
        "past": (body(acknowledge_by="2001-01-01T00:00:00Z"), (400, "invalid-time")),
        "no time": (body(acknowledge_by="now"), (400, "invalid-time")),
        "large": (body(message="x" * 70_000), (413, "message-too-large")),
        "long path": (body(escalation_path=[CAT] * 17), (422, "input-validation-failed")),
    }
    async with keeping(methods=METHODS) as bench:
        for name, (given, expected) in cases.items():
            assert await refusal(bench, "ALERT", given) == expected, name


async def test_nobody_acknowledges_the_alert_of_another() -> None:
    async with keeping(methods=METHODS) as bench:
        receipt = await sent(bench, "ALERT", body(acknowledge_by=soon(600), escalation_path=[CAT]))
        [message] = await inbox(bench)
        for agent in (ANN, CAT, DAN):
            for target_id in (receipt["alert_id"], message["message_id"]):
                confirm = {"target_id": target_id, "status": "accepted"}
                assert await refusal(bench, "CONFIRM", confirm, agent) == (404, "target-not-found")
        assert await state_of(bench, receipt["alert_id"]) == "sent"


async def test_a_path_without_a_deadline_has_one_hour() -> None:
    async with keeping(methods=METHODS) as bench:
        before = time.time()
        receipt = await sent(bench, "ALERT", body(escalation_path=[CAT]))
        assert receipt["acknowledge_by"] > soon(before + 3000 - time.time())
        assert "acknowledge_by" not in await sent(bench, "ALERT", body())


def broadcast_body(audience: Any, **fields: Any) -> dict[str, Any]:
    return {"audience": audience, "content": "maintenance", **fields}


@pytest.mark.requirement("METHODS-7.2-3")
async def test_agents_and_subscribers_receive_it_once(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await subscribe(bench, BOB, CAT)
        receipt = await sent(bench, "BROADCAST", broadcast_body(["news", BOB, DAN, BOB], expiry=soon(600)))
        assert (receipt["deliveries"], receipt["channel"]) == (4, "agtp")
        assert receipt["expires_at"]
        [message] = await until_received(bench, 1, CAT)
        assert (message["kind"], message["content"], message["origin_id"]) == (
            "broadcast",
            "maintenance",
            receipt["message_id"],
        )
        assert (len(await inbox(bench, BOB)), len(await inbox(bench, DAN))) == (1, 1)


@pytest.mark.requirement("METHODS-7.2-2", "METHODS-7.2-3")
async def test_the_receipt_counts_each_channel() -> None:
    async with keeping(methods=METHODS, document=DELIVERING) as bench:
        both = await sent(bench, "BROADCAST", broadcast_body([BOB, CAT, HOOK]))
        assert (both["channel"], both["channels"], both["deliveries"]) == ("several", {"webhook": 1, "agtp": 2}, 3)
        one = await sent(bench, "BROADCAST", broadcast_body(HOOK))
        assert (one["channel"], one["channels"]) == ("webhook", {"webhook": 1})
        told = await sent(bench, "BROADCAST", broadcast_body(["operator"], channel="agtp"))
        assert (told["channel"], told["deliveries"]) == ("agtp", 1)
        mixed = await bench.send("BROADCAST", "/", broadcast_body([BOB, HOOK], channel="agtp"))
        assert (mixed.status, mixed.error["code"]) == (403, "audience-refused")


def zoned(agent_id: str, zone: str | None, **fields: Any) -> Agent:
    document = {} if zone is None else {"governance_zone": zone}
    return Agent(agent_id=agent_id, name=agent_id[:4], document=document, **fields)


@pytest.mark.requirement("METHODS-7.2-1", "METHODS-7.2-5")
async def test_agents_of_a_governance_zone_are_addressed_by_agents_of_that_zone() -> None:
    retired, lonely = "e" * 64, "f" * 64
    agents = (
        *(zoned(ANN, "eu"), zoned(BOB, "eu"), zoned(CAT, "us"), zoned(DAN, None)),
        *(zoned(retired, "eu", status="retired"), zoned(lonely, "mars")),
    )
    async with keeping(methods=METHODS, agents=agents) as bench:
        receipt = await sent(bench, "BROADCAST", broadcast_body(["zone:eu", BOB]))
        assert (receipt["deliveries"], receipt["channel"]) == (1, "agtp")
        assert (len(await inbox(bench, BOB)), await inbox(bench, CAT), await inbox(bench, ANN)) == (1, [], [])
        assert (await sent(bench, "BROADCAST", broadcast_body("zone:default")))["deliveries"] == 1
        assert len(await inbox(bench, DAN)) == 1
        for sender, zone in ((ANN, "us"), (ANN, "nowhere"), (lonely, "mars"), (DAN, "eu")):
            refused = await refusal(bench, "BROADCAST", broadcast_body(f"zone:{zone}"), sender)
            assert refused == (403, "audience-refused"), (sender[:1], zone)
    async with keeping(methods=METHODS) as bench:  # nobody is registered, so nobody is in a zone
        assert await refusal(bench, "BROADCAST", broadcast_body("zone:default")) == (403, "audience-refused")


@pytest.mark.requirement("METHODS-7.2-5")
async def test_a_zone_with_too_many_agents_needs_a_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.messages.methods_broadcast._MOST_MEMBERS", 1)
    agents = (zoned(ANN, "eu"), zoned(BOB, "eu"), zoned(CAT, "eu"))
    async with keeping(methods=METHODS, agents=agents) as bench:
        assert await refusal(bench, "BROADCAST", broadcast_body("zone:eu")) == (403, "audience-refused")


@pytest.mark.requirement("METHODS-7.2-7")
async def test_nobody_is_asked_for_an_answer_to_a_broadcast() -> None:
    async with keeping(methods=METHODS) as bench:
        await sent(bench, "BROADCAST", broadcast_body([BOB]))
        [message] = await inbox(bench)
        answer = {"in_reply_to": message["message_id"], "content": "ok"}
        assert await refusal(bench, "REPLY", answer, BOB) == (400, "reply-not-expected")
        await sent(bench, "CONFIRM", {"target_id": message["message_id"], "status": "accepted"}, BOB)
        assert await inbox(bench, ANN) == []


@pytest.mark.requirement("METHODS-7.2-2", "METHODS-7.2-5")
async def test_an_audience_that_cannot_be_reached_is_refused() -> None:
    cases = {
        "nobody": (broadcast_body("nobody"), (400, "empty-audience")),
        "past": (broadcast_body([BOB], expiry="2001-01-01T00:00:00Z"), (400, "invalid-time")),
        "agent by e-mail": (broadcast_body([BOB], channel="email"), (403, "audience-refused")),
        "private address": (broadcast_body("http://127.0.0.1/", channel="webhook"), (503, "delivery-unavailable")),
        "mailbox without mail": (broadcast_body("ann@example.com", channel="email"), (503, "delivery-unavailable")),
        "too many channels": (broadcast_body([BOB, *map(str, range(20))]), (403, "audience-refused")),
        "large": (broadcast_body([BOB], content="x" * 70_000), (413, "content-too-large")),
    }
    async with keeping(methods=METHODS) as bench:
        for name, (given, expected) in cases.items():
            assert await refusal(bench, "BROADCAST", given) == expected, name
        huge = await bench.send("BROADCAST", "/", broadcast_body([f"{number:064x}" for number in range(100_000)]))
        assert huge.status in (413, 422)


async def test_a_registered_channel_is_for_its_owner() -> None:
    async with keeping(methods=METHODS) as bench:
        await sent(bench, "REGISTER", {"entity_type": "channel", "data": {"channel": "news"}}, BOB)
        await subscribe(bench, CAT)
        assert await refusal(bench, "BROADCAST", broadcast_body("news")) == (403, "channel-refused")
        await sent(bench, "BROADCAST", broadcast_body("news"), BOB)
        assert await until_received(bench, 1, CAT)


async def test_full_inboxes_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.messages.message.MOST_RECEIVED", 1)
    async with keeping(methods=METHODS) as bench:
        assert (await sent(bench, "BROADCAST", broadcast_body([BOB])))["deliveries"] == 1
        assert (await sent(bench, "BROADCAST", broadcast_body([BOB, CAT])))["deliveries"] == 1
        assert await refusal(bench, "BROADCAST", broadcast_body([BOB, CAT])) == (503, "delivery-unavailable")


@pytest.mark.parametrize("method", ["BROADCAST", "ALERT"])
async def test_what_goes_to_many_addresses_is_not_large(method: str) -> None:
    document = ServerDocument(
        extension_tables={"delivery": DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",))}
    )
    names = [f"http://127.0.0.1:9/{number}" for number in range(1000)]
    async with keeping(methods=METHODS, document=document) as bench:
        for size, wanted in ((60_000, 413), (1_000, 200)):
            given = {"recipient": names, "message": "x" * size, "severity": "high"}
            if method == "BROADCAST":
                given = broadcast_body(names, content="x" * size)
            assert (await bench.send(method, "/", given)).status == wanted
