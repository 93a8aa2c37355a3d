from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.runtime.data.ledger import TYPES

from bespeak.runtime.data.opening import OpenedData

pytestmark = pytest.mark.anyio


async def test_every_source_tells_the_types_of_its_columns(open_ledger: Callable[..., OpenedData]) -> None:
    described = open_ledger().source.describe()
    assert {column.name: column.kind for column in described.columns} == TYPES
    assert described.key in ((), ("id",))
