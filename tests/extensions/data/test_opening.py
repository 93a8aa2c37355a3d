from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.data.ledger import COLUMNS, ROWS, column, data_set, fill_sqlite, reader

from bespeak.contract.data_set import DataColumn, DataSet, read_column
from bespeak.contract.service import DataClass, DataManifest
from bespeak.extensions.data.endpoints import OpenedData, filter_inputs, make_endpoint, open_data
from bespeak.text.diagnostics.diagnostic import Diagnostic


def open_one(
    data: DataClass, base: Path = Path(), environment: dict[str, str] | None = None
) -> tuple[list[OpenedData], list[Diagnostic]]:
    return open_data(DataManifest(available_data=(data,)), base, environment or {})


@rows(
    "settings, message",
    ({"file": "none.csv"}, "No such file"),
    ({"database": "none.db", "table": "t"}, "unable to open database file"),
    ({"database": "ledger.db", "table": "nothing"}, "has no table 'nothing'"),
    ({"database": "ledger.db", "table": "ledger", "key": ("nothing",)}, "`key` names 'nothing'"),
    ({"database": "ledger.db", "query": "SELECT 1 + 1 AS two"}, "the type of two is not known"),
    ({"database": "ledger.db", "table": "ledger", "columns": (read_column("x", "string"),)}, "no column 'x'"),
    ({"database": "ledger.db", "table": "ledger", "formats": ("geojson",)}, "geojson needs `geometry`"),
    ({"database": "postgresql://me:${DB_PASSWORD}@db/x", "table": "t"}, "DB_PASSWORD"),
    ({"function": "tests.nothing.here"}, "cannot be used"),
    ({"target": len, "columns": ()}, "its columns are not known"),
    ({"target": lambda one, two: [], "columns": COLUMNS}, "no parameter, or the query"),
    ({}, "has no source"),
)
def test_unusable_source_has_a_finding_and_no_endpoint(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    fill_sqlite(tmp_path / "ledger.db", ROWS)
    opened, [finding] = open_one(DataSet(name="broken", **settings), tmp_path)
    assert opened == []
    assert (finding.rule, finding.severity) == ("Y823", "error")
    assert message in finding.message
    assert "Traceback" not in finding.message


def test_class_without_a_source_is_reported_and_has_no_endpoint() -> None:
    opened, [finding] = open_one(DataClass(name="customers"))
    assert opened == []
    assert finding.message == "the data class 'customers' has no source, so no endpoint can be negotiated over it"


@pytest.mark.anyio
async def test_source_with_declared_columns_may_come_later(tmp_path: Path) -> None:
    data = DataSet(name="late", sensitivity="low", database="late.db", table="ledger", columns=COLUMNS, key=("id",))
    [one], [finding] = open_one(data, tmp_path)
    assert finding.severity == "warning"
    assert (await reader(one)()).status == 503
    fill_sqlite(tmp_path / "late.db", ROWS)
    assert len((await reader(one)(id=1))["rows"]) == 1


def test_variables_and_relative_paths_are_resolved(tmp_path: Path) -> None:
    fill_sqlite(tmp_path / "ledger.db", ROWS)
    [one], findings = open_one(DataSet(name="ledger", database="${DB}.db", table="ledger"), tmp_path, {"DB": "ledger"})
    assert findings == []
    assert one.endpoint.required_scopes == ("data:ledger",)


def test_only_declared_columns_are_read(tmp_path: Path) -> None:
    columns = tuple(column for column in COLUMNS if column.name in ("id", "account"))
    [one], findings = open_one(data_set("sqlite", tmp_path, columns=columns))
    assert findings == []
    assert list(one.endpoint.output_schema["properties"]["rows"]["items"]["properties"]) == ["id", "account"]
    assert "memo" not in one.endpoint.input_schema["properties"]


DATA = DataSet(name="ledger", description="Bookings of accounts.", sensitivity="high", formats=("json", "csv"))


def test_every_column_has_the_filters_of_its_type() -> None:
    found = {name: (one.name, op) for name, (one, op) in filter_inputs(COLUMNS).items() if one.name != name}
    named = {
        **{f"{name}_{op}": (name, op) for name in ("id", "amount") for op in ("min", "max")},
        **{f"{name}_in": (name, "in") for name in ("id", "account", "memo")},
        **{f"{name}_contains": (name, "contains") for name in ("account", "memo")},
    }
    ends = {"from": "min", "to": "max"}
    times = {f"{name}_{end}": (name, ends[end]) for name in ("booked", "changed_at") for end in ends}
    assert found == named | times


def test_names_that_clash_belong_to_controls_then_to_columns() -> None:
    columns = [DataColumn(name, {"type": "integer"}) for name in ("limit", "size", "size_min")]
    found = {name: (one.name, op) for name, (one, op) in filter_inputs(columns).items()}
    assert found["size_min"] == ("size_min", "eq")
    assert "limit" not in found
    assert found["limit_max"] == ("limit", "max")
    endpoint = make_endpoint(DATA, columns, print, "json")
    assert endpoint.input_schema["properties"]["limit"]["maximum"] == DATA.max_rows


def test_endpoint_is_a_reading_step_with_the_scopes_of_its_class() -> None:
    endpoint = make_endpoint(DATA, COLUMNS, print, "json")
    assert (endpoint.method, endpoint.path, endpoint.data_class) == ("QUERY", "/data/ledger", "ledger")
    assert (endpoint.required_scopes, endpoint.semantic.impact) == (("data:ledger",), "informational")
    assert set(endpoint.output_schema["properties"]) == {"rows", "next_cursor"}
    assert endpoint.input_schema["properties"]["booked_from"] == column("booked").schema
    assert endpoint.input_schema["additionalProperties"] is False


def test_columns_without_an_order_are_shown_and_each_format_has_an_endpoint() -> None:
    endpoint = make_endpoint(DATA, [DataColumn("tags", {"type": "array"}), column("id")], print, "json")
    assert "tags" not in endpoint.input_schema["properties"]
    assert endpoint.input_schema["properties"]["order"]["enum"] == ["id", "-id"]
    assert "tags" in endpoint.output_schema["properties"]["rows"]["items"]["properties"]
    endpoint = make_endpoint(DATA, COLUMNS, print, "csv")
    assert endpoint.path == "/data/ledger/csv"
    assert list(endpoint.output_schema["properties"]) == ["csv", "next_cursor"]
    assert "default" not in endpoint.input_schema["properties"]["limit"]
