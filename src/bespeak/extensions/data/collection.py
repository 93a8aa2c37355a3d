"""Collections: rows under a name, which methods read whoever keeps them: data sets, entities, imported resources.

Whoever gets a Collection may read it: the authority of the caller is checked when the collection is found, and rows
that the caller must not see are never in it.
"""

from __future__ import annotations

import base64
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from bespeak.contract.data_set import DataColumn
from bespeak.contract.standard.definition import StandardMethod
from bespeak.errors import DataSourceError
from bespeak.extensions.data.endpoints import DataReader, Layout, OpenedData
from bespeak.extensions.data.query import OPERATORS, DataFilter, DataQuery, fits, from_position
from bespeak.protocol import status
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import run_in_thread
from bespeak.runtime.extension import COLLECT
from bespeak.runtime.handling import RefusedError, invalid, passed, refusal

Row = Mapping[str, Any]
Position = tuple[Any, ...]  # place behind a row, of values that JSON has
Order = Sequence[tuple[str, bool]]  # columns to sort by, each with True for descending
MOST_ROWS: Final = 100_000  # rows that a method holds in memory
_MOST_BYTES: Final = 256 << 20  # of these rows as JSON: a hundred thousand rows may have gigabytes
NOT_FOUND: Final = "collection-not-found"
_BATCH: Final = 1000
_MOST_FILTERS: Final = 32
_MOST_VALUES: Final = 100
_LONGEST_CURSOR: Final = 4096
_LONGEST_NAME: Final = 256  # characters of a column: `a.b.c` is followed in every row


class Collection(ABC):
    """Rows under a name. They are JSON objects."""

    kind: ClassVar[str]  # `data`, `entities` or `resources`; `data:orders` names one whose name another has too
    name: str
    columns: Mapping[str, DataColumn]
    """Columns of the rows; empty if they are free-form."""
    nests: ClassVar[bool] = True  # True if `customer.city` names a member of a member

    @abstractmethod
    async def scan(
        self, after: Position | None, limit: int, filters: Sequence[DataFilter] = ()
    ) -> tuple[list[Row], Position | None]:
        """Return rows behind a position that meet filters, and the position to go on from; None at the end.

        The order never changes: a row that is there during the whole scan comes exactly once, whatever is written
        meanwhile. A page may have fewer rows than `limit` before the end. Raises RefusedError.
        """

    @abstractmethod
    def accepts(self, position: Position) -> bool:
        """Return True if a position, which may be forged, is one from which `scan` can go on."""

    async def search(self, filters: Sequence[DataFilter], order: Order, limit: int, offset: int) -> list[Row]:
        """Return rows that meet filters, in an order. Raises RefusedError, also if there are too many to sort."""
        if order:
            return (await run_in_thread(sort_rows, await self.gather(filters), order))[offset : offset + limit]
        rows: list[Row] = []
        async for batch in self.batches(filters):
            rows += batch
            if len(rows) >= offset + limit:
                break
        return rows[offset : offset + limit]

    async def gather(self, filters: Sequence[DataFilter] = (), most: int = MOST_ROWS) -> list[Row]:
        """Return all rows that meet filters; refuse with 422 if there are more than `most`, or too large ones."""
        rows: list[Row] = []
        size = 0
        async for batch in self.batches(filters):
            rows += batch
            size += await run_in_thread(lambda batch: len(msgspec.json.encode(batch)), batch)
            if len(rows) > most or size > _MOST_BYTES:
                reached = f"{most:,} rows" if len(rows) > most else f"{_MOST_BYTES >> 20} MiB of rows"
                message = f"More than {reached} of {self.name} meet the filter; narrow it."
                raise refusal(status.UNPROCESSABLE, "too-many-rows", message, max_rows=most)
        return rows

    async def batches(self, filters: Sequence[DataFilter] = (), size: int = _BATCH) -> AsyncIterator[list[Row]]:
        """Yield the rows that meet filters, some at a time."""
        after: Position | None = None
        while True:
            rows, after = await self.scan(after, size, filters)
            if rows:
                yield rows
            if after is None:
                return

    def check(self, filters: Iterable[DataFilter], order: Order, member: str) -> None:
        """Refuse with 422 what names a column that is not there, or compares it with a value of another type."""
        if not self.columns:
            return
        for name in (*(one.column for one in filters), *(name for name, _ in order)):
            column = self.columns.get(name)
            inner = column is None and self.nests and name.partition(".")[0] in self.columns
            if not inner and (column is None or not column.is_comparable):
                known = ", ".join(column.name for column in self.columns.values() if column.is_comparable)
                raise invalid(member, f"names {name[:80]!r}; {self.name} has {known}.")
        for one in filters:
            column = self.columns.get(one.column)
            for value in one.value if one.op == "in" else [one.value]:
                if column is not None and not fits(column, one.op, value):
                    fault = f"compares {column.name!r} by `{one.op}` with {value!r:.60}, but it is a {column.kind}."
                    raise invalid(member, fault)


