"""The boundary between data sets and what holds their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bespeak.contract.data_set import DataColumn
from bespeak.runtime.data.query import DataQuery


@dataclass(frozen=True, slots=True)
class Described:
    """What a source says about itself."""

    columns: tuple[DataColumn, ...]
    """Columns with the types they have in the source."""
    key: tuple[str, ...] = ()
    """Columns of the primary key."""


class Source(Protocol):
    """Rows that can be read, by several callers at once. Both methods raise DataSourceError."""

    def describe(self) -> Described:
        """Open the source and return its columns. Blocks; called once, before the server runs."""
        ...

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        """Return the rows of a page, in order, with at least the columns of the query."""
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
