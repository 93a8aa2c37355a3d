"""A store that was written before messages, subscriptions and monitors had columns of their own goes on as before."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.messaging import ANN, BOB, CAT, DAN, METHODS, inbox, sent, subscribe, until_received
from tests.stateful import StatefulBench, keeping

from bespeak.contract.agent import Agent
from bespeak.extensions.messages.store import NewMessage, PutMessages
from bespeak.state.store import sql
from bespeak.state.store.commands.agents import SetAgentStatus
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Conflict, Store
from bespeak.state.store.transfer import ReadTables, examine, export_store, import_store, shapes, upgrade

pytestmark = pytest.mark.anyio

VERSION = 13
ROWS = Path(__file__).with_name("version_13.sql").read_text()
SERVED: dict[str, Any] = {
    "methods": METHODS,
    "agents": tuple(Agent(agent_id=one, name=one[0]) for one in (ANN, BOB, CAT, DAN)),
}


@pytest.fixture
async def earlier(empty_place: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the place of a store whose tables have the earlier version."""
    with monkeypatch.context() as patch:
        earlier = sql.migrations()[:VERSION]
        patch.setattr(sql, "migrations", lambda: earlier)
        for module in ("sqlite_file", "postgres_connection"):
            patch.setattr(f"bespeak.state.store.{module}.CURRENT", VERSION)
        store = open_store(empty_place)
        await store.start()
        await store.close()
    if empty_place.startswith("postgresql:"):
        connection = await asyncpg.connect(empty_place, server_settings={"search_path": "bespeak"})
        await connection.execute(ROWS)
        await connection.close()
    else:
        with sqlite3.connect(empty_place) as file:
            file.executescript(ROWS)
        file.close()
    return empty_place


async def rows(store: Store, wanted: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def take(table: str, page: Any) -> bool:
        names = shapes()[table].columns
        found.extend(dict(zip(names, row, strict=True)) for row in page if table == wanted)
        return True

    await store.read(ReadTables(take))
    return found


def values(records: list[dict[str, Any]], kind: str, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(one[name] for name in names) for one in records if one["kind"] == kind), key=repr)


async def test_what_was_packed_has_columns_of_its_own(earlier: str, tmp_path: Path) -> None:
    assert (await examine(earlier)).version == VERSION
    assert await upgrade(earlier) == VERSION
    store = open_store(earlier)
    await store.start()
    found = await rows(store, "records")
    [scheduled] = [one["record_id"] for one in found if one["state"] == "scheduled"]
    [alert] = [one["record_id"] for one in found if one["kind"] == "alert"]
    assert values(found, "monitor", "state", "key", "target_kind", "target", "target_version") == [
        ("active", None, "agent", BOB, 0),
        ("active", None, "record", alert, 1),
        ("active", None, "record", scheduled, 1),
        ("active", None, "server", "server", 0),
        ("cancelled", None, None, None, None),
    ]
    subscribed = [("active", "news", owner, f"{owner} news") for owner in (BOB, CAT, DAN)]
    wanted = ("state", "channel", "owner", "key")
    assert values(found, "subscription", *wanted) == [*subscribed, ("cancelled", None, DAN, None)]
    ann = NewMessage("", "", "", 0.0, sender=ANN).sender_hash
    # Three of the alert and one of a broadcast; what came through the channel counts to nobody's share.
    sent_hashes = [one["sender_hash"] for one in found if one["kind"] == "message"]
    assert (sent_hashes.count(ann), sent_hashes.count(None)) == (4, 6)
    assert {one["fence"] for one in found if one["kind"] == "message"} == {0}
    events = [len(one["data"]) for one in found if one["kind"] == "log"]
    assert await rows(store, "event_counters") == [{"owner": ANN, "events": len(events), "size": sum(events)}]
    copy = tmp_path / "copy.jsonl"
    with copy.open("wb") as file:
        await export_store(store, file.write)
    await store.close()
    other = open_store("memory")
    await other.start()
    assert not isinstance(await import_store(other, copy), Conflict)
    assert await rows(other, "records") == found
    await other.close()


async def contents(bench: StatefulBench, agent: str, count: int) -> list[Any]:
    return sorted(str(one["content"]) for one in await until_received(bench, count, agent, limit=50))


async def test_messages_arrive_once_and_are_answered_and_confirmed(earlier: str) -> None:
    async with keeping(**SERVED, store=open_store(earlier)) as bench:
        for agent in (CAT, DAN):
            assert await contents(bench, agent, 3) == ["half", "rain", "sun"]
        assert (await contents(bench, BOB, 5))[0] == "half"
        [flood] = [one for one in await inbox(bench, BOB) if one["kind"] == "alert"]
        await sent(bench, "REPLY", {"in_reply_to": flood["message_id"], "content": "pumping"}, BOB)
        await bench.send("CONFIRM", "/", {"target_id": flood["message_id"], "status": "accepted"}, agent=BOB)
        assert [one.state for one in await bench.store.read(ListRecords("alert"))] == ["acknowledged"]
        assert not [one for one in await bench.store.read(ListRecords("message", CAT)) if "alert" in one.data]
        assert "pumping" in await contents(bench, ANN, 1)
        channel = await inbox(bench, BOB, channel="news")
        assert [one["content"] for one in channel] == ["sun", "rain"]


async def test_a_sender_keeps_its_share_of_an_inbox(earlier: str) -> None:
    store = open_store(earlier)
    await store.start()
    more = [PutMessages((NewMessage(f"msg-{one}", BOB, "{}", 9e9, sender=one),), share=2) for one in (ANN, CAT)]
    assert await store.do(more[0]) == Conflict("inbox-full", {"recipients": [BOB]})
    assert await store.do(more[1]) == [1]
    await store.close()


async def test_subscriptions_are_found_and_end(earlier: str) -> None:
    async with keeping(**SERVED, store=open_store(earlier)) as bench:
        body = {"entity_type": "subscription", "data": {"channel": "news"}}
        again = await bench.send("REGISTER", "/", body, agent=BOB)
        assert (again.status, again.error["code"]) == (409, "already-registered")
        own = (await bench.store.read(ListRecords("subscription", BOB)))[0].record_id
        assert (await sent(bench, "CANCEL", {"target_id": own}, BOB))["status"] == "cancelled"
        assert (await sent(bench, "BROADCAST", {"audience": "news", "content": "snow"}))["deliveries"] == 2
        await until_received(bench, 4, DAN)
        assert "snow" not in await contents(bench, BOB, 4)
        await subscribe(bench, BOB)


async def test_monitors_fall_due_are_woken_and_end(earlier: str) -> None:
    async with keeping(**SERVED, store=open_store(earlier)) as bench:
        told = await until_received(bench, 1, ANN)
        assert (told[0]["content"]["value"], told[0]["content"]["previous"]) == ("published", "scheduled")
        [flood] = [one for one in await inbox(bench, BOB) if one["kind"] == "alert"]
        await bench.send("CONFIRM", "/", {"target_id": flood["message_id"], "status": "accepted"}, agent=BOB)
        status = SetAgentStatus(BOB, "SUSPEND", frozenset({"active"}), "suspended", "ops", "-", BOB, "active")
        await bench.store.do(status)
        found = [one["content"] for one in await until_received(bench, 4, ANN) if one["kind"] == "monitor"]
        assert {one["value"] for one in found} == {"published", "acknowledged", "suspended"}
        [health] = [one for one in await bench.store.read(ListRecords("monitor")) if "health" in one.data]
        assert (await sent(bench, "CANCEL", {"target_id": health.record_id}))["status"] == "cancelled"
