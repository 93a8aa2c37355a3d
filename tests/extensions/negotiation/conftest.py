"""A server that negotiates, for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.extensions.negotiation.negotiating import negotiating
from tests.stateful import StatefulBench


@pytest.fixture
async def bench() -> AsyncIterator[StatefulBench]:
    async with negotiating() as made:
        yield made
