"""REPLY answers a message in its thread, once, and reaches only its author."""

from __future__ import annotations

from typing import Any

import pytest
from tests.messaging import ANN, BOB, CAT, METHODS, inbox, refusal, sent
from tests.stateful import StatefulBench, keeping

from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio


async def notify(bench: StatefulBench) -> dict[str, Any]:
    await sent(bench, "NOTIFY", {"recipient": BOB, "content": "free at ten?"})
    [message] = await inbox(bench)
    return message


@pytest.mark.requirement("METHODS-7.3-3", "METHODS-7.3-4")
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
