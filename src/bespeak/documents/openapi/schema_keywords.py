"""Keywords of OpenAPI schemas in JSON Schema 2020-12: converted, or dropped with a reason.

Parts of an object (`allOf`) become one object, because closed parts would refuse each other's properties.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from bespeak.contract.schema.safety import needs_backtracking, slowness
from bespeak.contract.schema.subschemas import is_closed
from bespeak.documents.adoption.sanitizer import parts_of
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.table import as_optional_text

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
MOST_VALUES: Final = 1_000  # maximum number of enum values; lint reports more as oversized
_TYPE_SYNONYMS: Final = {  # types of programming languages that descriptions use instead of JSON types
    **dict.fromkeys(("int", "long", "int32", "int64"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("map", "dict", "hash"), "object"),
    **dict.fromkeys(("str", "text"), "string"),
    "bool": "boolean",
    "list": "array",
}
_FORMATS: Final = {"guid": "uuid", "url": "uri", "datetime": "date-time", "ip": "ipv4"}
_WIDTHS: Final = frozenset({"int32", "int64", "float", "double", "password", "byte", "binary", "base64"})
"""Formats that describe storage or display, or that `contentEncoding` expresses."""
_LINEAR: Final = jsonschema_rs.RegexOptions()
_INT64: Final = 1 << 63

Complaint = Callable[[str, str], None]  # function that takes a keyword and the reason why it is dropped


def plain_keywords(schema: Mapping[str, Any], *, complain: Complaint) -> dict[str, Any]:
    """Convert all keywords that can be checked without another one."""
    made: dict[str, Any] = {}
    _types(schema, made, complain)
    for keyword, read in _READERS.items():
        if keyword in schema and schema[keyword] is not None:
            if (value := read(schema[keyword])) is not None:
                made[keyword] = value
            elif keyword not in _QUIET:
                complain(keyword, f"is {brief(schema[keyword])}")
    given = schema.get("format")
    if given in ("byte", "binary", "base64"):
        if made.get("type", "string") == "string" or "string" in made["type"]:
            made["contentEncoding"] = "base64"
    elif isinstance(given, str) and given and given not in _WIDTHS:
        made["format"] = _FORMATS.get(given.lower(), given)
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and bound in made:  # `exclusiveMinimum: true` of draft 4
            made[exclusive] = made.pop(bound)
    _values(schema, made, complain)
    if "pattern" in schema:
        if (reason := pattern_fault(schema["pattern"])) is None:
            made["pattern"] = schema["pattern"]
        else:
            complain("pattern", f"{brief(schema['pattern'])} {reason}")
    return made


def pattern_fault(pattern: object) -> str | None:
    """Return why a pattern cannot be used; None if it can."""
    if not isinstance(pattern, str):
        return "is not a string"
    return "is too long" if len(pattern) > 2_000 else _pattern_fault(pattern)


@lru_cache(4096)
def _pattern_fault(pattern: str) -> str | None:
    if needs_backtracking(pattern):
        return "uses look-around or back-references"
    if slowness(pattern) is not None:
        return "has a repetition inside a repetition"
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=_LINEAR, offline=True)
    except ValueError:
        return "is not a supported regular expression"
    return None


def is_null_free(value: Any) -> bool:
    """Return True if a value can be written in an endpoint file, which cannot hold null."""
    return all(part is not None for part in parts_of(value))


def _types(schema: Mapping[str, Any], made: dict[str, Any], complain: Complaint) -> None:
    if (given := schema.get("type")) is None:
        return
    names = given if isinstance(given, list) else [given]
    kept: list[str] = []
    for name in names:
        word = "null" if name is None else name.lower() if isinstance(name, str) else ""
        meant = _TYPE_SYNONYMS.get(word, word)
        if meant == "file":
            meant = "string"
            made["contentEncoding"] = "base64"
        if meant in TYPES:
            if meant not in kept:
                kept.append(meant)
        elif meant != "any":
            complain("type", f"is {brief(name)}")
            return
    if kept:
        made["type"] = kept[0] if len(kept) == 1 else kept


def _values(schema: Mapping[str, Any], made: dict[str, Any], complain: Complaint) -> None:
    if "const" in schema:
        if schema["const"] is None:
            made["type"] = "null"
        elif is_null_free(schema["const"]):
            made["const"] = schema["const"]
        else:
            complain("const", "contains null, which an endpoint file cannot express")
    if (values := schema.get("enum")) is None:
        return
    if not isinstance(values, list) or not values:
        complain("enum", f"is {brief(values)}")
    elif len(values) > MOST_VALUES:
        complain("enum", f"has {len(values):,} values, more than {MOST_VALUES:,}")
    elif not all(value is None or is_null_free(value) for value in values):
        complain("enum", "contains null, which an endpoint file cannot express")
    else:
        made["enum"] = _distinct(values)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Remove duplicates: JSON Schema equates 1 and 1.0; Python also equates True and 1, which JSON does not."""
    kept: list[Any] = []
    seen: set[tuple[bool, Any]] = set()
    for value in values:
        if isinstance(value, dict | list):
            if value not in kept:
                kept.append(value)
        elif (isinstance(value, bool), value) not in seen:
            seen.add((isinstance(value, bool), value))
            kept.append(value)
    return kept


