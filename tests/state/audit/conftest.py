"""Stores for tests of the audit trail: the drivers of the store's own tests, without a sealer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.state.store.conftest import place, shared_place

from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

__all__ = ["place", "shared_place"]


@pytest.fixture
async def store(place: str) -> AsyncIterator[Store]:
    """Start a store; the test attaches its own sealer."""
    async for opened in _started(place):
        yield opened


@pytest.fixture
async def memory() -> AsyncIterator[Store]:
    """Start a store in memory, for tests that do not depend on the driver."""
    async for opened in _started("memory"):
        yield opened


@pytest.fixture
async def first(shared_place: str) -> AsyncIterator[Store]:
    """Return the store of one process."""
    async for opened in _started(shared_place):
        yield opened


@pytest.fixture
async def second(shared_place: str, first: Store) -> AsyncIterator[Store]:
    """Return the store of another process at the same place."""
    async for opened in _started(shared_place):
        yield opened


async def _started(place: str) -> AsyncIterator[Store]:
    opened = open_store(place)
    try:
        await opened.start()
        yield opened
    finally:
        await opened.close()
