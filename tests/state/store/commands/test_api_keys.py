"""API keys in the store: added once, revoked for ever, their use noted at most once in a while."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.state.store.single import only

from bespeak.state.store.commands.agents import (
    REVISION,
    TOPIC,
    AddApiKey,
    ApiKeyRow,
    ListApiKeys,
    NoteKeyUses,
    RevokeApiKey,
)
from bespeak.state.store.commands.endpoints import ReadRevision
from bespeak.state.store.store import Conflict, Store
from bespeak.state.store.sweeper import PurgeExpired

pytestmark = pytest.mark.anyio

AGENT = "a" * 64


def add(key_id: str = "0123456789ab", lifetime: float | None = 600.0) -> AddApiKey:
    return AddApiKey(key_id, b"\x00digest\xff", AGENT, "ann", "rooms:read, rooms:write", "laptop", lifetime)


async def listed(store: Store) -> ApiKeyRow:
    [row] = await store.read(ListApiKeys())
    assert isinstance(row, ApiKeyRow)
    return row


async def test_a_key_is_added_once_and_listed(store: Store) -> None:
    assert await only(store, add()) is True
    row = await listed(store)
    assert (row.digest, row.agent_id, row.agent, row.name) == (b"\x00digest\xff", AGENT, "ann", "laptop")
    assert row.expires is not None
    assert (round(row.expires - row.created), row.revoked, row.last_used) == (600, None, None)
    assert row.state(time.time()) == "active"
    assert row.state(time.time() + 601) == "expired"
    assert await store.do(add()) == Conflict("key-known", {"key_id": "0123456789ab"})
    assert await store.read(ReadRevision(REVISION)) == 1


@pytest.mark.parametrize("lifetime", [None, 600.0, 1e-6])
async def test_a_revoked_key_has_ended_and_cannot_be_revoked_again(store: Store, lifetime: float | None) -> None:
    await store.do(add(lifetime=lifetime))
    assert await only(store, RevokeApiKey("0123456789ab")) is True
    row = await listed(store)
    assert row.revoked is not None
    assert row.expires is not None
    assert row.expires <= row.revoked
    assert row.state(time.time()) == "revoked"
    assert await only(store, RevokeApiKey("0123456789ab")) is False
    assert await store.do(RevokeApiKey("ffffffffffff")) == Conflict("key-unknown", {"key_id": "ffffffffffff"})
    assert await store.read(ReadRevision(REVISION)) == 2


async def test_a_use_is_noted_once_in_an_interval(store: Store) -> None:
    await store.do(add())
    for at, noted in ((1000.0, 1000.0), (1059.0, 1000.0), (1060.0, 1060.0), (900.0, 1060.0)):
        await store.do(NoteKeyUses({"0123456789ab": at, "ffffffffffff": at}, 60.0))
        assert (await listed(store)).last_used == noted


async def test_a_revocation_wakes_those_who_follow_the_agents(store: Store) -> None:
    await store.do(add())
    woken = asyncio.Event()
    store.watch(TOPIC, woken.set)
    await store.do(RevokeApiKey("0123456789ab"))
    async with asyncio.timeout(30):
        await woken.wait()


async def test_keys_that_ended_long_ago_are_removed_and_others_stay(store: Store) -> None:
    await store.do(add("aaaaaaaaaaaa", 1e-6), add("bbbbbbbbbbbb", None), add("cccccccccccc"))
    await store.do(PurgeExpired())
    assert len(await store.read(ListApiKeys())) == 3
    await store.do(PurgeExpired(kept=0.0))
    assert [row.key_id for row in await store.read(ListApiKeys())] == ["bbbbbbbbbbbb", "cccccccccccc"]
