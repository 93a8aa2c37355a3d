"""Parts of an endpoint in documents: semantic block, parameter lists, errors, deprecation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.cost import Cost, read_cost
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.rules import COST
from bespeak.contract.schema.compile import DIALECT
from bespeak.documents.rules import ASSUMED_DEFAULT
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import DUPLICATE
from bespeak.text.reading.setting import VERB, setting, table
from bespeak.text.reading.settings import Readers, read_settings
from bespeak.text.reading.table import Table

TYPES: Final = ("string", "integer", "number", "boolean", "object", "array", "null")
"""Values of `type` in an entry of a parameter list."""

KEYWORDS: Final = frozenset(
    {
        *("additionalProperties", "const", "contentEncoding", "contentMediaType", "default", "deprecated"),
        *("description", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "items"),
        *("maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties"),
        *("minimum", "multipleOf", "pattern", "prefixItems", "properties", "required", "title", "type"),
        *("uniqueItems", "anyOf", "oneOf", "allOf"),
    }
)
"""JSON Schema keywords allowed in an entry of a parameter list."""


def _read_input_schema(endpoint: Table) -> dict[str, Any]:
    """Read `input_schema` unchanged, or build a closed object from the lists under `input` (AGTP-API 13.3)."""
    lists = endpoint.table("input")
    if endpoint.has("input_schema"):
        _refuse_both(endpoint, "input", "input_schema")
        return endpoint.json("input_schema")
    if lists is None:
        if not endpoint.has("input"):
            message = "no input is declared, so the endpoint takes none"
            endpoint.findings.info(ASSUMED_DEFAULT, message, endpoint.at, "Write `input = {}` to say so.")
        return _object_schema([], [], closed=True)
    schema = _object_schema(lists.tables("required"), lists.tables("optional"), closed=True)
    lists.finish()
    return schema


def _read_output_schema(endpoint: Table) -> dict[str, Any]:
    """Read `output_schema` unchanged, or build an open object from the list `output`, with all entries required."""
    entries = endpoint.tables("output")
    if endpoint.has("output_schema"):
        _refuse_both(endpoint, "output", "output_schema")
        return endpoint.json("output_schema")
    if not endpoint.has("output"):
        message = "no output is declared, so the endpoint may answer with any object"
        endpoint.findings.info(ASSUMED_DEFAULT, message, endpoint.at, "Write `output = []` to say so.")
    return _object_schema(entries, [], closed=False)


def _refuse_both(endpoint: Table, lists: str, schema: str) -> None:
    if endpoint.has(lists):
        message = f"`{lists}` and `{schema}` cannot be combined"
        endpoint.findings.error(DUPLICATE, message, endpoint.pointer(schema), "Keep one of them.")


def _object_schema(required: list[Table], optional: list[Table], *, closed: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for entry in (*required, *optional):
        name = entry.need_text("name")
        if name in properties:
            entry.findings.error(DUPLICATE, f"the name {brief(name)} is used twice", entry.pointer("name"))
        properties[name] = _property(entry)
    schema: dict[str, Any] = {"$schema": DIALECT, "type": "object", "properties": properties}
    if required:
        schema["required"] = [entry.data["name"] for entry in required if isinstance(entry.data.get("name"), str)]
    schema["additionalProperties"] = not closed
    return schema


def _property(entry: Table) -> dict[str, Any]:
    """Build the schema of one entry; its full `schema`, if given, takes precedence over the short keys."""
    full = entry.json("schema")
    kind = entry.value("type")
    if isinstance(kind, str):
        entry.choice("type", TYPES)
    elif kind is None and not full:
        entry.missing("type", f"One of {', '.join(TYPES)}.")
    short: dict[str, Any] = {}
    for key in entry.data:
        if key in KEYWORDS:
            value = entry.value(key)
            if not isinstance(value, str):
                entry.check_json(key)
            if value is not None:
                short[key] = value
    entry.finish()
    return {**short, **full}


def _read_errors(endpoint: Table) -> tuple[DeclaredError, ...] | None:
    """Read `errors`: an array of names, `list` in a table, a table of descriptions, or an array of tables."""
    value = endpoint.value("errors")
    if value is None:
        return None
    if isinstance(value, dict):
        return _described_errors(Table(value, endpoint.pointer("errors"), endpoint.findings))
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return tuple(_read_error(entry) for entry in endpoint.tables("errors"))
    return tuple(DeclaredError(name) for name in endpoint.texts("errors"))


def _described_errors(table: Table) -> tuple[DeclaredError, ...]:
    names = dict.fromkeys(table.texts("list"), "") if isinstance(table.value("list"), list) else {}
    for name in table.data:
        if not isinstance(table.value(name), list):
            names[name] = table.text(name) or ""
        elif name != "list":
            table.wrong(name, "a string", table.value(name))
    return tuple(DeclaredError(name, description) for name, description in names.items())


def _read_error(entry: Table) -> DeclaredError:
    error = DeclaredError(entry.need_text("name"), entry.text("description") or "")
    entry.finish()
    return error


@dataclass(frozen=True, slots=True)
class _Successor:
    """The replacement."""

    method: str | None = setting(None, "Its verb.", format=VERB)
    path: str | None = setting(None, "Its path.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeprecationBlock:
    """The `deprecated` block (AGTP-API 6.4)."""

    deprecated_in: str = setting("", "The version that deprecated it.", required=True)
    removed_in: str | None = setting(None, "The version that removes it.")
    successor: _Successor = table(_Successor)


def _read_deprecation(endpoint: Table) -> Deprecation | None:
    inner = endpoint.table("deprecated")
    if inner is None:
        return None
    block = read_settings(DeprecationBlock, inner)
    return Deprecation(
        deprecated_in=block.deprecated_in,
        removed_in=block.removed_in,
        successor_method=block.successor.method,
        successor_path=block.successor.path,
    )


def _read_cost(endpoint: Table) -> Cost | None:
    """Read the `cost` block: amounts by unit (core 7.7)."""
    block = endpoint.table("cost")
    if block is None:
        return None
    cost, faults = read_cost({unit: block.value(unit) for unit in block.data})
    for fault in faults:
        block.findings.error(
            COST, fault.message, block.pointer(fault.at), 'Write it like tokens = 500 or USD = "0.02".'
        )
    return cost


READERS: Final[Readers] = {
    "input_schema": _read_input_schema,
    "output_schema": _read_output_schema,
    "errors": _read_errors,
    "deprecated": _read_deprecation,
    "cost": _read_cost,
}
"""Readers of the fields of an endpoint that files write in a form of their own."""
