"""Notifications from other processes, and recovery from missed ones."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
from tests.state.store.relay import relayed

from bespeak.state.store import postgres
from bespeak.state.store.postgres import Listener
from bespeak.state.store.postgres_connection import Address

pytestmark = pytest.mark.anyio


class News:
    """The notifications received."""

    def __init__(self) -> None:
        self.topics: asyncio.Queue[str] = asyncio.Queue()
        self.all: asyncio.Queue[None] = asyncio.Queue()

    def tell_all(self) -> None:
        self.all.put_nowait(None)

    def listener(self, dsn: str) -> Listener:
        return Listener(Address(dsn, "full"), self.topics.put_nowait, self.tell_all)


async def notify(dsn: str, topic: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("SELECT pg_notify('bespeak', $1)", topic)
    await connection.close()


async def test_watcher_is_notified_of_a_changed_topic(postgres_dsn: str) -> None:
    news = News()
    listener = news.listener(postgres_dsn)
    await listener.start()
    await notify(postgres_dsn, "agents")
    assert await asyncio.wait_for(news.topics.get(), 20) == "agents"
    assert news.all.empty()
    await listener.close()


async def test_all_watchers_are_notified_after_a_lost_connection(postgres_dsn: str) -> None:
    news = News()
    async with relayed(postgres_dsn) as (relay, dsn):
        listener = news.listener(dsn)
        await listener.start()
        for topic in ("agents", "outbox"):
            relay.cut()
            await asyncio.wait_for(news.all.get(), 20)
            await notify(postgres_dsn, topic)
            assert await asyncio.wait_for(news.topics.get(), 20) == topic
        await listener.close()


async def test_all_watchers_are_notified_periodically(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "POLL_SECONDS", 0.02)
    news = News()
    listener = news.listener(postgres_dsn)
    await listener.start()
    for _ in range(3):
        await asyncio.wait_for(news.all.get(), 20)
    await listener.close()


async def test_a_listener_that_was_never_started_can_be_closed() -> None:
    await News().listener("postgresql://127.0.0.1:1/nowhere").close()
