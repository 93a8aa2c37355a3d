"""Deliverers defer what they do not attempt, know when something is due, and mark what waits for them."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.state.store.commands.messages import AckOutbox, ClaimOutbox, DeferOutbox, MarkRecord, NextOutbox, PutOutbox
from bespeak.state.store.commands.records import FindRecord, PutRecord
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def test_a_message_that_is_deferred_has_not_been_attempted(store: Store) -> None:
    await store.do(PutOutbox("delivery", "desk", "{}"))
    for _ in range(3):
        claimed: Any = await store.do(ClaimOutbox("delivery", 10, 60.0))
        [message] = claimed[0]
        assert message.attempts == 1
        assert await store.do(DeferOutbox(message.position, message.fence)) == [True]
    assert await store.do(DeferOutbox(message.position, message.fence)) == [False]


async def test_the_next_message_of_a_topic_is_known(store: Store) -> None:
    assert await store.read(NextOutbox("delivery")) is None
    await store.do(PutOutbox("other", "desk", "{}"), PutOutbox("delivery", "desk", "{}", 50.0))
    assert 40.0 < await store.read(NextOutbox("delivery")) <= 50.0


async def test_a_record_is_marked_only_in_the_state_in_which_it_waits(store: Store) -> None:
    put: Any = await store.do(PutRecord("r", "message", "ann", "queued", "{}"), PutOutbox("delivery", "desk", "{}"))
    position = put[1]
    assert await store.do(AckOutbox(position, 0), MarkRecord("r", "queued", "delivered")) == [True, True]
    assert await store.do(MarkRecord("r", "queued", "failed"), MarkRecord("none", "queued", "failed")) == [False] * 2
    record = await store.read(FindRecord(("message",), "r"))
    assert (record.state, record.version) == ("delivered", 2)
