"""The draft's shorthand for fields, `party_size (integer, minimum: 1)`, as JSON Schema that keeps its places."""

from __future__ import annotations

import re
from typing import Any, Final

from bespeak.text.source.pointer import child
from bespeak.text.source.tree import NumberTooLarge, Tree, plain_value

_TYPES: Final[dict[str, dict[str, Any]]] = {
    **{name: {"type": "integer"} for name in ("int", "integer")},
    **{name: {"type": "number"} for name in ("number", "float", "double", "decimal")},
    **{name: {"type": "string"} for name in ("string", "str", "text")},
    **{name: {"type": "boolean"} for name in ("boolean", "bool")},
    **{name: {"type": "array"} for name in ("array", "list")},
    **{name: {"type": "object"} for name in ("object", "map")},
    **{
        name: {"type": "string", "format": "date-time"}
        for name in ("iso8601", "iso 8601", "iso-8601", "date-time", "datetime", "timestamp")
    },
    **{name: {"type": "string", "format": name} for name in ("date", "time", "duration", "email", "uuid", "uri")},
    "url": {"type": "string", "format": "uri"},
    "null": {"type": "null"},
    "any": {},
}
KEYWORDS: Final = frozenset(
    {
        *("type", "enum", "const", "default", "title", "description", "examples"),
        *("deprecated", "readOnly", "writeOnly"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("format", "pattern", "minLength", "maxLength", "contentEncoding", "contentMediaType"),
        *("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"),
        *("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties"),
        *("maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "definitions"),
        *("$ref", "$defs", "$schema", "$id", "$anchor", "$comment", "$dynamicRef"),
    }
)
_SHORT_KEYWORDS: Final = {"min": "minimum", "max": "maximum"}
_ARRAY_OF: Final = re.compile(r"(?:array|list) of (?P<what>.+)", re.IGNORECASE)
_FIELD: Final = re.compile(r"(?P<name>[\w$.-]+)\s*(?:\((?P<in>.*)\)|:\s*(?P<after>.*))?", re.DOTALL)
_OPENING: Final = {"(": ")", "[": "]", "{": "}"}


def field_schema(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and JSON Schema of a field: `name`, `name (type, keyword: value)` or `name: type`."""
    if (found := _FIELD.fullmatch(text.strip())) is None:
        return text.strip(), {}
    return found["name"], type_schema(found["in"] or found["after"] or "")


def type_schema(text: str) -> dict[str, Any]:
    """Return the JSON Schema of `integer, minimum: 1`. Other text becomes the description."""
    schema: dict[str, Any] = {}
    words: list[str] = []
    text = text.strip()
    if text[:1] == "[" and text[-1:] == "]":
        text = text[1:-1]
    for part in split_commas(text):
        name, colon, value = part.partition(":")
        keyword = _SHORT_KEYWORDS.get(name.strip(), name.strip())
        if colon and keyword in KEYWORDS:
            schema[keyword] = _value(value.strip())
            continue
        if (kind := _kind(part)) is None:
            words.append(part)
        else:
            schema = {**kind, **schema}
    if words and "description" not in schema:
        schema["description"] = ", ".join(words)
    return schema


def is_short_input(value: Any) -> bool:
    """Return True if an input is two lists of names: a JSON Schema would have `properties` or a `type`."""
    if not isinstance(value, dict) or not value or value.keys() - {"required", "optional"}:
        return False
    return all(isinstance(fields, list) and all(map(_is_field, fields)) for fields in value.values())


def is_short_output(value: Any) -> bool:
    """Return True if an output is a list of names, or a mapping from names to nothing or to short types."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_field, value))
    if not isinstance(value, dict) or not value:
        return False
    if all(kind is None for kind in value.values()):
        return True
    return not value.keys() & KEYWORDS and all(map(_is_short_type, value.values()))


def expand_input(value: Any) -> Any:
    """Return the JSON Schema of an input; an existing schema is returned unchanged."""
    if not is_short_input(value):
        return value
    required = [field_schema(text) for text, _ in joined(value.get("required", []))]
    optional = [field_schema(text) for text, _ in joined(value.get("optional", []))]
    return {
        "type": "object",
        "properties": dict([*required, *optional]),
        "required": list(dict(required)),
        "additionalProperties": False,
    }


def expand_output(value: Any) -> Any:
    if not is_short_output(value):
        return value
    if isinstance(value, list):
        fields = dict(field_schema(text) for text, _ in joined(value))
    else:
        fields = {name: type_schema(_short_type(kind)) for name, kind in value.items()}
    return {"type": "object", "properties": fields, "required": list(fields)}


def joined(fields: list[Any]) -> list[tuple[str, int]]:
    """Rejoin fields that YAML split at a comma, `[size (integer, minimum: 1)]`, with their index."""
    made: list[tuple[str, int]] = []
    open_parts: list[str] = []
    balance = 0
    for index, field in enumerate(fields):
        text = field if isinstance(field, str) else ", ".join(f"{key}: {_word(one)}" for key, one in field.items())
        if not open_parts:
            made.append(("", index))
        open_parts.append(text)
        balance += text.count("(") - text.count(")")
        if balance <= 0 or index == len(fields) - 1:
            made[-1] = (", ".join(open_parts), made[-1][1])
            open_parts = []
            balance = 0
    return made


def split_commas(text: str) -> list[str]:
    """Split at commas outside of brackets and quotes, and strip spaces."""
    parts: list[str] = []
    closing: list[str] = []
    quote = ""
    start = 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _OPENING:
            closing.append(_OPENING[char])
        elif closing and char == closing[-1]:
            closing.pop()
        elif char == "," and not closing:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _kind(text: str) -> dict[str, Any] | None:
    text = " ".join(text.split())
    if (known := _TYPES.get(text.lower())) is not None:
        return dict(known)
    if (found := _ARRAY_OF.fullmatch(text)) is None:
        return None
    what = found["what"]
    singular = what.lower().removesuffix("s")
    if singular in _TYPES:
        return {"type": "array", "items": dict(_TYPES[singular])}
    name, _, last = what.rpartition(" ")
    if last.lower() in {"object", "objects"} and name:
        return {"type": "array", "items": {"type": "object", "title": name}}
    return {"type": "array", "items": {"title": what}}


def _value(text: str) -> Any:
    if text[:1] == "[" and text[-1:] == "]":
        return [_value(part) for part in split_commas(text[1:-1])]
    if len(text) > 1 and text[0] in "\"'" and text[-1] == text[0]:
        return text[1:-1]
    try:
        return plain_value(text)
    except NumberTooLarge:
        return text


def _is_field(field: Any) -> bool:
    if isinstance(field, dict):  # the second half of a field that YAML has cut at a comma
        return len(field) == 1 and all(isinstance(value, str | int | float | None) for value in field.values())
    return isinstance(field, str)


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _is_short_type(value: Any) -> bool:
    if (text := _short_type(value)) is None:
        return False
    parts = split_commas(text)
    return not text or (bool(parts) and _kind(parts[0]) is not None)


def _short_type(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    if not isinstance(value, str):
        return None
    text = value.strip()
    return text[1:-1] if text[:1] == "[" and text[-1:] == "]" else text


def expand_shorthand(data: Any) -> Any:
    return _document(data, {})


def expand_tree(tree: Tree) -> None:
    """Expand the data of a tree; an expanded field has the place of its shorthand."""
    origins: dict[str, str] = {}
    tree.data = _document(tree.data, origins)
    tree.origins.update(origins)  # a tree that has been expanded has nothing short any more


def _document(data: Any, origins: dict[str, str]) -> Any:
    if not isinstance(data, dict):
        return data
    data = _endpoint(data, "", origins)  # a fragment of an endpoint may be a document of its own
    endpoints = data.get("endpoints")
    if not isinstance(endpoints, list):
        return data
    made = [
        _endpoint(endpoint, f"/endpoints/{index}", origins) if isinstance(endpoint, dict) else endpoint
        for index, endpoint in enumerate(endpoints)
    ]
    if all(one is other for one, other in zip(made, endpoints, strict=True)):
        return data
    return {**data, "endpoints": made}


def _endpoint(endpoint: dict[str, Any], at: str, origins: dict[str, str]) -> dict[str, Any]:
    made = endpoint
    given: Any = endpoint.get("input")
    if is_short_input(given):
        here = f"{at}/input"
        made = {**made, "input": expand_input(given)}
        required = _places(given.get("required", []), f"{here}/required")
        optional = _places(given.get("optional", []), f"{here}/optional")
        _remember(here, [*required, *optional], list(dict(required)), origins)
    given = endpoint.get("output")
    if is_short_output(given):
        here = f"{at}/output"
        made = {**made, "output": expand_output(given)}
        fields = _places(given, here) if isinstance(given, list) else [(name, child(here, name)) for name in given]
        _remember(here, fields, list(dict(fields)), origins)
    given = endpoint.get("errors")
    if isinstance(given, dict) and all(value is None for value in given.values()):
        here = f"{at}/errors"
        made = {**made, "errors": list(given)}
        origins[here] = here
        origins.update((child(here, index), child(here, name)) for index, name in enumerate(given))
    return made


def _places(fields: list[Any], at: str) -> list[tuple[str, str]]:
    return [(field_schema(text)[0], child(at, index)) for text, index in joined(fields)]


def _remember(here: str, fields: list[tuple[str, str]], required: list[str], origins: dict[str, str]) -> None:
    places = dict(reversed(fields))  # the first of two fields with one name
    origins[here] = here
    for name, place in places.items():
        origins[child(f"{here}/properties", name)] = place
    for index, name in enumerate(required):
        origins[child(f"{here}/required", index)] = places[name]
