"""Endpoint files (AGTP-API A.1) and recipes (AGTP-API 12.1): their shape; `lint` checks the rules of the drafts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.limits import Cost, read_cost
from bespeak.contract.recipe import Recipe
from bespeak.contract.rules import COST
from bespeak.contract.schema.validation import DIALECT
from bespeak.documents.deployment.folder import read_toml
from bespeak.documents.deployment.handlers import read_handler
from bespeak.documents.rules import ASSUMED_DEFAULT, LOWERCASE_METHOD
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, brief
from bespeak.text.reading.rules import DUPLICATE, UNKNOWN_KEY
from bespeak.text.reading.settings import VERB, Readers, read_settings, read_values, setting, table
from bespeak.text.reading.table import Findings, Table
from bespeak.text.source.tree import Change, Location

TYPES: Final = ("string", "integer", "number", "boolean", "object", "array", "null")  # types of a listed parameter
KEYWORDS: Final = frozenset(
    {
        *("additionalProperties", "const", "contentEncoding", "contentMediaType", "default", "deprecated"),
        *("description", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "items"),
        *("maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties"),
        *("minimum", "multipleOf", "pattern", "prefixItems", "properties", "required", "title", "type"),
        *("uniqueItems", "anyOf", "oneOf", "allOf"),
    }
)


def _read_input_schema(endpoint: Table) -> dict[str, Any]:
    """Read `input_schema` unchanged, or build a closed object from the lists under `input` (AGTP-API 13.3)."""
    lists = endpoint.table("input")
    if endpoint.data.get("input_schema") is not None:
        return _read_schema(endpoint, "input")
    if lists is None:
        if endpoint.data.get("input") is None:
            message = "no input is declared, so the endpoint takes none"
            endpoint.findings.info(ASSUMED_DEFAULT, message, endpoint.at, "Write `input = {}` to say so.")
        return _object_schema([], [], closed=True)
    schema = _object_schema(lists.tables("required"), lists.tables("optional"), closed=True)
    lists.finish()
    return schema


def _read_output_schema(endpoint: Table) -> dict[str, Any]:
    """Read `output_schema` unchanged, or build an open object from the list `output`, with all entries required."""
    entries = endpoint.tables("output")
    if endpoint.data.get("output_schema") is not None:
        return _read_schema(endpoint, "output")
    if endpoint.data.get("output") is None:
        message = "no output is declared, so the endpoint may answer with any object"
        endpoint.findings.info(ASSUMED_DEFAULT, message, endpoint.at, "Write `output = []` to say so.")
    return _object_schema(entries, [], closed=False)


def _read_schema(endpoint: Table, lists: str) -> dict[str, Any]:
    schema = f"{lists}_schema"
    if endpoint.data.get(lists) is not None:
        message = f"`{lists}` and `{schema}` cannot be combined"
        endpoint.findings.error(DUPLICATE, message, endpoint.pointer(schema), "Keep one of them.")
    return endpoint.json(schema)


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
    short = {key: value for key, value in entry.data.items() if key in KEYWORDS}
    entry.asked.update(("schema", "type", *short))
    full = entry.json("schema") if "schema" in entry.data else {}
    kind = short.get("type")
    if isinstance(kind, str) and kind not in TYPES:
        entry.choice("type", TYPES)  # reports it
    elif kind is None and not full:
        entry.missing("type", f"One of {', '.join(TYPES)}.")
    for key, value in short.items():
        if not isinstance(value, str):
            entry.check_json(key)
    entry.finish()
    return {**{key: value for key, value in short.items() if value is not None}, **full}


def _read_errors(endpoint: Table) -> tuple[DeclaredError, ...] | None:
    """Read `errors`: an array of names, `list` in a table, a table of descriptions, or an array of tables."""
    value = endpoint.data.get("errors")
    if value is None:
        return None
    if isinstance(value, dict) and (block := endpoint.table("errors")) is not None:
        return _described_errors(block)
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        errors = []
        for entry in endpoint.tables("errors"):
            errors.append(DeclaredError(entry.need_text("name"), entry.text("description") or ""))
            entry.finish()
        return tuple(errors)
    return tuple(DeclaredError(name) for name in endpoint.texts("errors"))


def _described_errors(table: Table) -> tuple[DeclaredError, ...]:
    names = dict.fromkeys(table.texts("list"), "") if isinstance(table.data.get("list"), list) else {}
    for name, value in table.data.items():
        if not isinstance(value, list):
            names[name] = value if isinstance(value, str) else table.text(name) or ""
        elif name != "list":
            table.wrong(name, "a string", value)
    return tuple(DeclaredError(name, description) for name, description in names.items())


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
    cost, faults = read_cost(block.data)
    for fault in faults:
        block.error(COST, fault.at, fault.message, 'Write it like tokens = 500 or USD = "0.02".')
    return cost


READERS: Final[Readers] = {
    "input_schema": _read_input_schema,
    "output_schema": _read_output_schema,
    "errors": _read_errors,
    "deprecated": _read_deprecation,
    "cost": _read_cost,
}


def endpoint_of(root: Table, file: str) -> tuple[Endpoint | None, list[Diagnostic]]:
    """Read the endpoint in the root table of a document; return None if any finding is an error."""
    endpoint = declared_endpoint(root, file)
    return None if root.findings.failed else endpoint, root.findings.found


def declared_endpoint(root: Table, file: str) -> Endpoint | None:
    """Read the endpoint despite errors, so that a linter can check the readable parts."""
    block = root.table("endpoint")
    if block is None:
        if root.data.get("endpoint") is None:
            root.missing("endpoint", "An endpoint file starts with [endpoint].")
        return None
    values = read_values(Endpoint, block, readers=_READERS)
    block.finish()
    root.finish()
    _explain_unread_scopes(root.findings)
    if values["semantic"] is None or values["handler"] is None:
        return None
    return Endpoint(**values, location=Location(file))


def _explain_unread_scopes(findings: Findings) -> None:
    """Say of each unread key about scopes where scopes are written."""
    advice = "Write required_scopes, directly under [endpoint]; this key has no effect, so no scope is required."
    findings.found[:] = [
        replace(finding, help=advice, fix=None)
        if finding.rule == UNKNOWN_KEY.id and "scope" in finding.pointer.rpartition("/")[2].lower()
        else finding
        for finding in findings.found
    ]


def _read_method(block: Table) -> str:
    method = block.need_text("method")
    capitals = method.upper()
    if method != capitals:
        message = f"`method` is {brief(method)}; methods are written in capitals (AGTP-API 3.2)"
        shown = brief(capitals)[1:-1]
        fix = Fix(f"Write {shown}", (Change("replace", block.pointer("method"), capitals),))
        block.findings.warning(LOWERCASE_METHOD, message, block.pointer("method"), f"It is read as {shown}.", fix)
    return capitals


_READERS: Final[Readers] = {
    **READERS,
    "method": _read_method,
    "handler": lambda block: read_handler(inner) if (inner := block.table("handler")) else None,
}


def read_recipes(path: Path) -> tuple[tuple[Recipe, ...], list[Diagnostic]]:
    root = read_toml(path)
    return ((), [root]) if isinstance(root, Diagnostic) else recipes_of(root, str(path))


def recipes_of(root: Table, file: str) -> tuple[tuple[Recipe, ...], list[Diagnostic]]:
    recipes: dict[str, Recipe] = {}
    for entry in root.tables("recipe"):
        recipe = replace(read_settings(Recipe, entry), location=Location(file))
        if recipe.name in recipes:
            root.findings.error(DUPLICATE, f"the recipe {brief(recipe.name)} is declared twice", entry.pointer("name"))
        recipes[recipe.name] = recipe
    root.finish()
    return () if root.findings.failed else tuple(recipes.values()), root.findings.found