class DataCollection(Collection):
    """The rows of a data set: filters and order are those of its source."""

    kind: ClassVar[str] = "data"
    nests: ClassVar[bool] = False

    def __init__(self, reader: DataReader, layout: Layout) -> None:
        self.reader = reader
        self.name = reader.data.name
        self.columns = layout.columns
        self.key = layout.key  # columns that identify a row; empty if none do

    async def scan(
        self, after: Position | None, limit: int, filters: Sequence[DataFilter] = ()
    ) -> tuple[list[Row], Position | None]:
        return passed(await self.reader.scan(after, min(limit, self.reader.data.max_rows), filters))

    def accepts(self, position: Position) -> bool:
        names = self.key or [name for name, column in self.columns.items() if column.is_comparable]
        if len(position) != len(names) + (not self.key):
            return False
        try:
            for name, value in zip(names, position, strict=False):
                from_position(self.columns[name], value)
        except DataSourceError:
            return False
        return bool(self.key) or is_number_of_rows(position[-1])

    async def search(self, filters: Sequence[DataFilter], order: Order, limit: int, offset: int) -> list[Row]:
        most = self.reader.data.max_rows
        if limit > most:
            raise invalid("limit", f"must be at most {most} for {self.name}; got {limit}.")
        query = DataQuery(limit=limit, filters=tuple(filters), order=tuple(order), skip=offset)
        return passed(await self.reader.search(query))


async def collect_data(call: RoutedCall, name: str | None) -> list[Collection]:
    """Return the data sets that the caller may read, or the one of a name.

    QUERY / and SUMMARIZE / answer callers without a scope, even without a credential; the endpoint of a data set does
    not where the policy requires a scope.
    """
    found: list[Collection] = []
    if call.routes.policies.scope_required_for_invocation and not call.principal.scopes:
        return found
    for opened in call.server.registrar.data:
        assert isinstance(opened, OpenedData)
        reader = opened.reader
        if opened.form != "json" or name not in (None, reader.data.name):
            continue
        if not call.principal.scopes.missing(reader.data.required_scopes):
            found.append(DataCollection(reader, passed(await reader.layout())))
    return found


async def list_collections(call: RoutedCall, name: str | None = None) -> list[Collection]:
    """Return the collections that the caller may read, or those of a name."""
    kind, _, rest = (name or "").partition(":")
    collecting = {
        hook.removeprefix(COLLECT): ask for hook, ask in call.server.hooks.items() if hook.startswith(COLLECT)
    }
    if rest and kind in collecting:
        return list(await collecting[kind](call, rest))
    return [one for ask in collecting.values() for one in await ask(call, name)]


async def query_rows(call: RoutedCall, names: Sequence[str] | None, most: int) -> list[tuple[str, list[Row], bool]]:
    """Return the first rows of collections, all or those of these names, and if there are more; for QUERY."""
    wanted: Sequence[str | None] = [None] if names is None else names
    found = {(one.kind, one.name): one for name in wanted for one in await list_collections(call, name)}
    told = []
    for one in found.values():
        rows: list[Row] = []
        async for batch in one.batches():
            rows += batch
            if len(rows) > most:
                break
        told.append((one.name, rows[:most], len(rows) > most))
    return told


async def find_collection(call: RoutedCall, method: StandardMethod, name: str, member: str) -> Collection:
    """Find a collection that the caller may read; those that it may not read do not exist for it: 404."""
    found = await list_collections(call, name)
    if not found:
        known = sorted({one.name for one in await list_collections(call)})
        there = f"there are: {', '.join(known[:50])}" if known else "there is none"
        message = f"There is no collection {name[:80]!r} that this agent may read; {there}."
        raise refusal(method, NOT_FOUND, message, field=f"/{member}", collections=known[:50])
    return found[0]


def choose_fitting(
    collections: Sequence[Collection], filters: Sequence[DataFilter], order: Order, member: str
) -> list[Collection]:
    """Return the collections that have the columns of a query; raise the refusal of the first one if none has."""
    fitting: list[Collection] = []
    refused: RefusedError | None = None
    for collection in collections:
        try:
            collection.check(filters, order, member)
            fitting.append(collection)
        except RefusedError as error:
            refused = refused or error
    if refused is not None and not fitting:
        raise refused
    return fitting


async def read_rows(
    call: RoutedCall, method: StandardMethod, given: Any, member: str, *, most: int = MOST_ROWS
) -> list[Row]:
    """Return the rows that a parameter means: those in it, or those of a collection that it names.

    `orders` names a collection, and `{"collection": "orders", "filter": {...}}` some of its rows.
    """
    if isinstance(given, str | Mapping):
        collection, filters = await find_named(call, method, given, member)
        return await collection.gather(filters, most)
    if len(given) > most:
        raise invalid(member, f"must have at most {most:,} rows; got {len(given):,}.")
    return list(given)


