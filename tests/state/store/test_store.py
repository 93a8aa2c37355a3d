"""What every store promises, whichever database it is on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.commands.idempotency import Claimed, ClaimKey, UseNonce
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Command, Conflict, Notify, Statement, Steps, Store
from bespeak.state.store.transfer import CountRows

pytestmark = pytest.mark.anyio


class WriteAndRefuse(Command, frozen=True):
    guards: ClassVar[bool] = True

    def steps(self) -> Steps:
        yield Statement("INSERT INTO nonces (kind, value, expires) VALUES ('late', 'x', 0)")
        yield Notify("late")
        return Conflict("late")


class Broken(Command, frozen=True):
    def steps(self) -> Steps:
        yield Statement("SELECT nothing FROM nowhere")


async def test_unit_is_atomic(store: Store) -> None:
    assert await store.do(UseNonce("k", "a", 60), UseNonce("k", "b", 60)) == [True, True]
    assert await store.do(UseNonce("k", "c", 60), UseNonce("k", "a", 60)) == Conflict("nonce-used")
    assert await store.do(WriteAndRefuse()) == Conflict("late")
    with pytest.raises(StoreError):
        await store.do(UseNonce("k", "d", 60), Broken())
    assert await store.read(CountRows("nonces")) == 2


async def test_empty_unit_does_nothing(store: Store) -> None:
    assert list(await store.do()) == []  # type: ignore[arg-type]


async def test_commands_made_from_the_results_belong_to_the_same_transaction(store: Store) -> None:
    def then(results: Sequence[Any]) -> Sequence[Command]:
        assert results == [True]
        return [ClaimKey("s", "k", b"", 30, 60)]

    assert await store.do(UseNonce("k", "a", 60), then=then) == [True, Claimed(1)]
    refused = await store.do(UseNonce("k", "b", 60), then=lambda _: [UseNonce("k", "a", 60)])
    assert refused == Conflict("nonce-used")
    assert await store.read(CountRows("nonces")) == 1


async def test_one_of_many_concurrent_claims_succeeds(store: Store) -> None:
    outcomes = await asyncio.gather(*(store.do(UseNonce("k", "one", 60)) for _ in range(50)))
    assert sorted(map(str, outcomes)) == sorted([str([True])] + [str(Conflict("nonce-used"))] * 49)


async def test_a_failed_unit_leaves_the_store_in_order(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(store.do(Broken() if number % 5 == 0 else UseNonce("k", str(number), 60)) for number in range(50)),
        return_exceptions=True,
    )
    assert [isinstance(outcome, StoreError) for outcome in outcomes] == [number % 5 == 0 for number in range(50)]
    assert await store.read(CountRows("nonces")) == 40


async def test_closed_store_refuses_at_once(place: str) -> None:
    store = open_store(place)
    await store.start()
    await store.close()
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(store.do(UseNonce("k", "a", 60)), 10)
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(store.read(CountRows("nonces")), 10)
    await store.close()


async def test_committed_changes_are_visible_to_the_next_process(shared_place: str) -> None:
    for expected in ([True], Conflict("nonce-used")):
        store = open_store(shared_place)
        await store.start()
        assert await store.do(UseNonce("k", "a", 60)) == expected
        await store.close()
