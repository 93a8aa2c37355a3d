from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runtime.data.ledger import COLUMNS, ROWS, data_set, fill_sqlite, reader

from bespeak.contract.data_set import DataSet, read_column
from bespeak.contract.service import DataClass, DataManifest
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.data.endpoints import OpenedData, open_data
from bespeak.text.diagnostics.diagnostic import Diagnostic


def open_one(
    data: DataClass, base: Path = Path(), environment: dict[str, str] | None = None
) -> tuple[list[OpenedData], list[Diagnostic]]:
    return open_data(DataManifest(available_data=(data,)), base, environment or {})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
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
    ],
)
def test_sources_that_cannot_be_used_have_a_finding_and_no_endpoint(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
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
    refused = await reader(one)()
    assert isinstance(refused, Refused)
    assert refused.status == 503
    fill_sqlite(tmp_path / "late.db", ROWS)
    page = await reader(one)(id=1)
    assert not isinstance(page, Refused)
    assert len(page["rows"]) == 1


def test_variables_and_relative_paths_are_resolved(tmp_path: Path) -> None:
    fill_sqlite(tmp_path / "ledger.db", ROWS)
    [one], findings = open_one(
        DataSet(name="ledger", database="${NAME}.db", table="ledger"), tmp_path, {"NAME": "ledger"}
    )
    assert findings == []
    assert one.endpoint.required_scopes == ("data:ledger",)


def test_only_declared_columns_are_read(tmp_path: Path) -> None:
    columns = tuple(column for column in COLUMNS if column.name in ("id", "account"))
    [one], findings = open_one(data_set("sqlite", tmp_path, columns=columns))
    assert findings == []
    assert list(one.endpoint.output_schema["properties"]["rows"]["items"]["properties"]) == ["id", "account"]
    assert "memo" not in one.endpoint.input_schema["properties"]
