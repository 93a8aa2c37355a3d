"""A lease is renewed while it is needed, and not if another request has it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bespeak.errors import StoreUnavailableError
from bespeak.runtime.idempotency import Claim, Renewal
from bespeak.state.store.commands.idempotency import ClaimKey, FindKey, InProgress
from bespeak.state.store.sqlite import SqliteStore
from bespeak.state.store.store import Command, Conflict, Then

pytestmark = pytest.mark.anyio

CLAIM = Claim("scope", "key", b"hash", 1)


class Counted(SqliteStore):
    """Tells what came of every renewal; the first one may fail."""

    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(path, **options)
        self.renewed: asyncio.Queue[object] = asyncio.Queue()
        self.failing = False

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        if self.failing:
            self.failing = False
            self.renewed.put_nowait("away")
            raise StoreUnavailableError("away")
        done = await super().do(*commands, then=then)
        if type(commands[0]).__name__ == "RenewKey":
            self.renewed.put_nowait(done)
        return done


async def test_a_lease_is_prolonged_again_and_again_until_it_is_cancelled() -> None:
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 0.01, 1000.0))
    renewal = Renewal(store, CLAIM, 0.01)
    assert [await store.renewed.get() for _ in range(3)] == [[True]] * 3
    renewal.cancel()
    await store.close()


async def test_a_store_that_is_away_for_once_does_not_end_it() -> None:
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 30.0, 1000.0))
    store.failing = True
    renewal = Renewal(store, CLAIM, 0.01)
    assert [await store.renewed.get(), await store.renewed.get()] == ["away", [True]]
    renewal.cancel()
    await store.close()


async def test_a_claim_of_another_request_is_not_renewed() -> None:
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 0.0, 1000.0))
    await store.do(ClaimKey("scope", "key", b"hash", 30.0, 1000.0))
    renewal = Renewal(store, CLAIM, 0.01)
    assert await store.renewed.get() == [False]
    found = store.look(FindKey("scope", "key"))
    assert isinstance(found, InProgress)
    assert found.seconds > 1
    renewal.cancel()
    await store.close()


async def test_a_renewal_that_failed_is_retried_long_before_the_lease_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Counted.in_memory()
    assert isinstance(store, Counted)
    await store.do(ClaimKey("scope", "key", b"hash", 30.0, 1000.0))
    store.failing = True
    pauses = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await real(0)

    monkeypatch.setattr("bespeak.runtime.idempotency.asyncio.sleep", sleep)
    renewal = Renewal(store, CLAIM, 30.0)
    assert [await store.renewed.get(), await store.renewed.get()] == ["away", [True]]
    renewal.cancel()
    assert pauses[:2] == [15.0, 0.5]
    await store.close()
