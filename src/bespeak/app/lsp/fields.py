"""The fields that are valid at a place of a document, with their descriptions and choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from bespeak.app.lsp.cursor import ITEM
from bespeak.checks.lint.config import Config
from bespeak.checks.lint.subject import Kind
from bespeak.contract.agent import STATUSES
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import HANDLER_TYPES, Composition, ExternalService, McpTool, RegisteredFunction
from bespeak.contract.recipe import Recipe
from bespeak.contract.schema.subschemas import target
from bespeak.contract.service import ServerIdentity
from bespeak.documents.deployment.endpoint_toml import KEYWORDS, TYPES, DeprecationBlock
from bespeak.documents.deployment.server_settings import ServerSettings
from bespeak.documents.deployment.server_toml import declared_tables
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.schemas import SCHEMAS, load_schema
from bespeak.protocol.exchange.header_values import UNITS
from bespeak.text.reading.settings import SCHEMA, VERB, Outline, outline_of, outlines, properties_of

_FORMATS: Final = ("date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid", "regex")


def _text(about: str, **more: Any) -> Outline:
    return {"type": "string", "description": about, **more}


def _number(about: str) -> Outline:
    return {"type": "number", "description": about}


def _texts(about: str, **item: Any) -> Outline:
    return {"type": "array", "description": about, "items": {"type": "string", **item}}


def _table(about: str, **properties: Outline) -> Outline:
    return {"type": "object", "description": about, "properties": properties}


def _tables(about: str, **properties: Outline) -> Outline:
    return {"type": "array", "description": about, "items": {"type": "object", "properties": properties}}


JSON_SCHEMA: Final[Outline] = {
    "type": "object",
    "format": SCHEMA,
    "properties": {
        "type": {"description": "The JSON type.", "enum": list(TYPES)},
        "properties": {
            "type": "object",
            "description": "The fields of an object, each with its schema.",
            "additionalProperties": {"type": "object", "format": SCHEMA},
        },
        "required": _texts("The required fields."),
        "additionalProperties": {"type": "boolean", "description": "True if undeclared fields are allowed."},
        "items": {"type": "object", "description": "The schema of the items of an array.", "format": SCHEMA},
        "description": _text("A description for people and agents."),
        "format": _text("The format of a string.", enum=list(_FORMATS)),
        "enum": {"type": "array", "description": "The allowed values."},
        "const": {"description": "The only allowed value."},
        "default": {"description": "The default value."},
        "minimum": _number("The minimum."),
        "maximum": _number("The maximum."),
        "minLength": _number("The minimum number of characters."),
        "maxLength": _number("The maximum number of characters."),
        "pattern": _text("A regular expression that the text must match."),
        "minItems": _number("The minimum number of items."),
        "maxItems": _number("The maximum number of items."),
        "$ref": _text("A shared schema of the document, #/schemas/NAME."),
    },
}

_FIELD: Final = {
    "name": _text("The name of the field."),
    **{name: known for name, known in JSON_SCHEMA["properties"].items() if name in KEYWORDS},
    "schema": {"type": "object", "description": "The whole schema, for other keywords.", "format": SCHEMA},
}

_HANDLER: Final = {
    "type": _text("The kind of handler.", enum=list(HANDLER_TYPES)),
    **properties_of(RegisteredFunction),
    **properties_of(McpTool),
    **properties_of(ExternalService),
    **properties_of(Composition),
}

_LISTS: Final = {
    "required": _tables("Required parameters.", **_FIELD),
    "optional": _tables("Optional parameters.", **_FIELD),
}

_DECLARED: Final = properties_of(Endpoint)
_ENDPOINT: Final = {
    **_DECLARED,
    "input": _DECLARED["input"] | {"properties": _LISTS},
    "output": _DECLARED["output"] | {"items": {"type": "object", "properties": _FIELD}},
    "deprecated": _DECLARED["deprecated"] | {"properties": properties_of(DeprecationBlock)},
    "cost": _DECLARED["cost"] | {"properties": {unit: _number(f"The most {unit} of one call.") for unit in UNITS}},
    "handler": _DECLARED["handler"] | {"properties": _HANDLER},
}

_IDENTITY: Final = {field.name for field in fields(ServerIdentity)}
_MEMBERS: Final = properties_of(ManifestDocument)
_SERVER: Final = {key: known for key, known in properties_of(ServerSettings).items() if key in _IDENTITY}
_MANIFEST: Final = {
    **_MEMBERS,
    "server": _MEMBERS["server"] | {"properties": _SERVER},
    "endpoints": _MEMBERS["endpoints"] | {"items": {"type": "object", "properties": _ENDPOINT}},
}

OUTLINES: Final[Mapping[Kind, Outline]] = {
    "endpoint": _table("An endpoint file.", endpoint=_table("The endpoint.", **_ENDPOINT)),
    "server": _table("The server.", **outlines(declared_tables()), lint=outline_of(Config)),
    "recipes": _table("The compositions of a server.", recipe=_tables("One composition.", **properties_of(Recipe))),
    "manifest": _table("A manifest.", **_MANIFEST),
    "agent": _table(
        "An agent identity document.",
        agent_id=_text("The id of the agent: 64 lower-case hexadecimal digits."),
        name=_text("Its name, for people."),
        description=_text("What it does."),
        status=_text("Its lifecycle state.", enum=list(STATUSES)),
        principal=_text("The name of the principal it acts for."),
        principal_id=_text("The id of the principal."),
        methods=_texts("The methods it uses."),
        scopes_accepted=_texts("The authority it is granted, as domain:action."),
        issued_at=_text("The time of issue."),
        updated_at=_text("The time of the last change."),
    ),
}
"""Outlines by kind of document. AGIS and discovery documents have a JSON Schema of their own."""


def field_at(kind: Kind, path: tuple[str, ...]) -> Outline | None:
    root = load_schema(kind) if kind in SCHEMAS else OUTLINES[kind]
    here: Outline | None = root
    for number, part in enumerate(path):
        if here is None:
            return None
        here = _resolved(_step(here, part, root), root, kind, path[: number + 1])
    return here


def choices(field: Outline) -> list[str]:
    """Return the allowed values, as they are written."""
    if "enum" in field:
        return [str(value) for value in field["enum"]]
    if "const" in field:
        return [str(field["const"])]
    return ["true", "false"] if field.get("type") == "boolean" else []


def is_verb(field: Outline) -> bool:
    return bool(field.get("format") == VERB or field is load_schema("agis")["$defs"]["method"])


def _step(field: Outline, part: str, root: Outline) -> Outline | None:
    if part == ITEM:
        items: Outline | None = field.get("items")
        return items
    if "items" in field and "properties" not in field:
        # TOML passes through lists implicitly: [recipe.pattern] belongs to the last [[recipe]].
        field = _referenced(field["items"], root)
    known: Outline | None = field.get("properties", {}).get(part)
    if known is not None:
        return known
    others = field.get("additionalProperties")
    return others if isinstance(others, dict) else None


def _referenced(field: Outline, root: Outline) -> Outline:
    found: Outline = target(field.get("$ref"), root, field)
    return found


def _resolved(field: Outline | None, root: Outline, kind: Kind, path: tuple[str, ...]) -> Outline | None:
    if field is None:
        return None
    field = _referenced(field, root)
    # A JSON Schema starts at these places of an AGIS document, whose own description says only `object`.
    in_endpoint = len(path) == 3 and path[:2] == ("endpoints", ITEM) and path[2] in ("input", "output")
    starts = kind == "agis" and (in_endpoint or (len(path) == 2 and path[0] == "schemas"))
    if field.get("format") == SCHEMA or starts:
        about: Any = field.get("description")
        return JSON_SCHEMA | ({"description": about} if about else {})
    return field
