"""Rows of a Python function, which may return more than was asked: they are selected again."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.data_set import DataColumn
from bespeak.errors import DataSourceError
from bespeak.runtime.data.query import DataQuery
from bespeak.runtime.data.selection import select
from bespeak.runtime.data.source import Described
from bespeak.runtime.functions.foreign_types import dump_foreign
from bespeak.runtime.threads import run_in_thread

MOST_SCANNED: Final = 100_000
"""Rows that a function may return for one page."""

_FEW: Final = 500
"""Rows that are selected without a thread."""


class FunctionSource:
    """Calls a function for each page: `rows()` or `rows(query)`, sync in a thread or async, a list or an iterator."""

    def __init__(self, function: Callable[..., Any], columns: tuple[DataColumn, ...]) -> None:
        self._function = function
        self._columns = columns
        self._takes_query = bool(inspect.signature(function).parameters)

    def describe(self) -> Described:
        return Described(self._columns)

    async def read(self, query: DataQuery, columns: Mapping[str, DataColumn]) -> list[Mapping[str, Any]]:
        arguments = (query,) if self._takes_query else ()
        function = inspect.unwrap(self._function)
        if inspect.isasyncgenfunction(function):
            rows = await _collect(self._function(*arguments))
        elif inspect.iscoroutinefunction(function):
            rows = await _collect(await self._function(*arguments))
        else:
            rows = await run_in_thread(lambda: _take(self._function(*arguments)))
        return await run_in_thread(select, rows, columns, query) if len(rows) > _FEW else select(rows, columns, query)

    async def close(self) -> None:
        pass


async def _collect(rows: Any) -> list[Mapping[str, Any]]:
    if not isinstance(rows, AsyncIterable):
        return _take(rows)
    taken: list[Any] = []
    async for row in rows:
        taken.append(row)
        if len(taken) > MOST_SCANNED:
            break
    return _take(taken)


def _take(rows: Iterable[Any]) -> list[Mapping[str, Any]]:
    taken: list[Mapping[str, Any]] = []
    for row in rows:
        if len(taken) == MOST_SCANNED:
            raise DataSourceError(f"the function returned more than {MOST_SCANNED:,} rows; it should use the filters")
        taken.append(row if isinstance(row, Mapping) else _as_mapping(row))
    return taken


def _as_mapping(row: Any) -> Mapping[str, Any]:
    found = msgspec.to_builtins(row, builtin_types=(), enc_hook=dump_foreign)
    if not isinstance(found, Mapping):
        raise DataSourceError(
            f"the function returned a row of type {type(row).__name__}; a row is a mapping or an object"
        )
    return found
