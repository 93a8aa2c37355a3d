"""Idempotency keys on every driver, alone and in groups."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bespeak.state.store.commands.idempotency import (
    Claimed,
    ClaimKey,
    FindKey,
    FinishKey,
    InProgress,
    ListKeys,
    Recorded,
    RecordKey,
    ReleaseKey,
    RenewKey,
    UseNonce,
)
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store

pytestmark = pytest.mark.anyio


class Look(Command, frozen=True):
    """Not grouped, so that a unit with it runs by itself."""

    def steps(self) -> Steps:
        yield Statement("SELECT 1")


def claim(key: str = "k", request: bytes = b"hash", *, lease: float = 30.0, retention: float = 3600.0) -> ClaimKey:
    return ClaimKey("agent /path", key, request, lease, retention)


def finish(fence: int, answer: bytes = b"answer", key: str = "k", retention: float = 3600.0) -> FinishKey:
    return FinishKey("agent /path", key, fence, answer, retention)


def record(answer: bytes = b"answer", key: str = "k", retention: float = 3600.0) -> RecordKey:
    return RecordKey("agent /path", key, b"hash", answer, retention)


@pytest.fixture(params=["grouped", "alone"])
def do(request: pytest.FixtureRequest, store: Store) -> Any:
    """Return the result of one command; on PostgreSQL, run it in both possible ways."""
    more = (Look(),) if request.param == "alone" else ()

    async def do(command: Command) -> Any:
        done = await store.do(command, *more)
        return done if isinstance(done, Conflict) else done[0]

    return do


async def test_claimed_key_reports_its_remaining_lease(do: Any) -> None:
    assert await do(claim()) == Claimed(1)
    again = await do(claim(request=b"another"))
    assert isinstance(again, InProgress)
    assert again.request_hash == b"hash"
    assert 0 < again.seconds <= 30
    assert await do(claim("other")) == Claimed(1)


async def test_answer_is_returned_with_the_hash_of_its_request(do: Any, store: Store) -> None:
    await do(claim())
    assert await do(finish(1, b"\x00answer\xff")) is True
    assert await do(claim(request=b"another")) == Recorded(b"hash", b"\x00answer\xff")
    assert await store.read(FindKey("agent /path", "k")) == Recorded(b"hash", b"\x00answer\xff")


async def test_expired_lease_is_taken_over_by_the_same_request_only(do: Any) -> None:
    await do(claim(lease=0))
    other = await do(claim(request=b"another"))
    assert other == InProgress(b"hash", 0.0)
    assert await do(claim()) == Claimed(2)
    assert isinstance(await do(claim()), InProgress)


async def test_an_old_claim_can_neither_finish_nor_be_released_nor_renewed(do: Any, store: Store) -> None:
    await do(claim(lease=0))
    await do(claim())
    assert await do(finish(1)) == Conflict("lease-lost")
    await do(ReleaseKey("agent /path", "k", 1))
    assert await do(RenewKey("agent /path", "k", 1, 30.0)) is False
    assert isinstance(await store.read(FindKey("agent /path", "k")), InProgress)
    assert await do(finish(2)) is True


async def test_answer_is_stored_once(do: Any) -> None:
    await do(claim())
    await do(finish(1))
    assert await do(finish(1, b"second")) == Conflict("lease-lost")
    assert await do(claim()) == Recorded(b"hash", b"answer")


async def test_released_key_can_be_claimed_at_once(do: Any, store: Store) -> None:
    await do(claim())
    assert await do(ReleaseKey("agent /path", "k", 1)) is None
    assert await store.read(FindKey("agent /path", "k")) is None
    assert await do(claim(request=b"another")) == Claimed(1)


async def test_expired_key_can_be_claimed_and_its_fence_continues(do: Any) -> None:
    await do(claim())
    await do(finish(1, retention=0))
    assert await do(claim(request=b"another")) == Claimed(2)
    assert await do(finish(1)) == Conflict("lease-lost")


async def test_a_renewed_lease_is_not_taken_over(do: Any) -> None:
    await do(claim(lease=0))
    assert await do(RenewKey("agent /path", "k", 1, 30.0)) is True
    assert isinstance(await do(claim()), InProgress)


async def test_an_answer_without_a_claim_is_recorded_once_until_it_expires(do: Any) -> None:
    assert await do(record()) is True
    assert await do(record(b"second")) == Conflict("lease-lost")
    assert await do(claim()) == Recorded(b"hash", b"answer")
    assert await do(record(key="short", retention=0)) is True
    assert await do(record(b"second", key="short")) is True


async def test_abandoned_claim_is_not_found(store: Store) -> None:
    await store.do(claim(lease=0))
    assert await store.read(FindKey("agent /path", "k")) is None


async def test_one_of_many_concurrent_claims_in_one_process_succeeds(store: Store) -> None:
    results = await asyncio.gather(*(store.do(claim()) for _ in range(50)))
    kinds = [type(result[0]) for result in results if not isinstance(result, Conflict)]
    assert (kinds.count(Claimed), kinds.count(InProgress)) == (1, 49)


async def test_one_of_many_concurrent_claims_in_two_processes_succeeds_per_key(first: Store, second: Store) -> None:
    results = await asyncio.gather(
        *(store.do(claim(f"k{number}")) for number in range(40) for store in (first, second, first, second))
    )
    claimed = [result[0] for result in results if not isinstance(result, Conflict) and result[0] == Claimed(1)]
    assert len(claimed) == 40
    assert len(results) == 160


async def test_one_of_many_concurrent_takeovers_succeeds(first: Store, second: Store) -> None:
    await first.do(claim(lease=0))
    results = await asyncio.gather(*(store.do(claim()) for _ in range(10) for store in (first, second)))
    assert [result[0] for result in results if not isinstance(result, Conflict)].count(Claimed(2)) == 1


async def test_keys_that_have_not_expired_are_listed_up_to_a_limit(store: Store) -> None:
    await store.do(claim("a"))
    await store.do(claim("b"))
    await store.do(claim("gone", retention=-1.0))
    assert sorted(map(tuple, await store.read(ListKeys(10)))) == [("agent /path", "a"), ("agent /path", "b")]
    assert len(await store.read(ListKeys(1))) == 1


async def test_value_is_used_once_for_each_kind_until_it_expires(store: Store) -> None:
    assert await store.do(UseNonce("signature", "a", 60.0)) == [True]
    assert await store.do(UseNonce("signature", "a", 60.0)) == Conflict("nonce-used")
    assert await store.do(UseNonce("resume", "a", 60.0)) == [True]
    assert await store.do(UseNonce("signature", "b", 60.0)) == [True]
    await store.do(UseNonce("signature", "c", 0.0))
    assert await store.do(UseNonce("signature", "c", 60.0)) == [True]
    assert await store.do(UseNonce("signature", "c", 60.0)) == Conflict("nonce-used")


@pytest.mark.requirement("CORE-10.1-8")
async def test_one_of_many_concurrent_uses_in_two_processes_succeeds(first: Store, second: Store) -> None:
    uses = [store.do(UseNonce("signature", f"{number}", 60.0)) for number in range(20) for store in (first, second) * 3]
    results = await asyncio.gather(*uses)
    assert (results.count([True]), results.count(Conflict("nonce-used"))) == (20, 100)
