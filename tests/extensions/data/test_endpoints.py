"""Reading pages: every kind of source gives the same answers."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.extensions.data.ledger import COLUMNS, ROWS, data_set, opened, reader, shown

from bespeak.contract.data_set import DataSet, read_column
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.extensions.data.endpoints import OpenedData
from bespeak.extensions.data.query import DataQuery
from bespeak.protocol.exchange.refusal import Refused

pytestmark = pytest.mark.anyio

Read = Callable[..., Any]
ATTACK = "'; DROP TABLE ledger; --"


def ids(page: dict[str, Any]) -> list[int]:
    return [row["id"] for row in page["rows"]]


async def test_all_rows_come_in_the_order_of_the_key(read: Read) -> None:
    page = await read()
    assert set(page) == {"rows"}
    assert [shown(row) for row in page["rows"]] == [shown(row) for row in ROWS]


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


async def test_rows_without_a_key_are_all_delivered_even_if_equal(
    open_ledger: Callable[..., OpenedData], kind: str
) -> None:
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
    assert not isinstance(page, Refused)
    del rows[:2]
    assert ids(await read(limit=2, cursor=page["next_cursor"])) == [3, 4]  # type: ignore[arg-type] # it is a page


async def test_only_the_fields_asked_for_are_returned(read: Read) -> None:
    page = await read(fields=["memo", "account"], order="-amount", limit=2)
    assert page["rows"] == [{"memo": "100% _ \\", "account": "a-1"}, {"memo": "Rent", "account": "a-1"}]


async def test_csv_has_a_line_of_names_and_quotes_what_needs_it(open_ledger: Callable[..., OpenedData]) -> None:
    one = open_ledger(at=1, formats=("json", "csv"))
    page = await reader(one)(fields=["id", "memo"])
    assert not isinstance(page, Refused)
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
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (422, "too-many-rows")
    page = await read(limit=4)
    assert not isinstance(page, Refused)
    assert "next_cursor" in page
    rest = await read(limit=4, cursor=page["next_cursor"])
    assert not isinstance(rest, Refused)
    assert len(rest["csv"].splitlines()) == 4


async def test_cells_are_json_unless_they_are_texts(tmp_path: Path) -> None:
    page = await reader(opened(data_set("function", tmp_path, formats=("csv",))))(id=2)
    assert not isinstance(page, Refused)
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


async def test_cursors_that_are_not_ours_are_refused(read: Read) -> None:
    for cursor in ("x", "AAAA", "W10", "' OR 1=1 --", "bnVsbA", "W1tbW1tbW11dXV1dXV0", "é"):
        refused = await read(cursor=cursor)
        assert (refused.status, refused.code) == (422, "invalid-cursor"), cursor


async def test_cursor_of_another_query_is_refused(read: Read) -> None:
    cursor = (await read(account="a-1", limit=1))["next_cursor"]
    for other in ({}, {"account": "b-2"}, {"account": "a-1", "order": "-id"}):
        refused = await read(limit=1, cursor=cursor, **other)
        assert refused.code == "invalid-cursor"
        assert "another query" in refused.message
    assert ids(await read(account="a-1", fields=["id"], limit=5, cursor=cursor)) == [2, 4, 6]


async def test_forged_positions_are_refused_by_their_type(read: Read) -> None:
    cursor = (await read(limit=1))["next_cursor"]
    for value in ("1; DROP TABLE ledger", "1_000", "nan", [1], {"a": 1}, True, "9" * 5000):
        assert (await read(limit=1, cursor=forged(cursor, value))).code == "invalid-cursor"


async def test_forged_positions_stay_within_the_filters(read: Read) -> None:
    page = await read(account="a-1", limit=1)
    assert ids(await read(account="a-1", limit=10, cursor=forged(page["next_cursor"], -5))) == [1, 2, 4, 6]


def forged(cursor: str, value: Any) -> str:
    content = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    content[1] = [value]
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


async def test_texts_that_databases_cannot_hold_are_refused(read: Read) -> None:
    for text in ("a\0b", "\ud800"):
        refused = await read(memo=text)
        assert (refused.status, refused.code) == (422, "invalid-filter")


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
    assert ids(page) == [6, 4]  # type: ignore[arg-type] # it is a page
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
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (503, "data-unavailable")
    assert ("Retry-After", "5") in refused.headers
    assert "not read within 0.01 s" in caplog.text


async def test_failures_are_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> list[Any]:
        raise RuntimeError("password=secret")

    refused = await reader(opened(DataSet(name="broken", sensitivity="low", target=fail, columns=COLUMNS)))()
    assert isinstance(refused, Refused)
    assert refused.status == 503
    assert "secret" not in f"{refused.message} {refused.details}"
    assert "password=secret" in caplog.text
    assert "Traceback" not in caplog.text


async def test_value_of_the_wrong_type_is_not_passed_on() -> None:
    rows = [{"id": 1, "booked": "01.02.2026"}]
    data = DataSet(name="broken", sensitivity="low", target=lambda: rows, columns=COLUMNS, key=("id",))
    refused = await reader(opened(data))()
    assert isinstance(refused, Refused)
    assert refused.status == 503


async def test_numbers_that_json_lacks_count_as_no_value() -> None:
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
