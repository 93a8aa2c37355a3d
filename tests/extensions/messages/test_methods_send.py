"""SEND delivers to recipients that the operator lists, through channels that the operator has set up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.agent.discovery.web import Asked, always, in_turn, serving
from tests.extensions.messages.parts import letter_of
from tests.extensions.messages.test_mail import Mailbox, mail_server
from tests.service import AGENT, Reply
from tests.stateful import StatefulBench, keeping

from bespeak.contract.delivery import DeliverySettings, SmtpSettings, TemplateSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages import methods_send as module
from bespeak.extensions.messages.posting import TOPIC
from bespeak.state.store.commands.messages import NextOutbox
from bespeak.state.store.commands.records import FindRecord

pytestmark = pytest.mark.anyio

TEMPLATES = {"booked": TemplateSettings(subject="Room $room", body="Dear $guest, room $room is yours.")}


def deliver_text(recipient: str, letter: dict[str, Any]) -> dict[str, Any]:
    return {"segments": 1, "to": recipient, "text": letter["content"]}


@asynccontextmanager
async def sending(**settings: Any) -> AsyncIterator[StatefulBench]:
    settings.setdefault("recipients", ("*",))
    delivery = DeliverySettings(allow=("127.0.0.1",), templates=TEMPLATES, **settings)
    async with keeping(methods=("SEND", "CHECK"), document=ServerDocument(delivery=delivery)) as bench:
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


@pytest.mark.requirement("METHODS-7.4-2")
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


async def test_a_webhook_that_fails_at_first_gets_the_message_later_under_the_same_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


async def test_a_call_that_is_repeated_because_its_answer_was_lost_sends_the_same_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
@pytest.mark.parametrize(
    ("channel", "recipient", "more", "status", "code"),
    [
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
    ],
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
