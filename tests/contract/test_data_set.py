from __future__ import annotations

from typing import Any

from tests.cases import rows

from bespeak.contract.data_set import DataColumn, DataSet, bind_sources, data_sets, read_column, with_null
from bespeak.contract.service import DataClass, DataManifest

DESCRIBED = DataClass(
    name="ledger", description="Bookings", formats=("json",), sensitivity="high", requires_authorization=True
)


@rows(
    "sensitivity, required, scopes, expected",
    ("high", None, (), ("data:ledger",)),
    ("irreversible", None, (), ("data:ledger",)),
    ("medium", None, (), ("data:ledger",)),
    (None, None, (), ("data:ledger",)),
    ("low", None, (), ()),
    ("informational", None, (), ()),
    ("informational", True, (), ("data:ledger",)),
    ("high", False, (), ()),
    ("high", True, ("bank:read",), ("bank:read",)),
    ("low", None, ("bank:read",), ("bank:read",)),
)
def test_scopes_follow_from_sensitivity_unless_they_are_declared(
    sensitivity: str | None, required: bool | None, scopes: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    data = DataSet(name="ledger", sensitivity=sensitivity, requires_authorization=required, scopes=scopes)
    assert data.required_scopes == expected


def test_nothing_but_the_class_is_published() -> None:
    data = DataSet(
        name="ledger",
        description="Bookings",
        formats=("csv",),
        sensitivity="low",
        requires_authorization=False,
        database="postgresql://me:secret@db/bank",
        table="bookings",
        key=("id",),
        columns=(DataColumn("iban", {"type": "string"}),),
        scopes=("bank:read",),
    )
    public = {"class", "description", "formats", "sensitivity", "requires_authorization"}
    assert set(data.to_json()) == public


@rows(
    "settings, fault",
    ({"name": "Ledger Data", "file": "a.csv"}, "lower-case words"),
    ({"name": "ledger"}, "has no source"),
    ({"name": "ledger", "file": "a.csv", "function": "a.b"}, "function and file"),
    ({"name": "ledger", "table": "t"}, "belong together"),
    ({"name": "ledger", "file": "a.csv", "database": "x.db"}, "belong together"),
    ({"name": "ledger", "file": "a.xlsx"}, "must end in"),
    ({"name": "ledger", "file": "a.csv", "formats": ("xml",)}, "`formats`"),
    ({"name": "ledger", "file": "a.csv", "geometry": ("a", "b", "c")}, "`geometry`"),
)
def test_incomplete_declarations_are_named(settings: dict[str, Any], fault: str) -> None:
    [found] = DataSet(**settings).faults()
    assert fault in found


def test_source_joins_the_class_that_a_manifest_describes() -> None:
    manifest, faults = bind_sources(
        DataManifest(available_data=(DESCRIBED,), pre_auth_discovery=True), [DataSet(name="ledger", file="a.csv")]
    )
    assert faults == []
    assert manifest is not None
    assert manifest.pre_auth_discovery
    [data] = data_sets(manifest)
    assert (data.description, data.requires_authorization, data.file) == ("Bookings", True, "a.csv")
    assert manifest.to_json()["available_data"] == [DESCRIBED.to_json()]


def test_class_beyond_an_open_manifest_is_added_and_beyond_a_closed_one_refused() -> None:
    other = DataSet(name="rates", file="a.csv")
    manifest, faults = bind_sources(DataManifest(available_data=(DESCRIBED,)), [other])
    assert faults == []
    assert manifest is not None
    assert [entry.name for entry in manifest.available_data] == ["ledger", "rates"]
    manifest, faults = bind_sources(DataManifest(available_data=(DESCRIBED,)), [other], closed=True)
    assert manifest == DataManifest(available_data=(DESCRIBED,))
    assert faults == [(0, "the class 'rates' is not in the data_manifest of the document")]


def test_second_description_and_second_source_are_refused() -> None:
    again = DataSet(name="ledger", file="a.csv", sensitivity="low")
    twice = DataSet(name="rates", file="a.csv")
    _, faults = bind_sources(DataManifest(available_data=(DESCRIBED,)), [again, twice, twice])
    assert faults == [
        (0, "sensitivity of 'ledger' are already in the data_manifest"),
        (2, "the class 'rates' is listed twice"),
    ]


def test_columns_have_short_types_and_schemas() -> None:
    assert read_column("a", "date") == DataColumn("a", {"type": "string", "format": "date"})
    full = read_column("a", {"type": "date-time", "description": "When"})
    assert full == DataColumn("a", {"type": "string", "format": "date-time", "description": "When"})
    assert full is not None
    assert (full.kind, full.is_comparable) == ("date-time", True)
    assert not DataColumn("a", {"type": "array"}).is_comparable
    nullable = read_column("a", {"type": ["null", "date"]})
    assert nullable == with_null(DataColumn("a", {"type": "string", "format": "date"}))
    assert nullable is not None
    assert (nullable.kind, nullable.takes_null, nullable.plain["type"]) == ("date", True, "string")
    assert read_column("a", {"type": ["string", "integer"]}) is None
    assert read_column("a", "money") is None
    assert read_column("a", 3) is None
