"""Endpoint files (AGTP-API A.1), their handlers and recipes (AGTP-API 12): shapes; `lint` checks the drafts' rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.handler import (
    Composition,
    ExternalService,
    HandlerBinding,
    McpTool,
    RegisteredFunction,
    is_dotted_path,
)
from bespeak.contract.limits import Cost, read_cost
from bespeak.contract.recipe import Recipe
from bespeak.contract.rules import COST
from bespeak.contract.schema.validation import DIALECT
from bespeak.documents.deployment.folder import read_toml
from bespeak.documents.rules import ASSUMED_DEFAULT, LOWERCASE_METHOD, UNSUPPORTED_HANDLER
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, brief
from bespeak.text.reading.rules import DUPLICATE, MISSING_KEY, UNKNOWN_KEY, WRONG_VALUE
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
    if (value := endpoint.data.get("errors")) is None:
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
    if (inner := endpoint.table("deprecated")) is None:
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
    if (block := endpoint.table("cost")) is None:
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
    if (block := root.table("endpoint")) is None:
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


_KINDS: Final[dict[str, type[RegisteredFunction | Composition | ExternalService]]] = {
    RegisteredFunction.type: RegisteredFunction,
    Composition.type: Composition,
    ExternalService.type: ExternalService,
}
_UNSUPPORTED: Final = {
    ("blocking", RegisteredFunction.type): (
        "`blocking` is no longer a setting: every `def` runs in a thread",
        "Remove it. Write `inline = true` for a quick `def` that may run in the event loop.",
    ),
    ("module", RegisteredFunction.type): (
        "`module` beside `function` is not supported (AGTP-API 12.2)",
        'Write one dotted path: function = "module.function".',
    ),
    **{
        (key, Composition.type): (
            f"`{key}`: steps inside an endpoint are not supported (AGTP-API 12.1)",
            "Move them into agtp-recipes.toml and name the recipe here.",
        )
        for key in ("steps", "plan")
    },
}


def read_handler(block: Table) -> HandlerBinding | None:
    """Read the binding if its kind is known. Registration checks whether its target can be reached."""
    if (kind := block.choice("type", tuple(_KINDS))) is None:
        if not block.has("type"):
            block.missing("type", f"One of {', '.join(_KINDS)}.")
        return None
    for (key, of), (message, advice) in _UNSUPPORTED.items():
        if of == kind and block.has(key):
            block.findings.error(UNSUPPORTED_HANDLER, message, block.pointer(key), advice)
    if kind == McpTool.type and block.has("mcp"):
        tool: McpTool = read_settings(McpTool, block, known=("type",))
        server = block.value("mcp")
        if not isinstance(server, dict):
            return None  # it is reported, and leaves nothing to call
        if not server.keys() & {"tool", "prompt", "resource"}:
            advice = "The name of the tool, as the server has it; or `prompt` or `resource`."
            block.findings.error(MISSING_KEY, "`tool` is missing", block.pointer("mcp"), advice)
        return tool
    binding = read_settings(_KINDS[kind], block, known=("type",))
    function = binding.function if isinstance(binding, RegisteredFunction) else ""
    if function and not block.has("module") and not is_dotted_path(function):
        key = "function" if block.has("function") else "reference"
        message = f"`{key}` must be the dotted path of a function (AGTP-API 12.2); got {brief(function)}"
        block.error(WRONG_VALUE, key, message)
    return binding


_FORM = 'Write [handlers."BOOK /reservation"]: the method, a space, the path.'


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerEntry:
    """One handler and the endpoint it is for."""

    method: str
    path: str
    handler: HandlerBinding
    pointer: str
    location: Location


def read_handlers(root: Table, key: str) -> tuple[HandlerEntry, ...]:
    """Read every valid entry. Whether the document has that endpoint is checked later."""
    block = root.table(key)
    entries: list[HandlerEntry] = []
    for name in block.data if block else ():
        assert block is not None
        if (inner := block.table(name)) is None:
            continue
        method, _, path = name.partition(" ")
        path = path.strip()
        if not path.startswith("/"):
            block.findings.error(WRONG_VALUE, f"{brief(name)} does not name an endpoint", inner.at, _FORM)
            continue
        if (handler := read_handler(inner)) is not None:
            method, place = method.upper(), block.findings.locate(inner.at)
            entries.append(HandlerEntry(method=method, path=path, handler=handler, pointer=inner.at, location=place))
    return tuple(entries)
