"""SEND and NOTIFY deliver to recipients that the operator permits, and promise no more than they can keep."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.agent.discovery.web import Asked, always, in_turn, serving
from tests.cases import rows
from tests.extensions.messages.parts import letter_of
from tests.extensions.messages.test_mail import Mailbox, mail_server
from tests.messaging import ANN, BOB, CAT, METHODS, contents, inbox, refusal, sent, soon, subscribe, until_received
from tests.service import AGENT, Reply, build
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages import methods_send as module
from bespeak.extensions.messages.message import MOST_CONTENT
from bespeak.extensions.messages.posting import TOPIC
from bespeak.extensions.messages.settings import DeliverySettings, SmtpSettings, TemplateSettings
from bespeak.extensions.messages.store import NextOutbox
from bespeak.state.store.commands.records import FindRecord, ListRecords

pytestmark = pytest.mark.anyio

TEMPLATES = {"booked": TemplateSettings(subject="Room $room", body="Dear $guest, room $room is yours.")}


def deliver_text(recipient: str, letter: dict[str, Any]) -> dict[str, Any]:
    return {"segments": 1, "to": recipient, "text": letter["content"]}


@asynccontextmanager
async def sending(**settings: Any) -> AsyncIterator[StatefulBench]:
    settings.setdefault("recipients", ("*",))
    delivery = DeliverySettings(allow=("127.0.0.1",), templates=TEMPLATES, **settings)
    async with keeping(
        methods=("SEND", "CHECK"), document=ServerDocument(extension_tables={"delivery": delivery})
    ) as bench:
        yield bench


async def send(bench: StatefulBench, channel: str, recipient: str, content: Any, **more: Any) -> Reply:
    body = {"channel": channel, "recipient": recipient, "content": content}
    headers = {"authority_scope": "messages:send", **more.pop("headers", {})}
    return await bench.send("SEND", "/", {**body, **more}, **headers)


async def state_of(bench: StatefulBench, reply: Reply) -> str:
    receipt = reply.json.get("result") or reply.error
    record = await bench.store.read(FindRecord(("delivery",), receipt["delivery_id"]))
    assert record.owner == AGENT
    return str(record.state)


@pytest.mark.requirement("METHODS-7.4-2", "METHODS-7.4-4")
async def test_an_email_is_filled_in_from_a_template_and_confirmed() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as port:
        smtp = SmtpSettings(host="127.0.0.1", port=port, tls="none", sender="desk@acme.example")
        async with sending(smtp=smtp) as bench:
            values = {"guest": "Ann", "room": "12\r\nBcc: eve@evil.example"}
            reply = await send(bench, "email", "ann@acme.example", values, template_id="booked")
            receipt = reply.json["result"]
            assert (reply.status, receipt["status"], receipt["channel"]) == (200, "delivered", "email")
            assert receipt["confirmation"]["response"] == "taken as 4711"
            assert await state_of(bench, reply) == "delivered"
            assert await bench.store.read(NextOutbox(TOPIC)) is None
    [(recipients, message)] = mailbox.received
    assert (recipients, message["Subject"]) == (["ann@acme.example"], "Room 12 Bcc: eve@evil.example")
    assert message["Message-ID"].startswith(f"<{receipt['delivery_id']}@")


async def test_an_email_without_a_template_has_the_subject_of_its_content() -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as port:
        smtp = SmtpSettings(host="127.0.0.1", port=port, tls="none", sender="desk@acme.example")
        async with sending(smtp=smtp) as bench:
            await send(bench, "email", "ann@acme.example", {"subject": "Hello", "body": "Dear Ann"})
    assert mailbox.received[0][1]["Subject"] == "Hello"
    assert mailbox.received[0][1].get_content().strip() == "Dear Ann"


async def test_webhook_that_fails_at_first_gets_message_later_under_same_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELD", 0.3)
    async with serving(in_turn(always(503), always(200)), tls=False) as web, sending() as bench:
        reply = await send(bench, "webhook", f"http://127.0.0.1:{web.port}/hook", {"text": "hello"})
        assert reply.json["result"]["status"] == "queued"
        target = {"target": reply.json["result"]["delivery_id"]}
        async with asyncio.timeout(20):
            while (await bench.send("CHECK", "/", target)).json["result"]["status"] != "delivered":
                await asyncio.sleep(0.02)
        assert (await bench.send("CHECK", "/", target, agent="d" * 64)).status == 404
    first, second = web.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert letter_of(second)["sender"] == AGENT


async def test_call_repeated_after_a_lost_answer_sends_the_same_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELD", 0.3)
    arrived = asyncio.Event()

    async def hang(_: Asked, __: asyncio.StreamWriter) -> None:
        arrived.set()
        await asyncio.Event().wait()

    async with serving(in_turn(hang, always(200)), tls=False) as web, sending() as bench:
        arguments = (bench, "webhook", f"http://127.0.0.1:{web.port}/hook", "hello")
        lost = asyncio.create_task(send(*arguments, headers={"idempotency_key": "k1"}))
        await arrived.wait()
        lost.cancel()
        await asyncio.gather(lost, return_exceptions=True)
        again = await send(*arguments, headers={"idempotency_key": "k1"})
        assert again.json["result"]["status"] == "queued"
        async with asyncio.timeout(20):
            while await state_of(bench, again) != "delivered":
                await asyncio.sleep(0.02)
    assert {asked.headers["idempotency-key"] for asked in web.asked} == {again.json["result"]["delivery_id"]}


async def test_other_channels_are_functions_of_the_operator() -> None:
    async with sending(channels={"sms": f"{__name__}.deliver_text"}) as bench:
        reply = await send(bench, "sms", "+4930123456", "hello")
        confirmation = reply.json["result"]["confirmation"]
        assert confirmation == {"segments": 1, "to": "+4930123456", "text": "hello"}
        refused = await send(bench, "push", "device-1", "hello")
        assert (refused.status, refused.error["code"]) == (503, "channel-not-available")


async def test_a_recipient_that_the_receiver_refuses_is_an_error_and_is_not_tried_again() -> None:
    async with serving(always(410), tls=False) as web, sending() as bench:
        reply = await send(bench, "webhook", f"http://127.0.0.1:{web.port}/", "hello")
        assert (reply.status, reply.error["code"]) == (400, "recipient-refused")
        assert await state_of(bench, reply) == "failed"
        assert await bench.store.read(NextOutbox(TOPIC)) is None
    assert len(web.asked) == 1


@pytest.mark.requirement("METHODS-7.4-3")
@rows(
    "channel, recipient, more, status, code",
    ("webhook", "https://evil.example/", {}, 403, "address-not-listed"),
    ("webhook", "https://acme.example.evil.example/", {}, 403, "address-not-listed"),
    ("webhook", "http://acme.example/", {}, 400, "recipient-refused"),
    ("webhook", "mailto:ann@acme.example", {}, 400, "recipient-refused"),
    ("webhook", "ftp://acme.example/", {}, 400, "recipient-refused"),
    ("email", "ann@acme.example", {}, 503, "channel-not-available"),
    ("webhook", "https://acme.example/", {"template_id": "unknown"}, 404, "unknown-template"),
    ("webhook", "https://acme.example/", {"template_id": "booked"}, 422, "invalid-content"),
    ("webhook", "https://acme.example/", {"content": "x" * 300_000}, 413, "content-too-large"),
    ("fax", "1", {}, 422, "input-validation-failed"),
)
async def test_what_must_not_be_sent_is_refused_and_leaves_nothing(
    channel: str, recipient: str, more: dict[str, Any], status: int, code: str
) -> None:
    async with sending(recipients=("acme.example",)) as bench:
        content = more.pop("content", "hello")
        reply = await send(bench, channel, recipient, content, **more)
        assert (reply.status, reply.error["code"]) == (status, code)
        assert await bench.store.read(NextOutbox(TOPIC)) is None


async def test_private_addresses_are_not_connected_to_even_if_everybody_is_listed() -> None:
    async with serving(always(200), tls=False) as web, sending() as bench:
        reply = await send(bench, "webhook", f"https://localhost:{web.port}/", "hello")
        assert (reply.status, reply.error["code"]) == (400, "recipient-refused")
    assert web.asked == []


async def test_a_server_whose_operator_has_set_up_nothing_is_not_a_relay() -> None:
    async with keeping(methods=("SEND",)) as bench:
        reply = await send(bench, "webhook", "https://acme.example/", "hello")
        assert (reply.status, reply.error["code"]) == (503, "channel-not-available")
        body = {"channel": "webhook", "recipient": "https://acme.example/", "content": "x"}
        assert (await bench.send("SEND", "/", body)).status == 455
        assert (await bench.send("SEND", "/", body, agent=None)).status == 262


async def test_an_agent_cannot_fill_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 1)
    async with serving(always(200), tls=False) as web, sending() as bench:
        address = f"http://127.0.0.1:{web.port}/"
        assert (await send(bench, "webhook", address, "1")).status == 200
        full = await send(bench, "webhook", address, "2")
        assert (full.status, full.error["code"]) == (503, "delivery-unavailable")


HOOK = "http://127.0.0.1:9/hook"
DELIVERING = ServerDocument(
    extension_tables={"delivery": DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",))}
)


def body(**fields: Any) -> dict[str, Any]:
    return {"recipient": BOB, "content": {"text": "hello"}, **fields}


@pytest.mark.requirement("CORE-4.12-2", "CORE-4.12-4")
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


@pytest.mark.requirement("CORE-4.12-6")
async def test_what_has_expired_is_not_delivered() -> None:
    async with keeping() as bench:
        assert (await sent(bench, "NOTIFY", body(expiry=soon(0.2))))["expires_at"]
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


@pytest.mark.requirement("CORE-4.12-5")
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


@pytest.mark.requirement("CORE-4.12-7")
async def test_bad_input_is_refused_and_changes_nothing() -> None:
    cases = {
        "unknown channel": (body(recipient="nobody"), (404, "unknown-recipient")),
        "address outside": (body(recipient="https://198.51.100.7/x"), (503, "delivery-unavailable")),
        "mailbox without mail": (body(recipient="ann@example.com"), (503, "delivery-unavailable")),
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
    monkeypatch.setattr("bespeak.extensions.messages.message.MOST_RECEIVED", 1)
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
