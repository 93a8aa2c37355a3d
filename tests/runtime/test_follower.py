"""State that a process reads from the store again whenever it changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.runtime import background
from bespeak.runtime.background import Follower
from bespeak.state.store.commands.endpoints import TOPIC, PutEndpoint, ReadRevision
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(anyio_backend: Any) -> AsyncIterator[Store]:
    opened = SqliteStore.in_memory()
    await opened.start()
    yield opened
    await opened.close()


class Held:
    """A revision, read again after changes; the first readings may fail."""

    def __init__(self, failures: int = 0) -> None:
        self.revision = -1
        self.changed = asyncio.Event()
        self._failures = failures

    async def take_in(self, store: Store) -> None:
        self.revision = await store.read(ReadRevision())
        if self.revision and self._failures:
            self._failures -= 1
            raise StoreUnavailableError("away")
        if self.revision:
            self.changed.set()


async def test_the_store_is_read_at_once_and_after_every_change(store: Store) -> None:
    held = Held()
    following = Follower(TOPIC, held.take_in)
    await following.refresh()
    assert held.revision == -1
    await following.follow(store)
    assert held.revision == 0
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await asyncio.wait_for(held.changed.wait(), 10)
    assert held.revision == 1
    await following.close()


async def test_a_store_that_could_not_be_read_is_asked_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "_PAUSE", 0.01)
    caplog.set_level(logging.INFO)  # the store itself reports that it is away
    held = Held(failures=2)
    following = Follower(TOPIC, held.take_in)
    await following.follow(store)
    await store.do(PutEndpoint("BOOK", "/a", "{}", 0))
    await asyncio.wait_for(held.changed.wait(), 10)
    assert caplog.text.count("could not read the endpoints in the store") == 2
    await following.close()


async def test_copy_that_cannot_be_read_is_stale_until_it_is_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_PAUSE", 0.01)
    store.sole = False
    away = asyncio.Event()
    flips: asyncio.Queue[bool] = asyncio.Queue()

    async def take_in(_: Store) -> None:
        if away.is_set():
            raise StoreUnavailableError("away")

    following = Follower(TOPIC, take_in, stale_after=0.05, flip=flips.put_nowait)
    await following.follow(store)
    away.set()  # and no change is announced: it is read all the same
    assert await asyncio.wait_for(flips.get(), 10) is True
    away.clear()
    assert await asyncio.wait_for(flips.get(), 10) is False
    await following.close()
    assert flips.empty()


async def test_copy_of_a_store_without_other_processes_is_never_stale(store: Store) -> None:
    flips: list[bool] = []
    following = Follower(TOPIC, Held().take_in, stale_after=1e-9, flip=flips.append)
    await following.follow(store)
    for _ in range(10):
        await asyncio.sleep(0)
    await following.close()
    assert flips == []
