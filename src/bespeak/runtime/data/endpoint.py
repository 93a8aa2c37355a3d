"""Endpoints of a data set, one for each format. They follow from the columns, and are only steps of compositions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from bespeak.contract.data_set import DataColumn, DataSet
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import RegisteredFunction
from bespeak.contract.semantic import Semantic
from bespeak.runtime.data.cursor import LONGEST as LONGEST_CURSOR

DEFAULT_LIMIT: Final = 100
"""Rows of a page unless the caller asks otherwise."""
_MOST_VALUES: Final = 100
"""Values of an `_in` filter."""
_LONGEST_PART: Final = 1000
"""Characters of a `_contains` filter."""
_CONTROLS: Final = ("fields", "order", "limit", "cursor", "format")
_SUFFIXES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "string": (("_contains", "contains"), ("_in", "in")),
    "integer": (("_min", "min"), ("_max", "max"), ("_in", "in")),
    "number": (("_min", "min"), ("_max", "max")),
    "boolean": (),
    "date": (("_from", "min"), ("_to", "max")),
    "date-time": (("_from", "min"), ("_to", "max")),
}
"""Filters of a column beside the one for equality, by its kind."""


def filter_inputs(columns: Iterable[DataColumn]) -> dict[str, tuple[DataColumn, str]]:
    """Return the filters of an endpoint: input field -> column and operator.

    Controls go before columns, and the name of a column before a name made with a suffix.
    """
    known = [column for column in columns if column.is_comparable]
    found = {column.name: (column, "eq") for column in known if column.name not in _CONTROLS}
    for column in known:
        for suffix, op in _SUFFIXES[column.kind]:
            found.setdefault(column.name + suffix, (column, op))
    return found


def make_endpoint(data: DataSet, columns: Sequence[DataColumn], target: Callable[..., Any], form: str) -> Endpoint:
    """Build the endpoint that reads a data set in one format."""
    what = data.description.rstrip(".") or data.name
    return Endpoint(
        method="QUERY",
        path=f"/data/{data.name}" + ("" if form == "json" else f"/{form}"),
        description=f"{what}.",
        semantic=Semantic(
            intent=f"Read rows of the data class {data.name}: {what}.",
            actor="agent",
            outcome="The rows that meet all filters are returned.",
            capability="retrieval",
            confidence=1.0,
            impact="informational",
            is_idempotent=True,
        ),
        input_schema={
            "type": "object",
            "properties": {name: _filter(*one) for name, one in filter_inputs(columns).items()}
            | _controls(data, columns, form),
            "additionalProperties": False,
        },
        output_schema=_output(columns, form),
        handler=RegisteredFunction(function=f"data.{data.name}.{form}", target=target),
        required_scopes=data.required_scopes,
        data_class=data.name,
    )


def _filter(column: DataColumn, op: str) -> dict[str, Any]:
    if op == "contains":
        return {"type": "string", "maxLength": _LONGEST_PART}
    if op == "in":
        return {"type": "array", "items": dict(column.plain), "minItems": 1, "maxItems": _MOST_VALUES}
    return dict(column.plain)


def _controls(data: DataSet, columns: Sequence[DataColumn], form: str) -> dict[str, Any]:
    names = [column.name for column in columns]
    sortable = [sign + column.name for column in columns if column.is_comparable for sign in ("", "-")]
    most = {"default": min(DEFAULT_LIMIT, data.max_rows)} if form == "json" else {}
    return {
        "fields": {
            "type": "array",
            "items": {"enum": names},
            "minItems": 1,
            "maxItems": len(names),
            "description": "The columns to return; without it, all.",
        },
        "order": {"type": "string", "enum": sortable, "description": "The column to sort by; `-` for descending."},
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": data.max_rows,
            **most,
            "description": "The most rows of a page." + ("" if most else " Without it, all rows must fit in one."),
        },
        "cursor": {
            "type": "string",
            "maxLength": LONGEST_CURSOR,
            "description": "The `next_cursor` of the page before, with the same filters and order.",
        },
        "format": {"type": "string", "enum": [form]},
    }


def _output(columns: Sequence[DataColumn], form: str) -> dict[str, Any]:
    row = {"type": "object", "properties": {column.name: dict(column.schema) for column in columns}}
    forms: dict[str, Any] = {
        "json": {"type": "array", "items": row, "description": "The rows."},
        "csv": {"type": "string", "description": "The rows as CSV (RFC 4180), with a line of names."},
        "geojson": {"type": "object", "description": "The rows as a FeatureCollection (RFC 7946)."},
    }
    cursor = {"type": "string", "description": "The cursor of the next page; not there on the last one."}
    return {
        "type": "object",
        "properties": {FIELDS[form]: forms[form], "next_cursor": cursor},
        "required": [FIELDS[form]],
    }


FIELDS: Final = {"json": "rows", "csv": "csv", "geojson": "geojson"}
"""Output field of each format."""
