"""The outbox: each message has one deliverer at a time, and leaves when it was delivered."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.state.store.commands.messages import AckOutbox, ClaimOutbox, OutboxMessage, PutOutbox, ReleaseOutbox
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio


async def put(store: Store, *payloads: str, topic: str = "escalation", delay: float = 0.0) -> None:
    done = await store.do(*(PutOutbox(topic, "desk", payload, delay) for payload in payloads))
    assert not isinstance(done, Conflict)


async def claim(store: Store, limit: int = 10, lease: float = 60.0) -> list[OutboxMessage]:
    done: Any = await store.do(ClaimOutbox("escalation", limit, lease))
    found: list[OutboxMessage] = done[0]
    return found


async def test_messages_are_claimed_in_order_and_exclusively_during_the_lease(store: Store) -> None:
    await put(store, "1", "2", "3")
    first = await claim(store, limit=2)
    assert [(message.payload, message.recipient, message.attempts) for message in first] == [
        ("1", "desk", 1),
        ("2", "desk", 1),
    ]
    assert [message.payload for message in await claim(store)] == ["3"]
    assert await claim(store) == []


async def test_only_messages_of_the_topic_that_are_due_are_claimed(store: Store) -> None:
    await put(store, "later", delay=60.0)
    await put(store, "other", topic="notification")
    assert await claim(store) == []


async def test_message_is_due_after_its_lease_and_the_old_claim_is_void(store: Store) -> None:
    await put(store, "1")
    [old] = await claim(store, lease=0.0)
    [new] = await claim(store)
    assert (new.position, new.attempts) == (old.position, 2)
    assert await store.do(AckOutbox(old.position, old.fence)) == Conflict("lease-lost")
    assert await store.do(ReleaseOutbox(old.position, old.fence)) == [False]
    assert await store.do(AckOutbox(new.position, new.fence)) == [True]
    assert await store.do(AckOutbox(new.position, new.fence)) == Conflict("lease-lost")


async def test_a_released_message_is_claimed_again_after_its_delay_only(store: Store) -> None:
    await put(store, "1", "2")
    first, second = await claim(store)
    assert await store.do(ReleaseOutbox(first.position, first.fence)) == [True]
    assert await store.do(ReleaseOutbox(second.position, second.fence, 60.0)) == [True]
    assert await store.do(AckOutbox(first.position, first.fence)) == Conflict("lease-lost")
    assert [(message.payload, message.attempts) for message in await claim(store)] == [("1", 2)]


async def test_two_processes_never_hold_the_same_message(first: Store, second: Store) -> None:
    await put(first, *map(str, range(20)))
    one, two = await claim(first, limit=12), await claim(second, limit=12)
    assert (len(one), len(two)) == (12, 8)
    assert {message.position for message in one}.isdisjoint(message.position for message in two)


async def test_message_of_a_failed_unit_is_not_stored(store: Store) -> None:
    done = await store.do(PutOutbox("escalation", "desk", "1"), AckOutbox(999_999, 1))
    assert done == Conflict("lease-lost")
    assert await claim(store) == []