def number(value: Any) -> int | float | None:
    """Return a number that both JSON and TOML can express."""
    if isinstance(value, str):
        try:
            value = float(value) if any(sign in value for sign in ".eE") else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        if abs(value) >= _INT64:
            value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def _count(value: Any) -> int | None:
    found = number(value)
    return None if found is None or found < 0 or found != int(found) or found >= _INT64 else int(found)


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _names(value: Any) -> list[str] | None:
    return list(dict.fromkeys(name for name in value if isinstance(name, str))) if isinstance(value, list) else None


def _dependent(value: Any) -> dict[str, list[str]] | None:
    if not isinstance(value, dict):
        return None
    return {name: names for name, given in value.items() if (names := _names(given)) is not None}


_QUIET: Final = frozenset({"exclusiveMinimum", "exclusiveMaximum", "title", "description", "deprecated", "uniqueItems"})
"""Keywords that are dropped silently if not valid: draft-4 booleans and annotations."""
_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("title", "description"), as_optional_text),
    "deprecated": _boolean,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), number),
    "multipleOf": lambda value: found if (found := number(value)) is not None and found > 0 else None,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _count),
    "uniqueItems": _boolean,
    **dict.fromkeys(("minProperties", "maxProperties"), _count),
    "required": _names,
    "dependentRequired": _dependent,
    **dict.fromkeys(("contentEncoding", "contentMediaType"), as_optional_text),
}


WORDS: Final = frozenset({"title", "description", "deprecated", "default"})  # They restrict no value.
_COMPOSING: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if"})


def finished(made: dict[str, Any], schema: Mapping[str, Any], *, nullable: bool) -> dict[str, Any]:
    """Add what depends on all keywords: the implied type, the default, and null."""
    made = typed(made)
    if "default" in schema and schema["default"] is not None and is_null_free(schema["default"]):
        made["default"] = schema["default"]
    return with_null(made, nullable=nullable)


def typed(made: dict[str, Any]) -> dict[str, Any]:
    """Add the type that properties or items imply, if the author omitted it."""
    if "type" in made or not made.keys().isdisjoint(_COMPOSING | {"enum", "const"}):
        return made
    if not made.keys().isdisjoint({"properties", "additionalProperties", "patternProperties", "required"}):
        return {"type": "object", **made}
    return {"type": "array", **made} if not made.keys().isdisjoint({"items", "prefixItems"}) else made


def with_null(made: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    """Allow null in a schema without the value null, which an endpoint file cannot hold."""
    values = made.get("enum")
    if values is not None and None in values:
        nullable = True
        if not (kept := [value for value in values if value is not None]):
            return {**{name: made[name] for name in made if name in WORDS}, "type": "null"}
        made = {**made, "enum": kept}
    if not nullable:
        return made
    kind = made.get("type")
    if "enum" not in made and "const" not in made and made.keys().isdisjoint(_COMPOSING):
        if kind is None:
            return made
        kinds = kind if isinstance(kind, list) else [kind]
        return {**made, "type": [*kinds, "null"]} if "null" not in kinds else made
    if isinstance(kind, list) and "null" in kind:
        rest = [name for name in kind if name != "null"]
        made = {**made, "type": rest[0] if len(rest) == 1 else rest} if rest else made
    words = {name: made[name] for name in made if name in WORDS}
    bare = {name: value for name, value in made.items() if name not in WORDS}
    if bare.keys() == {"anyOf"}:
        null = {"type": "null"}
        return {**words, "anyOf": bare["anyOf"] if null in bare["anyOf"] else [*bare["anyOf"], null]}
    return {**words, "anyOf": [bare, {"type": "null"}]} if bare else words


_PLAIN: Final = WORDS | {"type", "properties", "required", "additionalProperties"}  # of a part that can be merged
_MOST: Final = 1_000  # maximum number of properties in a merged object; larger parts stay references, to avoid copies


def merge_objects(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Merge parts into one object, closed if one of them is; return None if they are not plain objects.

    The first part may be the schema around the `allOf`: texts of an earlier part take precedence.
    """
    plain = all(part.keys() <= _PLAIN and part.get("type", "object") == "object" for part in parts)
    if not plain or sum(len(part.get("properties", ())) for part in parts) > _MOST:
        return None
    further = [part["additionalProperties"] for part in parts if isinstance(part.get("additionalProperties"), dict)]
    if any(one != further[0] for one in further[1:]):
        return None
    merged: dict[str, Any] = {}
    for part in parts:
        merged.update({name: part[name] for name in part if name in WORDS and name not in merged})
    merged["type"] = "object"
    properties: dict[str, Any] = {}
    required: dict[str, None] = {}
    for part in parts:
        for name, schema in part.get("properties", {}).items():
            properties[name] = _both(properties[name], schema) if name in properties else schema
        required.update(dict.fromkeys(part.get("required", ())))
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = list(required)
    if any(part.get("additionalProperties") is False for part in parts):
        merged["additionalProperties"] = False
    elif further:
        merged["additionalProperties"] = further[0]
    return merged


def opened(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part without the keyword that closes it."""
    closing = ("additionalProperties", "unevaluatedProperties") if is_closed(part) else ()
    return {name: value for name, value in part.items() if name not in closing}


def _both(one: Any, other: Any) -> Any:
    """Merge two descriptions of a property. A part that only adds texts does not count as a description."""
    if one == other or not other.keys() - WORDS:
        return {**other, **one}
    if not one.keys() - WORDS:
        return {**one, **other}
    bare, bare_other = ({name: part[name] for name in part if name not in WORDS} for part in (one, other))
    return {**one, **other} if bare == bare_other else {"allOf": [one, other]}
