"""The endpoint of a data set: its contract follows from the columns. It is a step of compositions and never served."""

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


def make_endpoint(data: DataSet, columns: Sequence[DataColumn], target: Callable[..., Any]) -> Endpoint:
    """Build the endpoint that reads a data set."""
    what = data.description.rstrip(".") or data.name
    return Endpoint(
        method="QUERY",
        path=f"/data/{data.name}",
        description=f"{what}.",
        semantic=Semantic(
            intent=f"Read rows of the data class {data.name}: {what}.",
            actor="agent",
            outcome="The rows that meet all filters are returned, a page at a time.",
            capability="retrieval",
            confidence=1.0,
            impact="informational",
            is_idempotent=True,
        ),
        input_schema={
            "type": "object",
            "properties": {name: _filter(*one) for name, one in filter_inputs(columns).items()}
            | _controls(data, columns),
            "additionalProperties": False,
        },
        output_schema=_output(data, columns),
        handler=RegisteredFunction(function=f"data.{data.name}", target=target),
        required_scopes=data.required_scopes,
        data_class=data.name,
    )


def _filter(column: DataColumn, op: str) -> dict[str, Any]:
    if op == "contains":
        return {"type": "string", "maxLength": _LONGEST_PART}
    if op == "in":
        return {"type": "array", "items": dict(column.schema), "minItems": 1, "maxItems": _MOST_VALUES}
    return dict(column.schema)


def _controls(data: DataSet, columns: Sequence[DataColumn]) -> dict[str, Any]:
    names = [column.name for column in columns]
    sortable = [sign + column.name for column in columns if column.is_comparable for sign in ("", "-")]
    controls: dict[str, Any] = {
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
            "default": min(DEFAULT_LIMIT, data.max_rows),
            "description": "The most rows of a page.",
        },
        "cursor": {
            "type": "string",
            "maxLength": LONGEST_CURSOR,
            "description": "The `next_cursor` of the page before, with the same filters and order.",
        },
    }
    if len(data.formats) > 1:
        controls["format"] = {"type": "string", "enum": list(data.formats), "default": data.formats[0]}
    return controls


def _output(data: DataSet, columns: Sequence[DataColumn]) -> dict[str, Any]:
    row = {"type": "object", "properties": {column.name: dict(column.schema) for column in columns}}
    forms: dict[str, Any] = {
        "rows": {"type": "array", "items": row, "description": "A column without a value is left out of its row."},
        "csv": {"type": "string", "description": "The rows as CSV (RFC 4180), with a line of names."},
        "geojson": {"type": "object", "description": "The rows as a FeatureCollection (RFC 7946)."},
    }
    formats = data.formats or ("json",)
    given = {FIELDS[form]: forms[FIELDS[form]] for form in formats}
    cursor = {"type": "string", "description": "The cursor of the next page; not there on the last one."}
    return {
        "type": "object",
        "properties": {**given, "next_cursor": cursor},
        **({"required": list(given)} if len(given) == 1 else {}),
    }


FIELDS: Final = {"json": "rows", "csv": "csv", "geojson": "geojson"}
"""Output field of each format."""
