"""Parts of an endpoint in documents: semantic block, parameter lists, errors, deprecation."""

from __future__ import annotations

from typing import Any, Final

from bespeak.contract.cost import Cost, read_cost
from bespeak.contract.deprecation import Deprecation
from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.rules import COST
from bespeak.contract.schema.compile import DIALECT
from bespeak.documents.rules import ASSUMED_DEFAULT
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import DUPLICATE
from bespeak.text.reading.table import Table

TYPES: Final = ("string", "integer", "number", "boolean", "object", "array", "null")
"""Values of `type` in an entry of a parameter list."""

_KEYWORDS: Final = frozenset(
    {
        *("additionalProperties", "const", "contentEncoding", "contentMediaType", "default", "deprecated"),
        *("description", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "items"),
        *("maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties"),
        *("minimum", "multipleOf", "pattern", "prefixItems", "properties", "required", "title", "type"),
        *("uniqueItems", "anyOf", "oneOf", "allOf"),
    }
)
"""JSON Schema keywords allowed in an entry of a parameter list."""


def read_input_schema(endpoint: Table) -> dict[str, Any]:
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


def read_output_schema(endpoint: Table) -> dict[str, Any]:
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
        if key in _KEYWORDS:
            value = entry.value(key)
            if not isinstance(value, str):
                entry.check_json(key)
            if value is not None:
                short[key] = value
    entry.finish()
    return {**short, **full}


def read_errors(endpoint: Table) -> tuple[DeclaredError, ...]:
    """Read `errors`: an array of names, `list` in a table, a table of descriptions, or an array of tables."""
    value = endpoint.value("errors")
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


def read_deprecation(block: Table | None) -> Deprecation | None:
    """Read the `deprecated` block (AGTP-API 6.4), if there is one."""
    if block is None:
        return None
    successor = block.table("successor")
    deprecation = Deprecation(
        deprecated_in=block.need_text("deprecated_in"),
        removed_in=block.text("removed_in"),
        successor_method=successor.text("method") if successor else None,
        successor_path=successor.text("path") if successor else None,
    )
    if successor:
        successor.finish()
    block.finish()
    return deprecation


def read_cost_block(block: Table | None) -> Cost | None:
    """Read the `cost` block: amounts by unit (core 7.7), if there is one."""
    if block is None:
        return None
    cost, faults = read_cost({unit: block.value(unit) for unit in block.data})
    for fault in faults:
        block.findings.error(
            COST, fault.message, block.pointer(fault.at), 'Write it like tokens = 500 or USD = "0.02".'
        )
    return cost
