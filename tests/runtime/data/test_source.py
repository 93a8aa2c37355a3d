from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.runtime.data.ledger import TYPES

from bespeak.runtime.data.endpoints import OpenedData

pytestmark = pytest.mark.anyio


async def test_every_source_tells_the_types_of_its_columns(open_ledger: Callable[..., OpenedData]) -> None:
    described = open_ledger().source.describe()
    assert {column.name: column.kind for column in described.columns} == TYPES
    assert described.key in ((), ("id",))


async def test_columns_that_lack_values_are_published_as_such(
    open_ledger: Callable[..., OpenedData], kind: str
) -> None:
    row = open_ledger().endpoint.output_schema["properties"]["rows"]["items"]["properties"]
    lacking = {name for name, schema in row.items() if "null" in schema["type"]}
    # A table says which columns may be null, a file which are, and a function what is declared.
    tables = {"amount", "booked", "changed_at", "memo", "pending"}
    files = {"amount", "memo", "pending"}
    assert lacking == (set() if kind in ("function", "async") else tables if kind in ("sqlite", "postgres") else files)
