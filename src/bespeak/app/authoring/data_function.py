"""Data sets of Python functions: the columns come from the type of the rows that the function returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from bespeak.contract.data_set import DataColumn, DataSet, read_column, with_null
from bespeak.contract.schema.subschemas import inline
from bespeak.errors import ContractError
from bespeak.runtime.functions.hints import output_schema
from bespeak.runtime.functions.reading import locate
from bespeak.runtime.functions.signature import function_name, read_signature


def declared_data(name: str, columns: Mapping[str, Any] | None, **settings: Any) -> DataSet:
    """Build a data set from the arguments of a declaration. Raises ContractError for a column without a known type."""
    read = {column: read_column(column, kind) for column, kind in (columns or {}).items()}
    wrong = [column for column, known in read.items() if known is None]
    if wrong:
        raise ContractError(f"the data class {name!r}: the column {wrong[0]!r} has no known type")
    lists = {key: tuple(value) for key, value in settings.items() if isinstance(value, list)}
    known = tuple(column for column in read.values() if column is not None)
    return DataSet(name=name, columns=known, **{**settings, **lists})


def with_function(data: DataSet, function: Callable[..., Any]) -> DataSet:
    """Add the function that returns the rows. Columns that are not declared come from its return annotation."""
    columns = data.columns or _columns_of(function)
    if not columns:
        message = f"{locate(function)}: the columns of the data class {data.name!r} are not known"
        raise ContractError(f"{message}; give `columns`, or annotate the function with the type of its rows")
    return replace(data, target=function, function=function_name(function), columns=columns)


def _columns_of(function: Callable[..., Any]) -> tuple[DataColumn, ...]:
    rows = get_args(read_signature(function).returns)
    if not rows:
        return ()
    schema = output_schema(list[rows[0]])  # type: ignore[valid-type] # the type is known only now
    row = inline(schema.get("items"), schema)
    found = [
        (name, inline(one, schema)) for name, one in (row.get("properties") or {}).items() if isinstance(row, Mapping)
    ]
    return tuple(column for name, one in found if (column := _column(name, one)) is not None)


def _column(name: str, schema: Any) -> DataColumn | None:
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    column = read_column(name, options[0] if len(options) == 1 else schema)
    return column if column is None or len(options) != 1 else with_null(column)
