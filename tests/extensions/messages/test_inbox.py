"""Messages of an agent: QUERY /messages shows them, REPLY answers one, and recipients are only those permitted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows
from tests.messaging import ANN, BOB, CAT, METHODS, contents, inbox, refusal, sent
from tests.service import build
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.assembly import list_builtins
from bespeak.contract.service import ServerIdentity, Service
from bespeak.extensions.messages.recipients import Recipients, as_address
from bespeak.extensions.messages.transports import Retry, Undeliverable, blocked
from bespeak.protocol.address_guard import BlockedAddress
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

IDENTITY = ServerIdentity(server_id="rooms.example", operator="Acme", contact="desk@rooms.example")


async def write(bench: StatefulBench, *texts: str) -> None:
    for text in texts:
        await sent(bench, "NOTIFY", {"recipient": BOB, "content": text})


async def test_reading_changes_nothing_and_needs_a_valid_cursor() -> None:
    async with keeping() as bench:
        await write(bench, "one", "two")
        before = await contents(bench)
        assert await inbox(bench) == await inbox(bench)
        assert await contents(bench) == before
        assert await inbox(bench, ANN) == []
        for cursor in ("x", "nan~msg-1", "1e999~msg", "-1~m"):
            reply = await bench.send("QUERY", "/messages", {"after": cursor}, agent=BOB)
            assert (reply.status, reply.error["code"]) == (422, "invalid-after"), cursor
        assert (await bench.send("QUERY", "/messages", {}, agent=None)).status == 262


async def test_pages_are_complete_and_do_not_overlap() -> None:
    async with keeping() as bench:
        texts = [f"{number}" for number in range(7)]
        await write(bench, *texts)
        found, after, pages = [], {}, 0
        while True:
            reply = (await bench.send("QUERY", "/messages", {"limit": 3, **after}, agent=BOB)).json["result"]
            found += [message["content"] for message in reply["messages"]]
            pages += 1
            if "next" not in reply:
                break
            after = {"after": reply["next"]}
        assert (sorted(found), pages) == (texts, 3)


async def test_a_page_is_bounded_in_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.messages.methods_inbox._MOST_BYTES", 100)
    async with keeping() as bench:
        await write(bench, "x" * 200, "y" * 200)
        assert len(await inbox(bench)) == 1


async def test_messages_are_chosen_by_state_and_thread() -> None:
    async with keeping() as bench:
        await write(bench, "one", "two")
        first = (await inbox(bench))[0]
        await sent(bench, "CONFIRM", {"target_id": first["message_id"], "status": "deferred"}, BOB)
        assert [message["message_id"] for message in await inbox(bench, state="read")] == [first["message_id"]]
        assert len(await inbox(bench, state="unread")) == 1
        assert await inbox(bench, thread_id=first["thread_id"]) == await inbox(bench, state="read")
        assert await inbox(bench, thread_id="%") == []


def test_a_server_without_a_store_has_no_inbox() -> None:
    assert build().send("QUERY", "/messages", {}).status == 501
    assert "/messages" not in {endpoint.path for endpoint in list_builtins(Service(identity=IDENTITY), stored=False)}


async def notify(bench: StatefulBench) -> dict[str, Any]:
    await sent(bench, "NOTIFY", {"recipient": BOB, "content": "free at ten?"})
    [message] = await inbox(bench)
    return message


@pytest.mark.requirement("METHODS-7.3-3", "METHODS-7.3-4", "METHODS-7.3-6", "METHODS-7.3-8")
async def test_a_thread_goes_on_as_long_as_both_reply(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        asked = await notify(bench)
        answer = {"in_reply_to": asked["message_id"], "content": "yes", "urgency": "critical"}
        receipt = await sent(bench, "REPLY", answer, BOB)
        assert (receipt["recipient"], receipt["thread_id"]) == (ANN, asked["thread_id"])
        [reply] = await inbox(bench, ANN, thread_id=asked["thread_id"])
        assert (reply["message_id"], reply["content"], reply["urgency"]) == (receipt["reply_id"], "yes", "critical")
        assert (reply["in_reply_to"], reply["sender"]) == (asked["message_id"], BOB)
        again = await sent(bench, "REPLY", {"in_reply_to": reply["message_id"], "content": "good"})
        assert again["thread_id"] == asked["thread_id"]
        assert len(await inbox(bench, thread_id=asked["thread_id"])) == 2


@pytest.mark.requirement("METHODS-7.3-5")
async def test_a_message_has_one_reply() -> None:
    async with keeping(methods=METHODS) as bench:
        asked = await notify(bench)
        answer = {"in_reply_to": asked["message_id"], "content": "yes"}
        await sent(bench, "REPLY", answer, BOB)
        assert await refusal(bench, "REPLY", {**answer, "content": "no"}, BOB) == (400, "reply-not-expected")


@pytest.mark.requirement("METHODS-7.3-5")
async def test_only_the_recipient_can_reply() -> None:
    async with keeping(methods=METHODS) as bench:
        asked = await notify(bench)
        for agent in (ANN, CAT):
            answer = {"in_reply_to": asked["message_id"], "content": "yes"}
            assert await refusal(bench, "REPLY", answer, agent) == (404, "message-not-found")
        for name in ("task-1", "esc-" + "0" * 32, "msg-%"):
            assert await refusal(bench, "REPLY", {"in_reply_to": name, "content": 1}, BOB) == (404, "message-not-found")
        large = {"in_reply_to": asked["message_id"], "content": "x" * 70_000}
        assert await refusal(bench, "REPLY", large, BOB) == (413, "content-too-large")


@pytest.mark.requirement("METHODS-7.3-8")
async def test_an_escalation_is_answered_by_its_id() -> None:
    async with keeping(methods=METHODS) as bench:
        raised = {"task_id": "t-1", "reason": "scope_limit", "context": {"amount": 9}, "recipient": BOB}
        escalation_id = (await sent(bench, "ESCALATE", raised))["escalation_id"]
        [message] = await inbox(bench)
        assert (message["kind"], message["content"]["escalation_id"]) == ("escalation", escalation_id)
        receipt = await sent(bench, "REPLY", {"in_reply_to": escalation_id, "content": "wait"}, BOB)
        [reply] = await inbox(bench, ANN)
        assert (reply["message_id"], reply["thread_id"]) == (receipt["reply_id"], escalation_id[4:])


async def test_confirmations_take_no_reply() -> None:
    async with keeping(methods=METHODS) as bench:
        asked = await notify(bench)
        await sent(bench, "CONFIRM", {"target_id": asked["message_id"], "status": "accepted"}, BOB)
        [told] = await inbox(bench, ANN)
        answer = {"in_reply_to": told["message_id"], "content": "thanks"}
        assert await refusal(bench, "REPLY", answer) == (400, "reply-not-expected")


@rows(
    "name, address",
    ("ann@example.com", "mailto:ann@example.com"),
    ("mailto:ann@example.com", "mailto:ann@example.com"),
    ("https://user@example.com/x", "https://user@example.com/x"),
    ("on-call", "on-call"),
    ("a@b@c", "a@b@c"),
)
def test_a_mailbox_is_an_address(name: str, address: str) -> None:
    assert as_address(name) == address


def test_the_recipients_of_some_names_are_a_part_of_all() -> None:
    found = Recipients(("b" * 64,), ("mailto:a@example.com", "agtp://x.example"), ("news",), 7, {})
    assert found.count == 10
    part = found.of(["a@example.com", "news"])
    assert (part.agents, part.addresses, part.channels) == ((), ("mailto:a@example.com",), ("news",))


def test_a_private_address_is_final_and_hidden_and_an_unknown_name_is_tried_again() -> None:
    outcome = blocked(BlockedAddress("'db.internal' has the address 10.0.0.7, which is a private network"))
    assert isinstance(outcome, Undeliverable)
    assert "10.0.0.7" in outcome.detail
    assert "10.0.0.7" not in outcome.message
    assert isinstance(blocked(BlockedAddress("not found", found=False)), Retry)
