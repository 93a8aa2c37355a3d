"""Values that may be used once, on every driver."""

from __future__ import annotations

import asyncio

import pytest

from bespeak.state.store.commands.idempotency import UseNonce
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio


async def test_a_value_is_used_once_for_each_kind(store: Store) -> None:
    assert await store.do(UseNonce("signature", "a", 60.0)) == [True]
    assert await store.do(UseNonce("signature", "a", 60.0)) == Conflict("nonce-used")
    assert await store.do(UseNonce("resume", "a", 60.0)) == [True]
    assert await store.do(UseNonce("signature", "b", 60.0)) == [True]


async def test_an_expired_value_may_be_used_again(store: Store) -> None:
    await store.do(UseNonce("signature", "a", 0.0))
    assert await store.do(UseNonce("signature", "a", 60.0)) == [True]
    assert await store.do(UseNonce("signature", "a", 60.0)) == Conflict("nonce-used")


@pytest.mark.requirement("CORE-10.1-8")
async def test_one_of_many_concurrent_uses_in_two_processes_succeeds(first: Store, second: Store) -> None:
    uses = [store.do(UseNonce("signature", f"{number}", 60.0)) for number in range(20) for store in (first, second) * 3]
    results = await asyncio.gather(*uses)
    assert (results.count([True]), results.count(Conflict("nonce-used"))) == (20, 100)
