"""The trail in a store, page by page."""

from __future__ import annotations

import pytest
from tests.state.audit.trails import ANN, BOB, append, make_checkpointer, make_sealer

from bespeak.state.audit.trail import StoreTrail
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


async def test_records_are_read_in_order_for_any_page_size(store: Store) -> None:
    sealer = make_sealer()
    store.attach(sealer)
    written = [record.audit_id for record in await append(store, [ANN, BOB, "", ANN, BOB])]
    checkpoints = await make_checkpointer(store, sealer).write()
    for page in (1, 2, 5, 100):
        trail = StoreTrail(store, page=page)
        assert [record.audit_id async for record in trail.records()] == written
        assert [checkpoint.checkpoint_id async for checkpoint in trail.checkpoints()] == checkpoints


async def test_records_and_checkpoints_are_found_by_their_ids(store: Store) -> None:
    sealer = make_sealer()
    store.attach(sealer)
    [record] = await append(store, [ANN])
    [checkpoint_id] = await make_checkpointer(store, sealer).write()
    trail = StoreTrail(store)
    found, checkpoint = await trail.find(record.audit_id), await trail.find_checkpoint(checkpoint_id)
    assert found is not None
    assert checkpoint is not None
    assert (found.agent_id, found.jws) == (ANN, record.jws)
    assert await trail.find("0" * 64) is None
    assert await trail.find_checkpoint("0" * 64) is None
    assert await trail.agents() == 1
