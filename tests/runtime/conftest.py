"""A store, and a server with a store and no endpoints, for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.stateful import StatefulBench, keeping

from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("memory", role="sole")
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def bench() -> AsyncIterator[StatefulBench]:
    async with keeping() as made:
        yield made
