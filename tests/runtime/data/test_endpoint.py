from __future__ import annotations

from tests.runtime.data.ledger import COLUMNS, column

from bespeak.contract.data_set import DataColumn, DataSet
from bespeak.runtime.data.endpoints import filter_inputs, make_endpoint

DATA = DataSet(name="ledger", description="Bookings of accounts.", sensitivity="high", formats=("json", "csv"))


def test_every_column_has_the_filters_of_its_type() -> None:
    found = {name: (one.name, op) for name, (one, op) in filter_inputs(COLUMNS).items() if one.name != name}
    assert found == {
        "id_min": ("id", "min"),
        "id_max": ("id", "max"),
        "id_in": ("id", "in"),
        "account_contains": ("account", "contains"),
        "account_in": ("account", "in"),
        "amount_min": ("amount", "min"),
        "amount_max": ("amount", "max"),
        "booked_from": ("booked", "min"),
        "booked_to": ("booked", "max"),
        "changed_at_from": ("changed_at", "min"),
        "changed_at_to": ("changed_at", "max"),
        "memo_contains": ("memo", "contains"),
        "memo_in": ("memo", "in"),
    }


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
    assert endpoint.required_scopes == ("data:ledger",)
    assert endpoint.semantic.impact == "informational"
    assert set(endpoint.output_schema["properties"]) == {"rows", "next_cursor"}
    assert endpoint.input_schema["properties"]["booked_from"] == column("booked").schema
    assert endpoint.input_schema["additionalProperties"] is False


def test_columns_without_an_order_are_only_shown() -> None:
    endpoint = make_endpoint(DATA, [DataColumn("tags", {"type": "array"}), column("id")], print, "json")
    assert "tags" not in endpoint.input_schema["properties"]
    assert endpoint.input_schema["properties"]["order"]["enum"] == ["id", "-id"]
    assert "tags" in endpoint.output_schema["properties"]["rows"]["items"]["properties"]


def test_every_format_has_an_endpoint_of_its_own() -> None:
    endpoint = make_endpoint(DATA, COLUMNS, print, "csv")
    assert endpoint.path == "/data/ledger/csv"
    assert list(endpoint.output_schema["properties"]) == ["csv", "next_cursor"]
    assert "default" not in endpoint.input_schema["properties"]["limit"]
