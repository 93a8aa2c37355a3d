"""Every driver keeps the same promises: one suite over all of them."""

from __future__ import annotations

import pytest

from bespeak.store.commands.idempotency import Claimed, ClaimKey, InProgress
from bespeak.store.store import Store

pytestmark = pytest.mark.anyio


async def test_a_key_is_claimed_once(store: Store) -> None:
    claim = ClaimKey("agent /path", "k", b"hash", 30.0, 3600.0)
    assert await store.do(claim) == [Claimed(1)]
    again = await store.do(claim)
    assert isinstance(again, list)
    assert isinstance(again[0], InProgress)
    assert again[0].request_hash == b"hash"
    assert 0 < again[0].seconds <= 30
