"""Endpoints of data classes: filters, orders, cursors and formats, whatever the source."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.extensions.data.ledger import COLUMNS, ROWS, column, data_set, opened, reader, shown

from bespeak.contract.data_set import DataSet, read_column
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.errors import DataSourceError
from bespeak.extensions.data.endpoints import OpenedData
from bespeak.extensions.data.query import (
    LONGEST_CURSOR,
    DataFilter,
    DataQuery,
    from_position,
    read_cursor,
    select,
    to_comparable,
    to_json,
    to_position,
    write_cursor,
)

pytestmark = pytest.mark.anyio

Read = Callable[..., Any]
ATTACK = "'; DROP TABLE ledger; --"


def ids(page: dict[str, Any]) -> list[int]:
    return [row["id"] for row in page["rows"]]


async def test_all_rows_come_in_order_and_only_with_the_fields_asked_for(read: Read) -> None:
    page = await read()
    assert set(page) == {"rows"}
    assert [shown(row) for row in page["rows"]] == [shown(row) for row in ROWS]
    page = await read(fields=["memo", "account"], order="-amount", limit=2)
    assert page["rows"] == [{"memo": "100% _ \\", "account": "a-1"}, {"memo": "Rent", "account": "a-1"}]


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({"id": 3}, [3]),
    ({"id_in": [5, 1, 77]}, [1, 5]),
    ({"account": "a-1"}, [1, 2, 4, 6]),
    ({"account": "A-1"}, []),
    ({"account_in": ["b-2", "c-3"]}, [3, 5]),
    ({"amount": 10.5}, [1, 4]),
    ({"amount_min": 0.1, "amount_max": 11}, [1, 4, 5]),
    ({"amount_max": -3}, [2]),
    ({"amount_min": 10**400}, []),
    ({"id_max": 10**30}, [1, 2, 3, 4, 5, 6]),
    ({"id_min": 2**63}, []),
    ({"booked": "2026-01-02"}, [2, 3]),
    ({"booked_from": "2026-01-02", "booked_to": "2026-01-31"}, [2, 3, 4]),
    ({"changed_at": "2026-01-02T10:30:00+01:00"}, [2]),
    ({"changed_at_from": "2026-01-02T09:30:00Z", "changed_at_to": "2026-01-03T08:00:00Z"}, [2, 3]),
    ({"memo": "Rent"}, [1]),
    ({"memo_contains": "RENT"}, [1, 4]),
    ({"memo_contains": "ärger"}, [3]),
    ({"memo_contains": "%"}, [6]),
    ({"memo_contains": "_"}, [6]),
    ({"memo_contains": "\\"}, [6]),
    ({"pending": False}, [1, 3, 4, 6]),
    ({"pending": True, "account": "a-1"}, [2]),
    ({"account": ATTACK}, []),
    ({"account": '" OR 1=1 --'}, []),
    ({"memo_contains": ATTACK}, [3]),
    ({"account_in": [ATTACK, "a-1' OR 'a'='a"]}, []),
]


async def test_filters_select_the_same_rows_everywhere(read: Read, kind: str) -> None:
    # PostgreSQL lowers letters by the locale of the database, and that of the tests is C.
    filters = [one for one in FILTERS if kind != "postgres" or "ärger" not in one[0].values()]
    assert [(values, ids(await read(**values))) for values, _ in filters] == filters
    assert len((await read())["rows"]) == len(ROWS)


ORDERS = [
    ("-id", [6, 5, 4, 3, 2, 1]),
    ("amount", [2, 5, 1, 4, 6, 3]),
    ("-amount", [6, 1, 4, 5, 2, 3]),
    ("-booked", [6, 5, 4, 2, 3, 1]),
    ("changed_at", [1, 2, 3, 4, 5, 6]),
    ("-changed_at", [6, 5, 4, 3, 2, 1]),
    ("pending", [1, 3, 4, 6, 2, 5]),
]


async def all_pages(read: Read, order: str, limit: int) -> list[int]:
    found, cursor = list[int](), dict[str, str]()
    while True:
        page = await read(order=order, limit=limit, **cursor)
        found += ids(page)
        assert len(page["rows"]) <= limit
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize("limit", [1, 4])
async def test_pages_put_together_are_the_whole(read: Read, limit: int) -> None:
    assert [(order, await all_pages(read, order, limit)) for order, _ in ORDERS] == ORDERS


async def test_equal_rows_without_a_key_are_all_delivered(open_ledger: Callable[..., OpenedData], kind: str) -> None:
    if kind in ("sqlite", "postgres"):
        pytest.skip("its table has a primary key")
    same = [*ROWS[:2], ROWS[0], ROWS[0], *ROWS[2:], ROWS[2]]
    read = reader(open_ledger(rows=same, key=()))
    for limit in (1, 2, 3, 5):
        assert sorted(await all_pages(read, "memo", limit)) == sorted(row["id"] for row in same)


async def test_rows_that_are_deleted_between_pages_do_not_hide_others(tmp_path: Path) -> None:
    rows = list(ROWS)
    read = reader(opened(data_set("function", tmp_path, rows=rows)))
    page = await read(limit=2)
    del rows[:2]
    assert ids(await read(limit=2, cursor=page["next_cursor"])) == [3, 4]


async def test_csv_has_a_line_of_names_and_quotes_what_needs_it(open_ledger: Callable[..., OpenedData]) -> None:
    one = open_ledger(at=1, formats=("json", "csv"))
    page = await reader(one)(fields=["id", "memo"])
    assert set(page) == {"csv"}
    found = list(csv.reader(io.StringIO(page["csv"])))
    assert found == [["id", "memo"], *([str(row["id"]), row["memo"] or ""] for row in ROWS)]


async def test_answers_fit_the_output_schema(open_ledger: Callable[..., OpenedData]) -> None:
    for form in ("json", "csv"):
        one = open_ledger(formats=(form,))
        output = compile_schema(one.endpoint.output_schema)
        assert isinstance(output, Validator)
        for values in ({}, {"limit": 1}):
            assert output.violations(await reader(one)(**values)) == []


async def test_text_of_more_rows_than_a_page_is_refused_unless_pages_are_asked_for(tmp_path: Path) -> None:
    read = reader(opened(data_set("function", tmp_path, formats=("csv",), max_rows=4)))
    refused = await read()
    assert (refused.status, refused.code) == (422, "too-many-rows")
    page = await read(limit=4)
    assert "next_cursor" in page
    assert len((await read(limit=4, cursor=page["next_cursor"]))["csv"].splitlines()) == 4


async def test_cells_are_json_unless_they_are_texts(tmp_path: Path) -> None:
    page = await reader(opened(data_set("function", tmp_path, formats=("csv",))))(id=2)
    assert page["csv"].splitlines()[1] == "2,a-1,-3.0,2026-01-02,2026-01-02T09:30:00Z,,true"


@pytest.mark.parametrize("geometry", [("lon", "lat"), ("place",)])
async def test_geojson_is_a_feature_collection(geometry: tuple[str, ...]) -> None:
    point = {"type": "Point", "coordinates": [8.5, 47.4]}
    rows = [{"name": "Zürich", "lon": 8.5, "lat": 47.4, "place": point}, {"name": "nowhere"}]
    types = {"name": "string", "lon": "number", "lat": "number", "place": "object"}
    data = DataSet(
        name="location",
        formats=("geojson",),
        sensitivity="low",
        target=lambda: rows,
        columns=tuple(read_columns(types)),
        geometry=geometry,
        key=("name",),
    )
    page = await reader(opened(data))(fields=["name"])
    assert page == {
        "geojson": {
            "type": "FeatureCollection",
            "features": [
                {"type": "Feature", "geometry": point, "properties": {"name": "Zürich"}},
                {"type": "Feature", "geometry": None, "properties": {"name": "nowhere"}},
            ],
        }
    }


def read_columns(types: dict[str, str]) -> list[Any]:
    return [read_column(name, kind) for name, kind in types.items()]


async def test_foreign_cursors_and_forged_positions_are_refused(read: Read) -> None:
    for cursor in ("x", "AAAA", "W10", "' OR 1=1 --", "bnVsbA", "W1tbW1tbW11dXV1dXV0", "é"):
        refused = await read(cursor=cursor)
        assert (refused.status, refused.code) == (422, "invalid-cursor"), cursor
    cursor = (await read(limit=1))["next_cursor"]
    for value in ("1; DROP TABLE ledger", "1_000", "nan", [1], {"a": 1}, True, "9" * 5000):
        assert (await read(limit=1, cursor=forged(cursor, value))).code == "invalid-cursor"
    page = await read(account="a-1", limit=1)
    assert ids(await read(account="a-1", limit=10, cursor=forged(page["next_cursor"], -5))) == [1, 2, 4, 6]
    for text in ("a\0b", "\ud800"):
        refused = await read(memo=text)
        assert (refused.status, refused.code) == (422, "invalid-filter")


async def test_cursor_of_another_query_is_refused(read: Read) -> None:
    cursor = (await read(account="a-1", limit=1))["next_cursor"]
    for other in ({}, {"account": "b-2"}, {"account": "a-1", "order": "-id"}):
        refused = await read(limit=1, cursor=cursor, **other)
        assert refused.code == "invalid-cursor"
        assert "another query" in refused.message
    assert ids(await read(account="a-1", fields=["id"], limit=5, cursor=cursor)) == [2, 4, 6]


def forged(cursor: str, value: Any) -> str:
    content = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    content[1] = [value]
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


WRONG: list[dict[str, Any]] = [
    {"order": "id; DROP TABLE ledger"},
    {"order": "password"},
    {"order": "-"},
    {"fields": ["id", "password"]},
    {"fields": ['id" FROM ledger; --']},
    {"limit": 10_000_000},
    {"limit": 0},
    {"format": "parquet"},
    {"nothing": 1},
    {"nothing_min": 1},
    {"memo_min": "a"},
    {"amount": "NaN"},
    {"amount": "1"},
    {"id_in": []},
    {"id_in": [1] * 101},
    {"memo_contains": "x" * 1001},
    {"booked_from": "2026-02-31"},
    {"booked_from": "yesterday"},
    {"changed_at": "2026-01-01"},
    {"cursor": "x" * 5000},
    {"file": "/etc/passwd"},
]


def test_input_schema_refuses_what_is_not_declared(tmp_path: Path) -> None:
    schema = compile_schema(opened(data_set("function", tmp_path)).endpoint.input_schema)
    assert isinstance(schema, Validator)
    assert schema.is_valid({})
    assert [values for values in WRONG if schema.is_valid(values)] == []


async def test_function_gets_the_filters_and_may_ignore_them(tmp_path: Path) -> None:
    asked: list[DataQuery] = []
    read = reader(opened(data_set("function", tmp_path, asked=asked)))
    page = await read(account="a-1", booked_from="2026-01-02", order="-booked", limit=2)
    assert ids(page) == [6, 4]
    [query] = asked
    assert query.value("account") == "a-1"
    assert query.value("booked", "min") == "2026-01-02"
    assert query.order == (("booked", True), ("id", False))


async def test_slow_sources_are_given_up_without_details(caplog: pytest.LogCaptureFixture) -> None:
    async def wait() -> list[Any]:
        await asyncio.Event().wait()
        return []

    data = DataSet(name="slow", sensitivity="low", target=wait, columns=COLUMNS, timeout=0.01)
    refused = await reader(opened(data))()
    assert (refused.status, refused.code) == (503, "data-unavailable")
    assert ("Retry-After", "5") in refused.headers
    assert "not read within 0.01 s" in caplog.text


async def test_failures_are_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> list[Any]:
        raise RuntimeError("password=secret")

    refused = await reader(opened(DataSet(name="broken", sensitivity="low", target=fail, columns=COLUMNS)))()
    assert refused.status == 503
    assert "secret" not in f"{refused.message} {refused.details}"
    assert "password=secret" in caplog.text
    assert "Traceback" not in caplog.text


async def test_values_of_wrong_types_and_numbers_that_json_lacks_are_left_out() -> None:
    rows = [{"id": 1, "booked": "01.02.2026"}]
    data = DataSet(name="broken", sensitivity="low", target=lambda: rows, columns=COLUMNS, key=("id",))
    assert (await reader(opened(data))()).status == 503
    rows = [{"id": n, "amount": amount} for n, amount in enumerate((float("nan"), 1.5, float("inf"), -2.0))]
    data = DataSet(name="numbers", sensitivity="low", target=lambda: rows, columns=COLUMNS, key=("id",))
    page = await reader(opened(data))(order="amount")
    assert page == {"rows": [{"id": 3, "amount": -2.0}, {"id": 1, "amount": 1.5}, {"id": 0}, {"id": 2}]}


async def test_many_reads_at_once_and_cancelled_ones(read: Read) -> None:
    tasks = [asyncio.create_task(read(account="a-1")) for _ in range(12)]
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    answered = [page for page in done if not isinstance(page, BaseException)]
    assert len(answered) >= 8
    assert all(ids(page) == [1, 2, 4, 6] for page in answered)
    assert ids(await read(id=1)) == [1]


def test_filters_find_their_values_and_no_row_without_one() -> None:
    query = DataQuery(limit=1, filters=(DataFilter("a", "eq", 1), DataFilter("a", "max", 2), DataFilter("b", "eq", 3)))
    assert (query.value("a"), query.value("a", "max"), query.value("b", "min"), query.value("c")) == (1, 2, None, None)
    query = DataQuery(limit=9, order=(("id", False),), filters=(DataFilter("amount", "max", 10**9),))
    assert [row["id"] for row in select(ROWS, NAMED, query)] == [1, 2, 4, 5, 6]


PARIS = timezone(timedelta(hours=1))


def convert(kind: str, value: Any) -> Any:
    column = read_column("a", kind)
    assert column is not None
    return to_json(column, value)


@rows(
    "kind, value, expected",
    ("string", "text", "text"),
    ("string", 12, "12"),
    ("string", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ("integer", 2**70, 2**70),
    ("integer", Decimal("3.0"), 3),
    ("integer", 3.0, 3),
    ("number", Decimal("10.10"), 10.1),
    ("number", "1.5", 1.5),
    ("number", float("nan"), None),
    ("number", float("-inf"), None),
    ("boolean", 1, True),
    ("boolean", False, False),
    ("date", date(2026, 1, 2), "2026-01-02"),
    ("date", datetime(2026, 1, 2, 23, tzinfo=UTC), "2026-01-02"),
    ("date", "2026-01-02", "2026-01-02"),
    ("date-time", datetime(2026, 1, 2, 1, tzinfo=PARIS), "2026-01-02T00:00:00Z"),
    ("date-time", "2026-01-02 03:04:05", "2026-01-02T03:04:05Z"),
    ("date-time", "2026-01-02 03:04:05+02", "2026-01-02T01:04:05Z"),
    ("array", "[1, 2]", [1, 2]),
    ("object", {"a": 1}, {"a": 1}),
    ("object", None, None),
)
def test_values_become_json_of_the_column_type(kind: str, value: Any, expected: Any) -> None:
    found = convert(kind, value)
    assert found == expected
    assert type(found) is type(expected)


@rows(
    "kind, value",
    *(("integer", value) for value in ("x", 1.5, True, float("inf"))),
    *(("number", value) for value in ("x", True)),
    *(("boolean", value) for value in (2, "yes")),
    *(("date", value) for value in ("01.02.2026", "2026-01-02 10:00", 5)),
    ("date-time", "soon"),
    ("array", "{}"),
    *(("object", value) for value in ("not json", "1")),
)
def test_values_of_another_type_are_an_error_of_the_source(kind: str, value: Any) -> None:
    with pytest.raises(DataSourceError, match=f"'a' has a value that is not of type {kind}"):
        convert(kind, value)


def test_positions_keep_all_digits_and_can_be_compared() -> None:
    column = read_column("a", "number")
    assert column is not None
    digits = Decimal("12345678901234567890.12")
    position = to_position(column, digits)
    assert position == "12345678901234567890.12"
    assert to_comparable(column, from_position(column, position)) == digits
    assert to_position(column, 1.5) == 1.5


@rows(
    "kind, value",
    *(("string", value) for value in (1, True)),
    ("integer", "1; DROP"),
    *(("number", value) for value in ("nan", "1_0", True)),
    ("boolean", "true"),
    *(("date", value) for value in (20260102, "x")),
    ("date-time", "x"),
)
def test_forged_positions_are_refused(kind: str, value: Any) -> None:
    column = read_column("a", kind)
    assert column is not None
    with pytest.raises(DataSourceError):
        from_position(column, value)


def test_cursors_are_short_and_keep_positions_without_a_value() -> None:
    for kind in ("string", "integer", "number", "boolean", "date", "date-time"):
        column = read_column("a", kind)
        assert column is not None
        assert from_position(column, None) is None
    assert len(write_cursor(QUERY, ["x" * 100, 2**62], None)) < LONGEST_CURSOR / 10


QUERY = DataQuery(limit=10, filters=(DataFilter("account", "eq", "a-1"),), order=(("memo", False), ("id", True)))
ORDER = [column("memo"), column("id")]


@given(st.none() | st.text(max_size=50), st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_position_survives(memo: str | None, number: int) -> None:
    cursor = write_cursor(QUERY, [memo, number], None)
    assert read_cursor(cursor, QUERY, ORDER) == ((memo, number), None)


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_any_other_text_is_refused(text: str) -> None:
    assert isinstance(read_cursor(text, QUERY, ORDER), str)


def test_cursor_belongs_to_filters_and_order_but_not_to_the_size_of_pages() -> None:
    cursor = write_cursor(QUERY, ["a", 1], None)
    other = DataQuery(limit=99, columns=("id",), filters=QUERY.filters, order=QUERY.order)
    assert read_cursor(cursor, other, ORDER) == (("a", 1), None)
    wrong = read_cursor(cursor, DataQuery(limit=10, order=QUERY.order), ORDER)
    assert wrong == "the cursor belongs to another query: keep filters and order between pages"


def test_skipping_is_bounded_and_only_for_rows_without_a_key() -> None:
    loose = DataQuery(limit=1, order=QUERY.order, skip=0)
    assert read_cursor(write_cursor(loose, ["a", 1], 3), loose, ORDER) == (("a", 1), 3)
    for skip in (-1, 10**9, None):
        assert isinstance(read_cursor(write_cursor(loose, ["a", 1], skip), loose, ORDER), str)
    strict = DataQuery(limit=1, order=QUERY.order)
    assert isinstance(read_cursor(write_cursor(strict, ["a", 1], 3), strict, ORDER), str)


NAMED = {column.name: column for column in COLUMNS}


def test_rows_without_a_value_are_last_and_equal_rows_are_skipped_by_number() -> None:
    for descending in (False, True):
        rows = select(ROWS, NAMED, DataQuery(limit=9, order=(("memo", descending), ("id", False))))
        assert rows[-1]["id"] == 2
    query = DataQuery(limit=9, order=(("account", False),), after=("a-1",), skip=3)
    assert [row["id"] for row in select(ROWS, NAMED, query)] == [6, 3, 5]
