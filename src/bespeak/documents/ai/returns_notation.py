"""The structural notation of ai-discovery: the fields of an object in a line, `reservation_id, rooms[] {id, price}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.schema.view import SchemaView

LONGEST: Final = 300  # maximum length of `returns` in a /.well-known/ai document, in characters
UNKNOWN: Final = "object"  # value of `returns` if the contract does not declare fields

FORMATS: Final = (
    *("uuid", "date", "date-time", "time", "duration", "email", "uri", "uri-reference", "hostname", "ipv4", "ipv6"),
    *("regex", "json-pointer", "idn-email", "iri"),
)

KINDS: Final = ("string", "integer", "number", "boolean", "array", "object")

_DEPTHS: Final = (3, 2, 1)
_MORE: Final = "..."
_PLAIN: Final = re.compile(r"[A-Za-z0-9_$@][A-Za-z0-9_$@.-]*")
_NAME: Final = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^\s,{}\[\]:?"]+))\s*(\?)?\s*((?:\[\]\s*)*)')
_TYPE: Final = re.compile(r"\s*:\s*([^\s,{}]+)")
_DEEPEST_READ: Final = 8
_CHOICES: Final = 8


def write_returns(schema: Mapping[str, Any]) -> str:
    """Write the output of an endpoint; if it is too long, drop the deepest levels first, then whole fields."""
    view = SchemaView(schema, schema)
    if view.kind not in ("object", "array", ""):
        return view.kind
    if view.kind != "array":
        return write_fields(view, LONGEST) or UNKNOWN
    inner = write_fields(view.items, LONGEST - 5)
    return f"[] {{{inner}}}" if inner else "[]"


def write_fields(view: SchemaView, most: int, *, typed: bool = False) -> str:
    """Write the fields of an object in at most `most` characters; `typed` adds types, and `?` for optional fields."""
    text = ""
    for depth in _DEPTHS:
        text, whole = _write(view, most, depth, typed)
        if whole:
            break
    return text


def parse_fields(text: str) -> dict[str, Any]:
    """Parse a list of fields into an object schema; parts that cannot be read are skipped."""
    schema, _ = _read(text, 0, 0)
    return schema


def _write(view: SchemaView, most: int, depth: int, typed: bool) -> tuple[str, bool]:
    """Write the fields; also return True if none was dropped."""
    text, whole = "", True
    for name, schema, required in view.fields:
        inner, brackets = SchemaView(schema, view), ""
        while inner.kind == "array" and len(brackets) < 4:
            brackets += "[]"
            inner = inner.items
        written = name if _PLAIN.fullmatch(name) else msgspec.json.encode(name).decode()
        head = f"{written}{'?' if typed and not required else ''}{brackets}"
        if typed and (kind := _kind(inner)):
            head += f": {kind}"
        start = f"{text}, {head}" if text else head
        if len(start) + len(_MORE) + 2 > most:
            return (f"{text}, {_MORE}" if text else "", False)
        text = start
        if depth > 1 and inner.kind == "object":
            below, complete = _write(inner, most - len(text) - len(_MORE) - 5, depth - 1, typed)
            whole = whole and complete
            text = f"{text} {{{below}}}" if below else text
    return text, whole


def _kind(view: SchemaView) -> str:
    values = view.keywords.get("enum")
    listed = values if isinstance(values, list) and 1 < len(values) <= _CHOICES else []
    if listed and all(isinstance(value, str) and _PLAIN.fullmatch(value) for value in listed):
        return "|".join(listed)
    if view.kind == "string":
        form = view.keywords.get("format")
        return form if form in FORMATS else ""
    if view.kind == "object":
        return "" if view.keywords.get("properties") else "object"
    return view.kind


def _read(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    while at < len(text) and (found := _NAME.match(text, at)) is not None:
        at = found.end()
        name = _unquoted(found[1]) if found[1] else found[2]
        schema: dict[str, Any] = {}
        if (kind := _TYPE.match(text, at)) is not None:
            at, schema = kind.end(), _typed(kind[1])
        at = _blank(text, at)
        if text[at : at + 1] == "{" and depth < _DEEPEST_READ:
            schema, at = _read(text, at + 1, depth + 1)
            at = _blank(text, at + 1)
        for _ in range(found[4].count("[]")):
            schema = {"type": "array", "items": schema} if schema else {"type": "array"}
        if name != _MORE:
            properties[name] = schema
            required += [] if found[3] else [name]
        if text[at : at + 1] != ",":
            break
        at += 1
    schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema, at


def _typed(word: str) -> dict[str, Any]:
    if "|" in word:
        return {"type": "string", "enum": word.split("|")}
    return {"type": "string", "format": word} if word in FORMATS else {"type": word} if word in KINDS else {}


def _blank(text: str, at: int) -> int:
    while text[at : at + 1] == " ":
        at += 1
    return at


def _unquoted(text: str) -> str:
    try:
        return str(msgspec.json.decode(text))
    except (msgspec.DecodeError, ValueError):
        return text[1:-1]
