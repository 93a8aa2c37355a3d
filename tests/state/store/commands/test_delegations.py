"""Hops of delegation in the store: kept once, and found again as a chain."""

from __future__ import annotations

import pytest

from bespeak.state.store.commands.agents import PurgeDelegations, ReadDelegation, ReadDelegationChain, RecordDelegation
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


FIRST = RecordDelegation("d1", A, B, "booking:room, calendar:read", None, "book", 2e9)
SECOND = RecordDelegation("d2", B, C, "booking:room", "d1", None, 1.9e9)


@pytest.mark.requirement("CORE-7.6-4")
async def test_a_chain_is_rebuilt_from_its_last_hop(store: Store) -> None:
    assert await store.do(FIRST, SECOND) == [True, True]
    chain = await store.read(ReadDelegationChain("d2"))
    assert [(hop.delegator, hop.delegate, hop.scope) for hop in chain] == [
        (A, B, "booking:room, calendar:read"),
        (B, C, "booking:room"),
    ]
    found = await store.read(ReadDelegation("d1"))
    assert (found.task, found.parent, found.expires) == ("book", None, 2e9)


async def test_an_id_is_used_once(store: Store) -> None:
    await store.do(FIRST)
    again = RecordDelegation("d1", C, A, "x:y", None, None, 2e9)
    assert await store.do(again) == Conflict("delegation-known", {"delegation_id": "d1"})
    assert (await store.read(ReadDelegation("d1"))).delegator == A


async def test_unrecorded_chain_is_empty_and_a_cycle_ends(store: Store) -> None:
    assert await store.read(ReadDelegation("none")) is None
    assert await store.read(ReadDelegationChain("none")) == []
    await store.do(
        RecordDelegation("d3", A, B, "x:y", "d4", None, 2e9), RecordDelegation("d4", B, A, "x:y", "d3", None, 2e9)
    )
    assert len(await store.read(ReadDelegationChain("d3"))) == 64


async def test_delegations_that_ended_long_ago_are_purged(store: Store) -> None:
    await store.do(FIRST, RecordDelegation("old", A, B, "x:y", None, None, 1000.0))
    assert await store.do(PurgeDelegations(kept=60.0)) == [1]
    assert await store.read(ReadDelegation("old")) is None
    assert await store.read(ReadDelegation("d1")) is not None
