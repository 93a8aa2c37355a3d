"""An endpoint on HTTP: `BOOK /room` is at `/room:book`, with fields in the path, the query and the body."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.subschemas import inline
from bespeak.contract.schema.validation import Violation, compile_schema
from bespeak.contract.schema.view import SchemaView
from bespeak.protocol.exchange.headers import is_header_value
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import child


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """The place of one endpoint on HTTP."""

    path: str  # path with the template's parameters, `/room/{room_id}:book`
    methods: tuple[str, ...]  # HTTP methods: `GET` first if allowed; `POST` always

    @property
    def preferred(self) -> str:
        return self.methods[0]


def http_route(endpoint: Endpoint) -> HttpRoute:
    path = f"{endpoint.path}:{endpoint.method.lower()}"
    return HttpRoute(path, ("GET", "POST") if takes_get(endpoint) else ("POST",))


def takes_get(endpoint: Endpoint) -> bool:
    return get_obstacle(endpoint) is None


def get_obstacle(endpoint: Endpoint) -> str | None:
    """Return the reason why GET cannot call an endpoint; None if it can."""
    if endpoint.semantic.impact != "informational":
        return "it may change something"
    schema = endpoint.input_schema
    if not schema.keys().isdisjoint(("$ref", "allOf", "anyOf", "oneOf", "if", "not", "patternProperties")):
        return "a query cannot express its input, which has alternatives"
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return "its input is not known"
    needed = schema.get("required")
    for name, given in properties.items():
        types = SchemaView(given, schema).types
        # There is no null in a query.
        if not is_scalar(types) or (types == {"null"} and isinstance(needed, list) and name in needed):
            return f"a query cannot express {name[:80]!r}, which is not a single text, number or boolean"
    return None


def split_verb(path: str) -> tuple[str, str] | None:
    """Split an HTTP path into path and method; return None if it does not name a verb."""
    head, colon, verb = path.rpartition(":")
    if not colon or not verb.isascii() or not verb.isalpha():
        return None
    return head, verb.upper()


def is_scalar(types: Set[str]) -> bool:
    """Return True if values of these types are single texts, numbers or booleans, or null."""
    return bool(types) and types <= {"string", "boolean", "integer", "number", "null"}


_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_WHOLE_OBJECT: Final = frozenset(
    {
        *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "not", "const", "enum", "dependentSchemas"),
        *("dependentRequired", "minProperties", "maxProperties", "propertyNames", "unevaluatedProperties"),
    }
)  # keywords about the whole object: with one of them, removing a property would change the meaning of the rest


@dataclass(frozen=True, slots=True)
class HttpParameter:
    """One property of the input outside the body."""

    name: str
    schema: Mapping[str, Any] | bool
    required: bool


@dataclass(frozen=True, slots=True)
class HttpInput:
    """The input of one endpoint by place."""

    path: tuple[HttpParameter, ...]
    query: tuple[HttpParameter, ...] | None  # parameters in the query of a GET; None if GET is not allowed
    body: Mapping[str, Any]  # schema of a POST body: the input without the path parameters, if they can be removed
    body_required: bool


def place_input(endpoint: Endpoint, schema: Mapping[str, Any] | None = None) -> HttpInput:
    """Place the input of an endpoint; `schema` replaces its input schema in the body."""
    schema = endpoint.input_schema if schema is None else schema
    in_path = tuple(_PARAMETER.findall(endpoint.path))
    given = endpoint.input_schema.get("properties")
    # Without references, because a parameter stands alone.
    declared = given.items() if isinstance(given, Mapping) else ()
    properties = {name: inline(each, endpoint.input_schema) for name, each in declared}
    required = _names(schema.get("required"))
    path = tuple(HttpParameter(name, expressible(properties.get(name, True)), True) for name in in_path)
    body = _without(schema, in_path) if in_path else schema
    return HttpInput(
        path=path,
        query=_query(properties, required, in_path) if takes_get(endpoint) else None,
        body=body,
        body_required=_is_needed(endpoint, body),
    )


def _is_needed(endpoint: Endpoint, body: Mapping[str, Any]) -> bool:
    """Return True if an empty input is not valid: a request without a body has an empty input."""
    if _names(body.get("required")) or _WHOLE_OBJECT.isdisjoint(body):
        return bool(_names(body.get("required")))
    validator = compile_schema(endpoint.input_schema)
    return isinstance(validator, Fault) or not validator.is_valid({})


def expressible(schema: Any) -> Any:
    """Reduce the schema of a property to what a path or query can express, which has no null; False if nothing."""
    if not isinstance(schema, Mapping):
        return schema
    kept = dict(schema)
    types = SchemaView(schema, schema).types
    kinds = {"string"} if "string" in types else types - {"null"}
    if types and not kinds:
        return False
    if isinstance(schema.get("type"), list):
        left = [kind for kind in schema["type"] if kind in kinds]
        if not left:
            return False
        kept["type"] = left[0] if len(left) == 1 else left
    if isinstance(schema.get("enum"), list):
        text_only = kinds == {"string"}
        kept["enum"] = [one for one in schema["enum"] if (isinstance(one, str) if text_only else one is not None)]
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            options = [(option, SchemaView(option, schema).types) for option in map(expressible, schema[keyword])]
            kept[keyword] = [
                one for one, named in options if one is not False and (not named or not kinds or named & kinds)
            ]
    if kept.get("default", ...) is None:
        del kept["default"]
    return kept


def _query(fields: Mapping[str, Any], required: frozenset[str], in_path: Iterable[str]) -> tuple[HttpParameter, ...]:
    """Return the parameters of a query; properties that it cannot express are optional, or GET is not allowed."""
    said = {name: expressible(schema) for name, schema in fields.items() if name not in in_path}
    placed = (HttpParameter(name, one, name in required) for name, one in said.items() if one is not False)
    unnamed = sorted(required.difference(fields, in_path))
    return (*placed, *(HttpParameter(name, True, True) for name in unnamed))


def _without(schema: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    """Remove properties from an object's schema; return it unchanged if they cannot be separated."""
    if not _WHOLE_OBJECT.isdisjoint(schema):
        return schema
    kept = dict(schema)
    left = {name: inner for name, inner in schema.get("properties", {}).items() if name not in names}
    required = [name for name in schema.get("required", ()) if name not in names]
    for keyword, value in (("properties", left), ("required", required)):
        if keyword in kept:
            kept[keyword] = value
    if not required:
        kept.pop("required", None)
    return kept


