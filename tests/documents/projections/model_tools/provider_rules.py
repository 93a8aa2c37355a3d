"""The rules of each provider for the schemas of tools, as published; written apart from the code that follows them.

OpenAI: Structured Outputs, "Supported schemas". Anthropic: Structured outputs, "JSON Schema limitations" and "Schema
complexity limits". Gemini: `parametersJsonSchema`, the properties listed for `responseJsonSchema`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

Schema = dict[str, Any]

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
GEMINI_NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$")
PROPERTY = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
GEMINI_PROPERTY = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]{0,63}$")
SIMPLE = {"string", "number", "integer", "boolean", "null", "object", "array"}
COMMON = {"description", "type", "enum", "anyOf", "$ref", "$defs", "properties", "required", "items"}
OPENAI_STRICT = COMMON | {
    *("additionalProperties", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("multipleOf", "minItems", "maxItems"),
}
OPENAI_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
ANTHROPIC_STRICT = COMMON | {"additionalProperties", "format", "minItems", "pattern"}
ANTHROPIC_FORMATS = OPENAI_FORMATS | {"uri"}
GEMINI = COMMON | {"format", "minimum", "maximum", "minItems", "maxItems", "prefixItems", "additionalProperties"}


def subschemas(schema: Schema, at: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every schema of a document with its place."""
    yield at, schema
    for key in ("properties", "$defs"):
        for name, part in schema.get(key, {}).items():
            yield from subschemas(part, f"{at}/{key}/{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from subschemas(schema[key], f"{at}/{key}")
    for key in ("anyOf", "prefixItems"):
        for index, part in enumerate(schema.get(key, ())):
            yield from subschemas(part, f"{at}/{key}/{index}")


def broken(schema: Schema, style: str, *, strict: bool) -> list[str]:
    """Return the rules that a schema breaks."""
    found = list(_general(schema))
    if style == "gemini":
        found += _gemini(schema)
    elif strict:
        found += _openai_strict(schema) if style.startswith("openai") else _anthropic_strict(schema)
    names = GEMINI_PROPERTY if style == "gemini" else PROPERTY
    found += [f"argument {name!r}" for name in schema.get("properties", ()) if not names.match(name)]
    return found


def _general(schema: Schema) -> Iterator[str]:
    """Yield what every provider refuses, strict or not."""
    if schema.get("type") != "object":
        yield "the root is not an object"
    if {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"} & schema.keys():
        yield "the root has a union"
    if not jsonschema_rs.meta.is_valid(schema):
        yield "not JSON Schema 2020-12"
    for at, part in subschemas(schema):
        if any(key.startswith("~") for key in part):
            yield f"{at}: a mark was left"
        if "array" in _types(part) and not {"items", "prefixItems"} & part.keys():
            yield f"{at}: array schema missing items"
        for key in ("oneOf", "allOf", "const", "not", "if", "$id", "$anchor", "$dynamicRef", "definitions"):
            if key in part:
                yield f"{at}: {key}"
        reference = part.get("$ref")
        if reference is not None and reference.removeprefix("#/$defs/") not in schema.get("$defs", {}):
            yield f"{at}: {reference} leads nowhere"


def _types(part: Schema) -> list[str]:
    kind = part.get("type", [])
    return [kind] if isinstance(kind, str) else kind


def _openai_strict(schema: Schema) -> Iterator[str]:
    properties = values = characters = 0
    for at, part in subschemas(schema):
        yield from _unknown(at, part, OPENAI_STRICT)
        yield from _closed(at, part)
        if part.keys() > {"$ref"} and "$ref" in part:
            yield f"{at}: $ref has siblings"
        if "object" in _types(part) and part.get("required") != list(part.get("properties", ())):
            yield f"{at}: not every property is required"
        if not {"type", "anyOf", "$ref"} & part.keys():
            yield f"{at}: no type"
        if part.get("format", "date") not in OPENAI_FORMATS:
            yield f"{at}: format {part['format']}"
        if re.search(r"\(\?[=!<]", part.get("pattern", "")):
            yield f"{at}: look-around"
        properties += len(part.get("properties", ()))
        listed = part.get("enum", [])
        values += len(listed)
        texts = sum(len(each) for each in listed if isinstance(each, str))
        if len(listed) > 250 and texts > 15_000:
            yield f"{at}: a long list of long values"
        characters += texts + sum(map(len, (*part.get("properties", ()), *part.get("$defs", ()))))
    if properties > 5_000 or values > 1_000 or characters > 120_000:
        yield f"too large: {properties} properties, {values} values, {characters} characters"
    for name, part in {"": schema, **schema.get("$defs", {})}.items():
        if _depth(part) > 10:
            yield f"{name}: more than 10 levels"


def _depth(part: Schema) -> int:
    below = [
        *part.get("properties", {}).values(),
        *part.get("anyOf", ()),
        *([part["items"]] if "items" in part else []),
    ]
    return ("object" in _types(part)) + max(map(_depth, below), default=0)


def _anthropic_strict(schema: Schema) -> Iterator[str]:
    for at, part in subschemas(schema):
        yield from _unknown(at, part, ANTHROPIC_STRICT)
        yield from _closed(at, part)
        if part.keys() > {"$ref"} and "$ref" in part:
            yield f"{at}: $ref has siblings"
        if not {"type", "anyOf", "$ref"} & part.keys():
            yield f"{at}: no type"
        if isinstance(part.get("type"), list):
            yield f"{at}: list of types"
        if part.get("format", "date") not in ANTHROPIC_FORMATS:
            yield f"{at}: format {part['format']}"
        if part.get("minItems", 0) not in (0, 1):
            yield f"{at}: minItems {part['minItems']}"
        if re.search(r"\(\?|\\[bB1-9]", part.get("pattern", "")):
            yield f"{at}: pattern {part['pattern']}"
        if any(isinstance(each, dict | list) for each in part.get("enum", ())):
            yield f"{at}: complex values"
    if _is_recursive(schema):
        yield "recursive"


def _is_recursive(schema: Schema) -> bool:
    definitions = schema.get("$defs", {})
    leads = {
        name: {each["$ref"].removeprefix("#/$defs/") for _, each in subschemas(part) if "$ref" in each}
        for name, part in definitions.items()
    }

    def reaches(name: str, seen: frozenset[str]) -> bool:
        return name in seen or any(reaches(below, seen | {name}) for below in leads[name])

    return any(reaches(name, frozenset()) for name in leads)


def _gemini(schema: Schema) -> Iterator[str]:
    for at, part in subschemas(schema):
        yield from _unknown(at, part, GEMINI)
        if part.keys() > {"$ref"} and "$ref" in part:
            yield f"{at}: $ref has siblings"
        if any(isinstance(each, bool) or not isinstance(each, str | int | float) for each in part.get("enum", ())):
            yield f"{at}: enum is for strings and numbers"
        kinds = part.get("type", "string")
        if isinstance(kinds, list) and (len(kinds) > 2 or "null" not in kinds):
            yield f"{at}: list of types"


def _unknown(at: str, part: Schema, known: set[str]) -> Iterator[str]:
    unknown = part.keys() - known
    if unknown:
        yield f"{at}: {', '.join(sorted(unknown))}"
    if not set(_types(part)) <= SIMPLE:
        yield f"{at}: type {part['type']}"


def _closed(at: str, part: Schema) -> Iterator[str]:
    if "object" in _types(part) and part.get("additionalProperties") is not False:
        yield f"{at}: additionalProperties is not false"
    if "object" not in _types(part) and "additionalProperties" in part:
        yield f"{at}: additionalProperties without an object"
