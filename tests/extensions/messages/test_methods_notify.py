"""NOTIFY puts a message where its recipient finds it, and promises no more than it can keep."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.messaging import ANN, BOB, CAT, METHODS, contents, inbox, refusal, sent, soon, subscribe, until_received
from tests.service import build
from tests.stateful import keeping

from bespeak.contract.agent import Agent
from bespeak.contract.delivery import DeliverySettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.message import MOST_CONTENT
from bespeak.state.store.commands.records import ListRecords

pytestmark = pytest.mark.anyio

HOOK = "http://127.0.0.1:9/hook"
DELIVERING = ServerDocument(delivery=DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",)))


def body(**fields: Any) -> dict[str, Any]:
    return {"recipient": BOB, "content": {"text": "hello"}, **fields}


@pytest.mark.requirement("CORE-4.12-2")
async def test_an_agent_finds_the_message_in_its_inbox() -> None:
    async with keeping() as bench:
        receipt = await sent(bench, "NOTIFY", body(urgency="critical", delivery_guarantee="exactly_once"))
        assert (receipt["status"], receipt["delivery_guarantee"]) == ("delivered", "exactly_once")
        [message] = await inbox(bench)
        assert message["content"] == {"text": "hello"}
        assert (message["sender"], message["kind"], message["urgency"]) == (ANN, "notification", "critical")
        assert message["state"] == "unread"
        assert await inbox(bench, CAT) == []


@pytest.mark.requirement("CORE-4.12-3")
async def test_the_recipient_confirms_it_and_the_author_is_told() -> None:
    async with keeping() as bench:
        receipt = await sent(bench, "NOTIFY", body())
        target = {"target_id": receipt["notification_id"], "status": "accepted"}
        assert (await bench.send("CONFIRM", "/", target, agent=CAT)).status == 404
        confirmed = await sent(bench, "CONFIRM", target, BOB)
        [told] = await inbox(bench, ANN)
        assert (told["kind"], told["content"]["attestation_id"]) == ("confirmation", confirmed["attestation_id"])
        assert [message["state"] for message in await inbox(bench)] == ["acknowledged"]


async def test_what_has_expired_is_not_delivered() -> None:
    async with keeping() as bench:
        receipt = await sent(bench, "NOTIFY", body(expiry=soon(0.2)))
        assert receipt["expires_at"]
        async with asyncio.timeout(10):
            while await inbox(bench):
                await asyncio.sleep(0.01)


async def test_subscribers_of_a_channel_receive_it() -> None:
    async with keeping(methods=METHODS) as bench:
        await subscribe(bench, BOB, CAT)
        receipt = await sent(bench, "NOTIFY", body(recipient="news", delivery_guarantee="exactly_once"))
        assert receipt["status"] == "queued"
        [message] = await until_received(bench, 1, CAT)
        assert (message["channel"], message["content"]) == ("news", {"text": "hello"})
        await sent(bench, "CONFIRM", {"target_id": receipt["notification_id"], "status": "accepted"}, CAT)


async def test_an_address_gets_a_posting_whose_record_says_what_became_of_it() -> None:
    async with keeping(document=DELIVERING, methods=METHODS) as bench:
        once = body(recipient=HOOK, delivery_guarantee="exactly_once")
        assert await refusal(bench, "NOTIFY", once) == (400, "guarantee-impossible")
        receipt = await sent(bench, "NOTIFY", body(recipient=HOOK))
        [record] = await bench.store.read(ListRecords("notification", owner=ANN))
        assert (record.record_id, receipt["status"]) == (receipt["notification_id"], "queued")
        posting = next(row for row in await contents(bench) if HOOK in row)
        written = msgspec.json.decode(next(cell for cell in posting if str(cell).startswith("{")))
        assert (written["content"], written["record_id"]) == ({"text": "hello"}, record.record_id)
        assert (await sent(bench, "CHECK", {"target": record.record_id}))["status"] == "queued"


async def test_bad_input_is_refused_and_changes_nothing() -> None:
    cases = {
        "unknown channel": (body(recipient="nobody"), (404, "unknown-recipient")),
        "address outside": (body(recipient="https://198.51.100.7/x"), (404, "unknown-recipient")),
        "control characters": (body(recipient="a\x1b[2J"), (404, "unknown-recipient")),
        "past": (body(expiry="2001-01-01T00:00:00Z"), (400, "invalid-time")),
        "far": (body(expiry="2999-01-01T00:00:00Z"), (400, "invalid-time")),
        "no time": (body(expiry="tomorrow"), (400, "invalid-time")),
        "large": (body(content="x" * MOST_CONTENT), (413, "content-too-large")),
        "no monitor": (
            body(recipient="server", content={"event_type": "monitor_cancel", "subscription_id": "mon-1"}),
            (404, "subscription-not-found"),
        ),
    }
    async with keeping() as bench:
        for name, (given, expected) in cases.items():
            assert await refusal(bench, "NOTIFY", given) == expected, name


async def test_only_registered_agents_receive_where_agents_must_be_known() -> None:
    agents = (Agent(agent_id=ANN, name="ann"), Agent(agent_id=BOB, name="bob"))
    async with keeping(agents=agents, require_known_agents=True) as bench:
        assert await refusal(bench, "NOTIFY", body(recipient=CAT)) == (404, "unknown-recipient")
        assert (await sent(bench, "NOTIFY", body()))["status"] == "delivered"


async def test_a_full_inbox_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.messages.methods_notify.MOST_RECEIVED", 1)
    async with keeping() as bench:
        await sent(bench, "NOTIFY", body())
        assert await refusal(bench, "NOTIFY", body()) == (503, "delivery-unavailable")


@pytest.mark.requirement("METHODS-8.3-4")
async def test_a_notification_cancels_a_monitor_of_its_sender() -> None:
    async with keeping(methods=METHODS) as bench:
        wanted = {"target": "server", "events": ["health_changed"], "callback": ANN}
        made = await bench.send("MONITOR", "/", wanted)
        assert made.status in (200, 202), made.json
        subscription_id = made.json["result"]["subscription_id"]
        cancel = {"recipient": "server", "content": {}, "event": "monitor_cancel", "subscription_id": subscription_id}
        assert await refusal(bench, "NOTIFY", cancel, BOB) == (404, "subscription-not-found")
        assert (await sent(bench, "NOTIFY", cancel))["status"] == "cancelled"
        assert await refusal(bench, "NOTIFY", cancel) == (404, "subscription-not-found")


def test_a_server_without_a_store_says_what_it_lacks() -> None:
    reply = build().send("NOTIFY", "/", body())
    assert (reply.status, reply.error["missing"]) == (501, "a store to keep state in")