async def find_named(
    call: RoutedCall, method: StandardMethod, given: str | Mapping[str, Any], member: str
) -> tuple[Collection, tuple[DataFilter, ...]]:
    """Find the collection that a parameter names, alone or with a filter, and return it with the filters."""
    named: Mapping[str, Any] = {"collection": given} if isinstance(given, str) else given
    collection = await find_collection(call, method, named["collection"], member)
    filters = read_filters(named.get("filter", {}), member)
    collection.check(filters, (), member)
    return collection, filters


def read_filters(given: Mapping[str, Any], member: str) -> tuple[DataFilter, ...]:
    """Read a filter object: `{"status": "open", "amount": {"min": 10}}`. Raises RefusedError, 422."""
    filters: list[DataFilter] = []
    for name, wanted in given.items():
        if len(name) > _LONGEST_NAME:
            message = f"names a column of {len(name):,} characters; names have at most {_LONGEST_NAME}: {name[:80]!r}."
            raise invalid(member, message)
        for op, value in wanted.items() if isinstance(wanted, Mapping) else (("eq", wanted),):
            if op not in OPERATORS:
                raise invalid(member, f"has the operator {op[:40]!r} for {name[:80]!r}; use {', '.join(OPERATORS)}.")
            values = value if op == "in" else [value]
            plain = isinstance(values, list) and all(isinstance(one, str | int | float) for one in values)
            if not plain or not 0 < len(values) <= _MOST_VALUES:
                form = f"a list of up to {_MOST_VALUES} of them" if op == "in" else "one of them"
                raise invalid(member, f"compares {name[:80]!r} by `{op}`, which takes texts, numbers or flags: {form}.")
            filters.append(DataFilter(name, op, value))
    if len(filters) > _MOST_FILTERS:
        raise invalid(member, f"must have at most {_MOST_FILTERS} conditions; got {len(filters)}.")
    return tuple(filters)


def read_order(given: str | Sequence[str], member: str) -> Order:
    """Read what rows are sorted by: names, of which `-` before one is descending."""
    names = [given] if isinstance(given, str) else given
    return [(name.removeprefix("-"), name.startswith("-")) for name in names]


def value_of(row: Row, name: str) -> Any:
    """Return a member of a row; `customer.city` is a member of a member, unless the row has that very name."""
    if name in row or "." not in name:
        return row.get(name)
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def meets(row: Row, filters: Iterable[DataFilter]) -> bool:
    """Return True if a free-form row meets all filters. A value of another type than that of the filter does not."""
    return all(_OPERATORS[one.op](value_of(row, one.column), one.value) for one in filters)


def _rank(value: Any) -> int:
    """Return a number for the type of a value: only values of one type are compared. In JSON, true is not 1."""
    return 1 if isinstance(value, bool) else 2 if isinstance(value, int | float) else 3 if isinstance(value, str) else 0


def _equals(own: Any, value: Any) -> bool:
    return bool(own == value) and _rank(own) == _rank(value)


_OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": _equals,
    "min": lambda own, value: _rank(own) == _rank(value) and own >= value,
    "max": lambda own, value: _rank(own) == _rank(value) and own <= value,
    "contains": lambda own, value: isinstance(own, str) and str(value).lower() in own.lower(),
    "in": lambda own, values: any(_equals(own, value) for value in values),
}


def sort_rows(rows: list[Row], order: Order) -> list[Row]:
    """Sort free-form rows: by type, then by value; rows without a value that can be compared come last."""
    for name, descending in reversed(order):
        known = [row for row in rows if _rank(value_of(row, name))]
        rest = [row for row in rows if not _rank(value_of(row, name))]
        known.sort(key=lambda row: (_rank(value_of(row, name)), value_of(row, name)), reverse=descending)
        rows = known + rest
    return rows


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    digest: str
    position: tuple[bool | int | float | str | None, ...]


def write_cursor(call: RoutedCall, about: Any, position: Position) -> str:
    """Return a cursor of the caller for a position; `about` tells the queries apart in which positions differ."""
    text = msgspec.json.encode(_Cursor(_digest(call, about), position))
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def is_number_of_rows(value: Any) -> bool:
    """Return True if a value of a position, which may be forged, is a number that a database takes."""
    return type(value) is int and 0 <= value < 1 << 63


def read_cursor(
    call: RoutedCall, method: StandardMethod, about: Any, text: str, accepts: Callable[[Position], bool]
) -> Position:
    """Return the position of a cursor; refuse one that was made for another query or another agent."""
    try:
        assert len(text) <= _LONGEST_CURSOR
        cursor = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Cursor)
        assert cursor.digest == _digest(call, about)
        assert accepts(cursor.position)
    except (ValueError, msgspec.MsgspecError, AssertionError):
        message = "Repeat the `cursor` of the last answer as it was, with the same parameters and the same agent."
        raise refusal(method, "invalid-cursor", message, field="/cursor") from None
    return cursor.position


def _digest(call: RoutedCall, about: Any) -> str:
    asked = msgspec.json.encode([call.agent_id, call.server.registrar.service.identity.server_id, about])
    return hashlib.sha256(asked).hexdigest()[:16]
