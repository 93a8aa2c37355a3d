"""Messages arrive once, at their time, at most as many as an inbox takes, and can be withdrawn before."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.state.store.single import only

from bespeak.extensions.messages.store import (
    AcknowledgeAlert,
    AckOutbox,
    Advance,
    AdvanceMany,
    Channel,
    ClaimOutbox,
    DropKey,
    FindChannels,
    FindMessage,
    ListMessages,
    ListSubscribers,
    NewMessage,
    NextOutbox,
    OutboxMessage,
    PutAlert,
    PutInChannel,
    PutMessages,
    PutOutbox,
    ReleaseOutbox,
    SetState,
    Withdraw,
    channel_key,
)
from bespeak.state.store.commands.records import ClaimDue, FindRecord, PutRecord, Record
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

LATER = time.time() + 1_000_000.0


def new(name: str, owner: str = "ann", data: str = '{"n":1}', **fields: Any) -> NewMessage:
    return NewMessage(name, owner, data, fields.pop("expires", LATER), **fields)


async def names(store: Store, owner: str = "ann", **fields: Any) -> list[str]:
    return [record.record_id for record, _ in await store.read(ListMessages(owner, **fields))]


async def test_a_message_is_put_once_and_only_its_owner_finds_it(store: Store) -> None:
    assert await only(store, PutMessages((new("msg-1"), new("msg-2", "bob")))) == 2
    assert await only(store, PutMessages((new("msg-1", data="{}"),))) == 0
    assert await only(store, PutMessages((new("msg-1"),), once=True)) == Conflict("exists")
    found: Record = await store.read(FindMessage("msg-1", "ann"))
    assert (found.state, found.data) == ("unread", '{"n":1}')
    assert await store.read(FindMessage("msg-1", "bob")) is None
    assert (await names(store), await names(store, "bob")) == (["msg-1"], ["msg-2"])


async def test_one_sender_takes_only_a_part_of_an_inbox(store: Store) -> None:
    ill, well = (new(f"msg-{n}", sender=sender) for n, sender in enumerate(("eve", "bob")))
    for n in range(10, 12):
        assert await only(store, PutMessages((new(f"msg-{n}", sender="eve"),), share=2)) == 1
    full = Conflict("inbox-full", {"recipients": ["ann"]})
    assert await only(store, PutMessages((ill,), share=2)) == full
    assert await only(store, PutMessages((ill,), share=2, required=False)) == 0
    assert await only(store, PutMessages((well, new("msg-9")), most=20, share=2)) == 2
    assert await only(store, PutMessages((new("msg-8", "carl", sender="eve"),), share=2)) == 1


async def test_messages_before_their_time_and_after_their_end_are_not_there(store: Store) -> None:
    past = time.time() - 10
    await only(store, PutMessages((new("msg-1", at=LATER), new("msg-2", expires=past), new("msg-3", at=past))))
    assert await names(store) == ["msg-3"]
    assert await store.read(FindMessage("msg-1", "ann")) is None


async def test_a_full_inbox_takes_no_more_and_others_do(store: Store) -> None:
    await only(store, PutMessages((new("msg-1"), new("msg-2"))))
    full = Conflict("inbox-full", {"recipients": ["ann"]})
    assert await only(store, PutMessages((new("msg-3"),), most=2)) == full
    assert await only(store, PutMessages((new("msg-3"),), most=2, required=False)) == 0
    assert await only(store, PutMessages((new("msg-3"), new("msg-4", "bob")), most=2)) == 1
    assert await only(store, PutMessages((new("msg-3"),), most=3)) == 1


async def test_pages_follow_each_other_and_filters_choose(store: Store) -> None:
    for number in range(5):
        await only(store, PutMessages((new(f"msg-a{number % 2}-{number}", at=1e9 + number),)))
    first = await store.read(ListMessages("ann", limit=3))
    last = first[-1][0]
    assert [record.record_id for record, _ in first] == ["msg-a0-0", "msg-a1-1", "msg-a0-2"]
    assert await names(store, after=(last.created, last.record_id)) == ["msg-a1-3", "msg-a0-4"]
    assert await names(store, prefix="msg-a1-") == ["msg-a1-1", "msg-a1-3"]
    assert await names(store, state="acknowledged") == []


async def test_messages_come_with_the_content_that_they_share(store: Store) -> None:
    await only(store, PutRecord("brd-1", "broadcast", "bob", "sent", '{"content":"shared"}'))
    await only(store, PutMessages((new("msg-1", data='{"ref":"brd-1"}'), new("msg-2", data='{"ref":"brd-0"}'))))
    assert [origin for _, origin in await store.read(ListMessages("ann"))] == ['{"content":"shared"}', None]


async def test_subscribers_of_a_channel_are_counted_and_listed_in_pages(store: Store) -> None:
    for number in range(3):
        record = PutRecord(f"sub-{number}", "subscription", f"a{number}", "active", "{}")
        await only(store, PutInChannel(record, "news"))
    await only(store, PutInChannel(PutRecord("sub-x", "subscription", "a0", "cancelled", "{}"), "news"))
    await only(store, PutRecord("ent-1", "entity", "bob", "live", "{}", key=channel_key("news")))
    found = await store.read(FindChannels(("news", "cancelled")))
    assert found == {"news": Channel(3, "bob"), "cancelled": Channel(0, None)}
    page = await store.read(ListSubscribers("news", "sub-0", 1))
    assert [subscriber.owner for subscriber in page] == ["a1"]


async def test_what_an_alert_would_send_is_withdrawn_once_it_is_acknowledged(store: Store) -> None:
    held = (PutOutbox("delivery", "mailto:a@example.com", "{}", 60.0), PutOutbox("delivery", "x", "{}"))
    record: Record = await only(store, PutAlert(PutRecord("alert-1", "alert", "bob", "sent", '{"n":1}'), held))
    assert len(record.content()["held"]) == 2
    await only(store, PutMessages((new("msg-1", at=LATER), new("msg-2"))))
    withdrawn = Withdraw(("msg-1", "msg-2"), tuple(record.content()["held"]))
    assert await only(store, AcknowledgeAlert("alert-1", record.data, withdrawn)) is True
    assert await only(store, AcknowledgeAlert("alert-1", record.data, withdrawn)) is False
    assert await only(store, Withdraw(("msg-1", "msg-2"))) == 0
    assert await names(store) == ["msg-2"]
    # What is due already is on its way.
    assert [message.recipient for message in await only(store, ClaimOutbox("delivery", 10, 60.0))] == ["x"]
    assert (await store.read(FindRecord(("alert",), "alert-1"))).state == "acknowledged"


async def test_the_key_of_what_has_ended_can_be_taken_again(store: Store) -> None:
    await only(store, PutRecord("a", "grant", "ann", "cancelled", "{}", key="k"))
    await only(store, DropKey("a"))
    assert isinstance(await only(store, PutRecord("b", "grant", "ann", "granted", "{}", key="k")), Record)


async def test_batches_go_out_only_while_the_claim_and_the_state_hold(store: Store) -> None:
    for name in ("brd-1", "brd-2", "brd-3"):
        await only(store, PutRecord(name, "broadcast", "ann", "sent", "{}", delay=-1.0))
    claimed = await only(store, ClaimDue("broadcast", 10, 30.0))
    assert {record.fence for record in claimed} == {1}
    posting = PutOutbox("delivery", "x", "{}")
    batches = (
        Advance("brd-1", 1, "sent", "done", '{"n":2}', None, None, (new("msg-1"),), (posting,)),
        Advance("brd-2", 0, "sent", "done", "{}", None, None, (new("msg-2"),), (posting,)),
        Advance("brd-3", 1, "paused", "done", "{}", 5.0, None, (new("msg-3"),), ()),
    )
    assert await only(store, AdvanceMany(batches)) == {"brd-1"}
    changed: Record = await store.read(FindRecord(("broadcast",), "brd-1"))
    assert (changed.state, changed.data, changed.due, changed.version) == ("done", '{"n":2}', None, 2)
    assert await names(store) == ["msg-1"]
    assert len(await only(store, ClaimOutbox("delivery", 10, 60.0))) == 1
    again = Advance("brd-3", 1, "sent", "sent", "{}", None, 60.0, (), ())
    assert await only(store, AdvanceMany((again,))) == {"brd-3"}


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


async def test_a_message_that_is_deferred_has_not_been_attempted(store: Store) -> None:
    await store.do(PutOutbox("delivery", "desk", "{}"))
    for _ in range(3):
        claimed: Any = await store.do(ClaimOutbox("delivery", 10, 60.0))
        [message] = claimed[0]
        assert message.attempts == 1
        assert await store.do(ReleaseOutbox(message.position, message.fence, attempted=False)) == [True]
    assert await store.do(ReleaseOutbox(message.position, message.fence, attempted=False)) == [False]


async def test_the_next_message_of_a_topic_is_known(store: Store) -> None:
    assert await store.read(NextOutbox("delivery")) is None
    await store.do(PutOutbox("other", "desk", "{}"), PutOutbox("delivery", "desk", "{}", 50.0))
    assert 40.0 < await store.read(NextOutbox("delivery")) <= 50.0


async def test_a_record_is_marked_only_in_the_state_in_which_it_waits(store: Store) -> None:
    put: Any = await store.do(PutRecord("r", "message", "ann", "queued", "{}"), PutOutbox("delivery", "desk", "{}"))
    position = put[1]
    assert await store.do(AckOutbox(position, 0), SetState("r", "queued", "delivered")) == [True, True]
    assert await store.do(SetState("r", "queued", "failed"), SetState("none", "queued", "failed")) == [False] * 2
    record = await store.read(FindRecord(("message",), "r"))
    assert (record.state, record.version) == ("delivered", 2)
