"""PUBLISH reaches subscribers, now or after a restart; confirmations and announcements of cases reach one recipient."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.messaging import ANN, BOB, CAT, METHODS, contents, inbox, refusal, sent, soon, subscribe, until_received
from tests.state.store.conftest import shared_place
from tests.stateful import StatefulBench, keeping

from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.messages.posting import TOPIC
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.extensions.messages.store import NextOutbox
from bespeak.state.store.commands.cases import ReadCase
from bespeak.state.store.commands.workers import MeasureQueues
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

__all__ = ["shared_place"]


def body(**fields: Any) -> dict[str, Any]:
    return {"channel": "news", "content": {"title": "Rain"}, "format": "text/markdown", **fields}


@pytest.mark.requirement("METHODS-5.10-2", "METHODS-5.10-3", "METHODS-5.10-8")
async def test_subscribers_and_later_readers_find_it(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await subscribe(bench, BOB)
        receipt = await sent(bench, "PUBLISH", body())
        assert (receipt["status"], receipt["channel"], receipt["subscribers"]) == ("published", "news", 1)
        [message] = await until_received(bench, 1)
        assert (message["content"], message["format"], message["channel"]) == (
            {"title": "Rain"},
            "text/markdown",
            "news",
        )
        assert (message["kind"], message["origin_id"]) == ("publication", receipt["content_id"])
        [kept] = await inbox(bench, CAT, channel="news")
        assert kept["content"] == {"title": "Rain"}
        assert (await inbox(bench, CAT, channel="weather"), await inbox(bench, CAT)) == ([], [])


@pytest.mark.requirement("METHODS-5.10-4")
async def test_a_scheduled_publication_survives_a_restart(shared_place: str) -> None:
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        await subscribe(bench, BOB)
        receipt = await sent(bench, "PUBLISH", body(schedule_at=soon(0.5)))
        assert receipt["status"] == "scheduled"
        assert await inbox(bench) == []
    async with keeping(methods=METHODS, store=open_store(shared_place)) as bench:
        [message] = await until_received(bench, 1)
        assert message["origin_id"] == receipt["content_id"]
        assert (await sent(bench, "CHECK", {"target": receipt["content_id"]}))["status"] == "published"
        published = await bench.send("CANCEL", "/", {"target_id": receipt["content_id"]})
        assert (published.status, published.error["code"]) == (409, "not-cancellable")


@pytest.mark.requirement("METHODS-5.5-8", "METHODS-5.5-6")
async def test_a_scheduled_publication_is_cancelled_and_its_subscribers_are_told() -> None:
    async with keeping(methods=METHODS) as bench:
        await subscribe(bench, BOB)
        receipt = await sent(bench, "PUBLISH", body(schedule_at=soon(0.3)))
        cancelled = await sent(bench, "CANCEL", {"target_id": receipt["content_id"], "notify_parties": True})
        assert cancelled["notified"] == ["news"]
        await sent(bench, "PUBLISH", body(content="second", schedule_at=soon(0.6)))
        told, published = await until_received(bench, 2)
        assert (told["kind"], told["content"]["target_id"]) == ("cancellation", receipt["content_id"])
        assert published["content"] == "second"
        # What was cancelled can be published after all.
        assert (await sent(bench, "PUBLISH", body()))["status"] == "published"


@pytest.mark.requirement("METHODS-5.10-1", "METHODS-5.10-5")
async def test_bad_input_is_refused_and_changes_nothing() -> None:
    async with keeping(methods=METHODS) as bench:
        await sent(bench, "REGISTER", {"entity_type": "channel", "data": {"channel": "own"}}, BOB)
        await sent(bench, "PUBLISH", body(channel="quiet"))
        await until_received(bench, 1, channel="quiet")
        cases = {
            "owned": (body(channel="own"), (403, "channel-refused")),
            "agent": (body(channel=BOB), (403, "channel-refused")),
            "person": (body(channel="operator"), (403, "channel-refused")),
            "past": (body(schedule_at="2001-01-01T00:00:00Z"), (400, "invalid-time")),
            "no time": (body(schedule_at="later"), (400, "invalid-time")),
            "large": (body(content="x" * 70_000), (413, "content-too-large")),
            "control characters": (body(channel="a\x00b"), (422, "input-validation-failed")),
        }
        for name, (given, expected) in cases.items():
            assert await refusal(bench, "PUBLISH", given) == expected, name
        assert await refusal(bench, "PUBLISH", body(channel="quiet")) == (409, "already-published")


async def test_a_channel_belongs_to_whoever_registers_it_first() -> None:
    async with keeping(methods=METHODS) as bench:
        own = {"entity_type": "channel", "data": {"channel": "own"}}
        await sent(bench, "REGISTER", own, BOB)
        assert await refusal(bench, "REGISTER", own, ANN) == (409, "already-registered")
        assert (await sent(bench, "PUBLISH", body(channel="own"), BOB))["status"] == "published"


async def message(bench: StatefulBench) -> str:
    await sent(bench, "NOTIFY", {"recipient": BOB, "content": "hello"})
    message_id: str = (await inbox(bench))[0]["message_id"]
    return message_id


async def confirm(bench: StatefulBench, target_id: str, status: str = "accepted", **fields: Any) -> Any:
    return await bench.send("CONFIRM", "/", {"target_id": target_id, "status": status, **fields}, agent=BOB)


async def test_the_same_confirmation_again_is_the_same_answer(shared_place: str) -> None:
    async with keeping(store=open_store(shared_place)) as bench:
        target_id = await message(bench)
        first = (await confirm(bench, target_id, reason="seen", attestation={"by": "me"})).json["result"]
        assert (await confirm(bench, target_id)).json["result"] == first
        other = await confirm(bench, target_id, "rejected")
        assert (other.status, other.error["code"]) == (409, "already-decided")
        [kept] = await inbox(bench, state="acknowledged")
        assert (kept["confirmed"]["reason"], kept["confirmed"]["attestation"]) == ("seen", {"by": "me"})
        assert len(await inbox(bench, ANN)) == 1


async def test_a_deferred_message_is_read_and_can_still_be_confirmed() -> None:
    async with keeping() as bench:
        target_id = await message(bench)
        assert (await confirm(bench, target_id, "deferred")).status == 200
        assert [one["state"] for one in await inbox(bench)] == ["read"]
        assert (await confirm(bench, target_id, "rejected")).status == 200
        assert [one["state"] for one in await inbox(bench)] == ["declined"]


async def test_of_confirmations_at_the_same_moment_one_counts(shared_place: str) -> None:
    async with keeping(store=open_store(shared_place)) as bench:
        target_id = await message(bench)
        replies = await asyncio.gather(confirm(bench, target_id), confirm(bench, target_id, "rejected"))
        assert sorted(reply.status for reply in replies) == [200, 409]
        assert len(await inbox(bench, ANN)) == 1


HOOK = "http://127.0.0.1:9/hook"
RAISED = {"task_id": "t-1", "reason": "scope_limit", "context": {"amount": 9}}


@pytest.mark.requirement("CORE-4.9-2")
async def test_an_agent_finds_an_escalation_in_its_inbox_once(shared_place: str) -> None:
    async with keeping(store=open_store(shared_place)) as bench:
        raised = {**RAISED, "recipient": BOB, "priority": "urgent"}
        case_id = (await sent(bench, "ESCALATE", raised))["escalation_id"]
        assert (await sent(bench, "ESCALATE", raised))["escalation_id"] == case_id
        [message] = await inbox(bench)
        assert message["content"]["content"]["context"] == {"amount": 9}
        assert (message["sender"], message["urgency"]) == (ANN, "critical")
        confirmed = await sent(bench, "CONFIRM", {"target_id": case_id, "status": "accepted"}, BOB)
        assert confirmed["target_id"] == case_id


@pytest.mark.parametrize("recipient", [None, "operator", "mailto:desk@hotel.example"])
async def test_a_person_is_left_the_case_and_nothing_waits_for_delivery(recipient: str | None) -> None:
    async with keeping() as bench:
        raised = RAISED if recipient is None else {**RAISED, "recipient": recipient}
        case_id = (await sent(bench, "ESCALATE", raised))["escalation_id"]
        assert (await bench.store.read(ReadCase(case_id))).recipient == (recipient or "operator")
        assert await bench.store.read(NextOutbox("escalation")) is None
        assert (await bench.store.read(MeasureQueues(TOPIC))).postings == 0


async def test_an_address_gets_a_posting() -> None:
    document = ServerDocument(
        extension_tables={"delivery": DeliverySettings(recipients=("127.0.0.1",), allow=("127.0.0.1:9",))}
    )
    async with keeping(document=document) as bench:
        case_id = (await sent(bench, "ESCALATE", {**RAISED, "recipient": HOOK}))["escalation_id"]
        [row] = [row for row in await contents(bench) if HOOK in row]
        posting = msgspec.json.decode(next(cell for cell in row if str(cell).startswith("{")))
        assert (posting["posting_id"], posting["content"]["agent_id"]) == (case_id, ANN)
