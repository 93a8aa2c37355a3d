"""PUBLISH reaches the subscribers of a channel and its later readers, now or at a time that survives a restart."""

from __future__ import annotations

from typing import Any

import pytest
from tests.messaging import ANN, BOB, CAT, METHODS, inbox, refusal, sent, soon, subscribe, until_received
from tests.state.store.conftest import shared_place
from tests.stateful import keeping

from bespeak.state.store.opening import open_store

__all__ = ["shared_place"]
pytestmark = pytest.mark.anyio


def body(**fields: Any) -> dict[str, Any]:
    return {"channel": "news", "content": {"title": "Rain"}, "format": "text/markdown", **fields}


@pytest.mark.requirement("METHODS-5.10-2", "METHODS-5.10-3")
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


@pytest.mark.requirement("METHODS-5.10-5")
async def test_bad_input_is_refused_and_changes_nothing() -> None:
    async with keeping(methods=METHODS) as bench:
        await sent(bench, "REGISTER", {"entity_type": "channel", "data": {"channel": "own"}}, BOB)
        await sent(bench, "PUBLISH", body(channel="quiet"))
        await until_received(bench, 1, channel="quiet")
        cases = {
            "owned": (body(channel="own"), (403, "channel-refused")),
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