def _names(listed: Any) -> frozenset[str]:
    return frozenset(listed) if isinstance(listed, list) else frozenset()


DEEPEST: Final = 8  # limit of levels in `a[b][c]=1`; deeper values are written as JSON text
MAX_HEADER: Final = 8 * 1024  # limit of a header filled from the input, in characters; most servers accept no more
_SIGNS: Final = {"comma": ",", "space": " ", "pipe": "|"}
_RESERVED: Final = ":/?@!$'()*,;"  # reserved characters (RFC 3986 2.2) without meaning in a query or form
_DECODINGS: Final = 4  # how often a value may be percent-encoded; more can only be an attempt to hide something
_UNSAFE: Final = re.compile(r"[/\\\x00-\x1f\x7f]")
_COOKIE_SAFE: Final = "!#$&'()*+-./:<=>?@[]^_`{|}~"  # characters allowed in a cookie (RFC 6265 4.1.1)


def as_text(value: Any) -> str:
    """Convert one value to text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def joined(value: Any, sign: str, at: str, faults: list[Violation]) -> str:
    """Join items with a separator. An item that contains it is refused: it would become two, past every check."""
    if isinstance(value, dict):
        parts = [(child(at, name), part) for name, item in value.items() if item is not None for part in (name, item)]
    elif isinstance(value, list):
        parts = [(child(at, index), item) for index, item in enumerate(value) if item is not None]
    else:
        return as_text(value)
    texts = [as_text(part) for _, part in parts]
    for (where, _), text in zip(parts, texts, strict=True):
        if sign in text:
            faults.append(unusable(where, f"{brief(text)} contains {sign!r}, which separates items"))
    return sign.join(texts)


def in_path(value: Any, at: str, faults: list[Violation]) -> str:
    """Encode a value as one segment of a path, or a part of it; refuse one that could choose another resource."""
    text = joined(value, ",", at, faults)
    if value is None or leaves_segment(text):
        faults.append(unusable(at, f"{brief(text)} is not allowed in a path: it could lead to another resource"))
    return quote(text, safe="")


def in_url_query(value: Any, at: str, faults: list[Violation]) -> str:
    if value is None:
        faults.append(unusable(at, "null is not allowed in a URL"))
    return quote(joined(value, ",", at, faults), safe="")


def leaves_segment(text: str) -> bool:
    """Return True if a server could read a value as something other than one segment of a path.

    Servers and proxies decode a path before they resolve it, some of them twice, and treat a backslash as a slash. Some
    drop what follows a semicolon, or spaces, or map wide characters to ASCII. Encoding alone does not prevent that.
    """
    for _ in range(_DECODINGS):
        plain = unicodedata.normalize("NFKC", text)
        if plain.partition(";")[0].strip() in ("", ".", "..") or _UNSAFE.search(plain):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return True


def in_header(value: Any, at: str, faults: list[Violation]) -> str:
    """Encode a value as a header; return None if a header cannot hold it."""
    text = joined(value, ",", at, faults)
    # Spaces at the ends of a header value would be lost.
    readable = is_header_value(text) and text == text.strip(" \t") and all(character <= "\xff" for character in text)
    if not readable or len(text) > MAX_HEADER:
        faults.append(unusable(at, f"{brief(text)} is not allowed in a header"))
        return ""
    return text


def in_cookie(value: Any, at: str, faults: list[Violation]) -> str:
    return quote(joined(value, ",", at, faults), safe=_COOKIE_SAFE)


def pairs(
    name: str, value: Any, style: str, at: str, faults: list[Violation], *, reserved: bool = False
) -> Iterator[tuple[str, str]]:
    """Return the names and encoded values of one field in a query or form. Null and empty values are omitted.

    A space becomes %20: forms also read a plus as a space, but RFC 3986 does not. With `reserved`, reserved characters
    stay as they are, except those that separate pairs.
    """
    # The comma stays as it is for upstreams that split first; space and pipe have no place in a URL.
    safe = _RESERVED if reserved else "," if style == "comma" and isinstance(value, list | dict) else ""
    return ((key, quote(text, safe=safe)) for key, text in texts(name, value, style, at, faults))


def texts(name: str, value: Any, style: str, at: str, faults: list[Violation]) -> Iterator[tuple[str, str]]:
    """Return the names and values of one field that is written in a style. Null and empty values are omitted."""
    if value is None:
        return
    if style in _SIGNS and isinstance(value, list | dict):
        if value:
            yield name, joined(value, _SIGNS[style], at, faults)
    elif style == "deep" and isinstance(value, list | dict):
        yield from _deep(name, value, at, faults, 1)
    elif style != "json" and isinstance(value, list):
        yield from ((name, as_text(item)) for item in value if item is not None)
    else:
        yield name, as_text(value)


def _deep(
    name: str, value: list[Any] | dict[str, Any], at: str, faults: list[Violation], depth: int
) -> Iterator[tuple[str, str]]:
    """Write `a[b]=1` for objects, `a[]=1` for lists, and `a[0][b]=1` for lists of collections."""
    numbered = isinstance(value, list) and any(isinstance(item, list | dict) for item in value)
    items = enumerate(value) if isinstance(value, list) else value.items()
    for key, item in items:
        if item is None:
            continue
        below = child(at, key)
        if isinstance(key, str) and ("[" in key or "]" in key):
            faults.append(unusable(below, f"the name {brief(key)} contains a bracket, which starts another level"))
        elif key == "":
            faults.append(unusable(below, "an empty name is not allowed: [] adds to a list"))
        inner = f"{name}[{key if numbered or isinstance(value, dict) else ''}]"
        if isinstance(item, list | dict) and depth < DEEPEST:
            yield from _deep(inner, item, below, faults, depth + 1)
        else:
            yield inner, as_text(item)


def encode_pairs(encoded: Iterable[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={value}" for name, value in encoded)


def unusable(at: str, fault: str) -> Violation:
    """Return the violation for a value that the contract allows but HTTP cannot carry."""
    return Violation(at, "", "http", fault)
