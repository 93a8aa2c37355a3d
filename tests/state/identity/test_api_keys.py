"""API keys: what proves an agent, and what costs a server nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.state.identity.issuer import Clock

from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.identity.credentials import USE_EVERY, ApiKeys, Authenticated, NewKey, Outdated, make_key
from bespeak.state.store.commands.agents import AddApiKey, ListApiKeys, RevokeApiKey
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

AGENT = "a" * 64


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("memory", role="sole")
    await opened.start()
    yield opened
    await opened.close()


async def added(store: Store, lifetime: float | None = 600.0) -> NewKey:
    made = make_key()
    await store.do(AddApiKey(made.key_id, made.digest, AGENT, "ann", "rooms:read, rooms:write", "", lifetime))
    return made


async def loaded(store: Store, clock: Clock | None = None) -> ApiKeys:
    keys = ApiKeys() if clock is None else ApiKeys(clock=clock)
    await keys.load(store)
    return keys


def code_of(found: object) -> str:
    assert isinstance(found, Refused)
    assert found.status == 401
    return found.code


def test_no_two_keys_are_alike_and_the_store_gets_neither_key_nor_secret() -> None:
    one, other = make_key(), make_key()
    assert re.fullmatch(r"bsk_[0-9a-f]{12}_[0-9a-f]{48}", one.text)
    assert one.text.split("_")[1] == one.key_id
    assert one.key_id != other.key_id
    assert one.digest != other.digest
    assert one.text.split("_")[2].encode() not in one.digest


async def test_a_key_proves_its_agent_with_its_scopes_and_end(store: Store) -> None:
    made = await added(store)
    keys = await loaded(store)
    [row] = await store.read(ListApiKeys())
    found = keys.verify(made.text)
    assert isinstance(found, Authenticated)
    assert (found.agent_id, found.verified, found.key_id) == (AGENT, "key", made.key_id)
    assert (list(found.scopes or ()), found.expires_at) == (["rooms:read", "rooms:write"], row.expires)
    assert keys.verify(made.text) is found
    assert made.text.split("_")[2] not in repr(found)
    await keys.close()


async def test_a_key_ends_at_its_time_and_at_its_revocation(store: Store) -> None:
    short, never = await added(store), await added(store, None)
    [row] = [row for row in await store.read(ListApiKeys()) if row.key_id == short.key_id]
    clock = Clock(row.expires - 0.001)
    keys = await loaded(store, clock)
    assert isinstance(keys.verify(short.text), Authenticated)
    clock.now = row.expires
    assert code_of(keys.verify(short.text)) == "key-expired"
    assert isinstance(keys.verify(never.text), Authenticated)
    assert (keys.lasts(short.key_id), keys.lasts(never.key_id), keys.lasts("f" * 12)) == (False, True, False)
    await store.do(RevokeApiKey(never.key_id))
    assert await keys.load(store)
    assert code_of(keys.verify(never.text)) == "key-revoked"
    assert not keys.lasts(never.key_id)
    assert not await keys.load(store)
    await keys.close()


async def test_a_wrong_secret_tells_nothing_about_the_key(store: Store) -> None:
    made, ended = await added(store), await added(store)
    await store.do(RevokeApiKey(ended.key_id))
    keys = await loaded(store)
    for key_id in (made.key_id, ended.key_id):
        assert code_of(keys.verify(f"bsk_{key_id}_{'0' * 48}")) == "key-unknown"


async def test_strangers_cannot_make_the_server_ask_its_store_for_every_unknown_key(store: Store) -> None:
    keys = await loaded(store, Clock(1000.0))
    looks = 0

    async def look() -> None:
        nonlocal looks
        looks += 1
        await keys.load(store)

    keys.reload = look
    for _ in range(3):
        assert isinstance(keys.verify(make_key().text), Outdated)
        await asyncio.gather(*(keys.refresh() for _ in range(1000)))
    assert looks == 3
    assert code_of(ApiKeys().verify(make_key().text)) == "key-unverifiable"


async def test_a_use_is_written_once_a_minute_and_at_the_end(store: Store) -> None:
    made, clock = await added(store, None), Clock(1000.0)
    keys = await loaded(store, clock)
    for seconds, noted in ((0.0, 1000.0), (USE_EVERY - 1, 1000.0), (1.0, 1060.0)):
        clock.now += seconds
        assert isinstance(keys.verify(made.text), Authenticated)
        await keys.close()
        [row] = await store.read(ListApiKeys())
        assert row.last_used == noted


@rows("text", "", "bsk_", "bsk__", "bsk_0123456789ab", "bsk_0123456789ab_", "bsk_0123456789AB_" + "0" * 48, "bsk_é_é")
def test_what_is_no_key_is_refused_by_its_form(text: str) -> None:
    assert code_of(ApiKeys().verify(text)) == "key-malformed"


@given(st.text() | st.from_regex(r"bsk_[0-9a-f]{12}_[0-9a-f]{48}") | st.text("bsk_0af").map(lambda rest: f"bsk_{rest}"))
def test_no_text_passes_for_a_key(text: str) -> None:
    assert code_of(ApiKeys().verify(text)) in ("key-malformed", "key-unverifiable")
