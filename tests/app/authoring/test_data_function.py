from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from bespeak import App, ContractError, DataQuery
from bespeak.contract.data_set import DataSet, data_sets
from bespeak.contract.service import DataClass, DataManifest


@dataclass
class Rate:
    currency: str
    rate: float
    day: date
    note: str | None = None


def make(**more: Any) -> App:
    return App("Bank", server_id="bank.example", operator="Bank", contact="ops@bank.example", **more)


def declared(app: App) -> DataSet:
    [data] = data_sets(app.service().data_manifest)
    return data


def test_columns_come_from_the_type_of_the_rows() -> None:
    app = make()

    @app.data("exchange-rates", description="Rates", formats=["json", "csv"], sensitivity="low", key=["currency"])
    def rates(query: DataQuery) -> list[Rate]:
        return []

    data = declared(app)
    assert {column.name: column.kind for column in data.columns} == {
        "currency": "string",
        "rate": "number",
        "day": "date",
        "note": "string",
    }
    assert [column.name for column in data.columns if column.takes_null] == ["note"]
    assert (data.target, data.formats, data.key) == (rates, ("json", "csv"), ("currency",))


def test_rows_may_be_yielded() -> None:
    for_each, later = make(), make()

    @for_each.data("rates")
    def rates() -> Iterator[Rate]:
        yield Rate("EUR", 1.0, date(2026, 1, 1))

    @later.data("rates")
    async def rates_later() -> AsyncIterator[Rate]:
        yield Rate("EUR", 1.0, date(2026, 1, 1))

    for app in (for_each, later):
        assert [column.name for column in declared(app).columns] == ["currency", "rate", "day", "note"]


def test_declared_columns_take_precedence() -> None:
    app = make()

    @app.data("rates", columns={"currency": "string", "rate": {"type": "number", "description": "Per euro"}})
    def rates() -> list[dict[str, Any]]:
        return []

    assert [column.schema.get("description") for column in declared(app).columns] == [None, "Per euro"]


def test_rows_of_files_and_databases_need_no_function() -> None:
    app = make()
    app.data("rates", file="rates.csv", sensitivity="low")
    assert declared(app).file == "rates.csv"


def test_mistakes_are_refused_when_they_are_made() -> None:
    app = make()
    with pytest.raises(ContractError, match="the columns of the data class 'rates' are not known"):
        app.data("rates")(list)
    with pytest.raises(ContractError, match="the column 'rate' has no known type"):
        app.data("rates", columns={"rate": "money"})
    with pytest.raises(ContractError, match=r"it needs exactly one of .* has no source"):
        app.service()


def test_class_of_the_given_manifest_keeps_its_description() -> None:
    app = make(data_manifest=DataManifest(available_data=(DataClass(name="rates", description="Rates"),)))
    app.data("rates", file="rates.csv")
    assert declared(app).description == "Rates"


def test_class_beyond_the_document_of_an_app_is_refused(tmp_path: Path) -> None:
    document = Path(__file__).parents[2] / "documents" / "valid" / "finance-negotiable-data-manifest.agis"
    app = App.from_agis(document)
    app.data("exchange-rates", file="rates.csv")
    assert declared(app).sensitivity == "informational"
    app.data("salaries", file="salaries.csv")
    with pytest.raises(ContractError, match="'salaries' is not in the data_manifest of the document"):
        app.service()
