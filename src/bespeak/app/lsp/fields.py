"""The fields that are valid at a place of a document, with their descriptions and choices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bespeak.app.lsp.flow_place import ITEM
from bespeak.app.lsp.outlines import JSON_SCHEMA, OUTLINES
from bespeak.checks.lint.subject import Kind
from bespeak.contract.schema.reference import target
from bespeak.documents.schemas import SCHEMAS, load_schema
from bespeak.text.reading.outline import Outline
from bespeak.text.reading.setting import RULE, SCHEMA, VERB


def field_at(kind: Kind, path: tuple[str, ...]) -> Outline | None:
    """Return the schema of the field at a path."""
    root = load_schema(kind) if kind in SCHEMAS else OUTLINES[kind]
    here: Outline | None = root
    for number, part in enumerate(path):
        if here is None:
            return None
        here = _resolved(_step(here, part, root), root, kind, path[: number + 1])
    return here


def properties(field: Outline) -> Mapping[str, Outline]:
    """Return the fields of a mapping."""
    found: Mapping[str, Outline] = field.get("properties", {})
    return found


def choices(field: Outline) -> list[str]:
    """Return the allowed values, as they are written."""
    if "enum" in field:
        return [str(value) for value in field["enum"]]
    if "const" in field:
        return [str(field["const"])]
    return ["true", "false"] if field.get("type") == "boolean" else []


def is_text(field: Outline) -> bool:
    """Return True if the values of a field are strings, which some notations quote."""
    return bool(field.get("type", "string") == "string")


def is_verb(field: Outline) -> bool:
    """Return True if the value of a field is a verb."""
    return bool(field.get("format") == VERB or field is load_schema("agis")["$defs"]["method"])


def is_rule(field: Outline) -> bool:
    """Return True if the value of a field is a rule."""
    return bool(field.get("format") == RULE)


def _step(field: Outline, part: str, root: Outline) -> Outline | None:
    if part == ITEM:
        items: Outline | None = field.get("items")
        return items
    if "items" in field and "properties" not in field:
        # TOML passes through lists implicitly: [recipe.pattern] belongs to the last [[recipe]].
        field = _referenced(field["items"], root)
    known = properties(field).get(part)
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
    if field.get("format") == SCHEMA or (kind == "agis" and _is_schema(path)):
        about: Any = field.get("description")
        return JSON_SCHEMA | ({"description": about} if about else {})
    return field


def _is_schema(path: tuple[str, ...]) -> bool:
    """Return True if a JSON Schema starts at a path of an AGIS document; its own description says only `object`."""
    in_endpoint = len(path) == 3 and path[:2] == ("endpoints", ITEM) and path[2] in ("input", "output")
    return in_endpoint or (len(path) == 2 and path[0] == "schemas")
