"""The request body as fields of an input: its properties, or one field if it is not a plain object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.schema.reference import resolve, target
from bespeak.documents.adoption.guess import UNSURE, Guess, Risk
from bespeak.documents.openapi.description import Body, Encoding, list_style
from bespeak.documents.openapi.media_types import JSON, MULTIPART, is_binary, is_json, sent_type
from bespeak.documents.openapi.schema_fit import SchemaFitter
from bespeak.protocol.exchange.media_type import FORM, essence, is_media_type

_COMPOSING: Final = ("allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "$ref", "propertyNames")
"""Keywords that make an object more than a list of properties."""
_PLAIN: Final = Encoding()


@dataclass(slots=True)
class BodyShape:
    """The fields of a body and its encoding."""

    form: str = "none"
    properties: dict[str, Any] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    required: bool = False
    whole: dict[str, Any] | None = None
    """Schema of a body that becomes one field."""
    files: tuple[str, ...] = ()
    lists: dict[str, str] = field(default_factory=dict)
    """Notations of fields of a form, if they differ from `repeat`."""
    reserved: list[str] = field(default_factory=list)
    """Fields of a form whose reserved characters are not percent-encoded."""
    part_types: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()
    guesses: list[Guess] = field(default_factory=list)


def shape_body(body: Body | None, fitter: SchemaFitter) -> BodyShape | str:
    """Return the shape of a body, or why the operation cannot be called: it needs a body that cannot be sent."""
    if body is None:
        return BodyShape()
    form = _form(body.media_type)
    if form is None:
        reason = f"its body is {body.media_type[:80]}; only JSON, forms and multipart can be sent"
        if body.required:
            return reason
        return BodyShape(guesses=[_guess("no body is sent", reason, 0.5, "an upstream that takes JSON")])
    clean, lost = fitter.clean(body.schema)
    clean = _resolved(clean)
    shape = BodyShape(form=form, required=body.required, lost=lost)
    if form == "json" and essence(sent_type(body.media_type)) != JSON:
        shape.headers["Content-Type"] = body.media_type
    if body.other_types:
        others = ", ".join(body.other_types[:3])
        shape.guesses.append(_guess(f"sent as {body.media_type}", "one of several is sent", 0.8, others))
    if not _is_flat(clean):
        return _whole(shape, clean, body)
    shape.definitions = clean.get("$defs", {})
    shape.properties = {name: part for name, part in clean["properties"].items() if not _is_read_only(part)}
    needed = clean.get("required")
    shape.needed = tuple(name for name in needed if name in shape.properties) if isinstance(needed, list) else ()
    if form == "multipart":
        shape.files = tuple(
            name for name, part in shape.properties.items() if _is_file(part, body.encoding.get(name, _PLAIN))
        )
        shape.properties.update({name: _file(shape.properties[name]) for name in shape.files})
    if form != "json":
        for name in [name for name in shape.properties if name in body.encoding]:
            _encode(shape, name, body.encoding[name])
    return shape


def _encode(shape: BodyShape, name: str, encoding: Encoding) -> None:
    """Choose the notation of one field of a form."""
    kind = next((one for one in encoding.content_types if is_media_type(one)), "")
    if shape.form == "multipart" and kind and (not encoding.style or name in shape.files):
        shape.part_types[name] = kind
        if len(encoding.content_types) > 1:
            others = ", ".join(one for one in encoding.content_types if one != kind)
            shape.guesses.append(_guess(f"{name} is sent as {kind}", "one of several is sent", 0.6, others))
    if name in shape.files:
        return
    if not encoding.style:
        if shape.form == "form" and is_json(kind):
            shape.lists[name] = "json"
        return
    if encoding.reserved and shape.form == "form":
        shape.reserved.append(name)
    schema = resolve(shape.properties[name], {"$defs": shape.definitions}, most=8)
    style = list_style(encoding.style, schema, explode=encoding.explode)
    if style != "repeat":
        shape.lists[name] = style
    elif shape.form == "form" and schema.get("type") == "object":
        # In multipart an object stays one JSON part: OpenAPI 3.0 ignores the style there, and tools write it always.
        _spread(shape, name, schema)


def _spread(shape: BodyShape, name: str, schema: Mapping[str, Any]) -> None:
    """Replace an object by its properties, which are separate fields of a form (style form, exploded)."""
    parts = {key: part for key, part, _ in members(schema)}
    if not parts or parts.keys() & shape.properties.keys():
        why = "its properties are not known, or their names are taken"
        shape.guesses.append(_guess(f"{name} is sent as JSON", why, 0.4, "one field for each property"))
        return
    needed = dict.fromkeys(shape.needed)
    if name in needed:
        needed.update((key, None) for key, _, required in members(schema) if required)
    shape.needed = tuple(key for key in needed if key != name)
    entries = [(parts if key == name else {key: part}) for key, part in shape.properties.items()]
    shape.properties = {key: part for entry in entries for key, part in entry.items()}


def members(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield the properties of an object, and True for required ones."""
    properties, required = schema.get("properties"), schema.get("required", ())
    if schema.get("type") == "object" and isinstance(properties, Mapping):
        for name, part in properties.items():
            yield name, part if isinstance(part, Mapping) else {}, name in required


def _form(media_type: str) -> str | None:
    kind = essence(media_type)
    if is_json(sent_type(media_type)):
        return "json"
    return {FORM: "form", MULTIPART: "multipart"}.get(kind)


def _whole(shape: BodyShape, clean: dict[str, Any], body: Body) -> BodyShape | str:
    if shape.form != "json":
        if clean.get("type") in (None, "object") and not clean.get("properties"):
            return f"its {body.media_type[:80]} body names no fields" if body.required else BodyShape()
        return f"its {body.media_type[:80]} body is not a plain list of fields" if body.required else BodyShape()
    shape.whole = clean
    shape.guesses.append(_guess("the body is one field", "it is not a plain object", 0.8, "a flat object of its own"))
    return shape


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the definition that a bare reference names; return any other schema unchanged."""
    if schema.keys() != {"$ref", "$defs"}:
        return schema
    found = target(schema["$ref"], schema)
    return {**found, "$defs": schema["$defs"]} if isinstance(found, dict) and "$defs" not in found else schema


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Return True if an object is only its properties; one that declares more is kept whole."""
    properties = schema.get("properties")
    return (
        schema.get("type", "object") == "object"
        and isinstance(properties, dict)
        and bool(properties)
        and not any(keyword in schema for keyword in _COMPOSING)
        and schema.get("additionalProperties", False) is False
        and "minProperties" not in schema
    )


def _is_read_only(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("readOnly") is True


def _is_file(part: Any, encoding: Encoding) -> bool:
    if not isinstance(part, Mapping):
        return False
    if part.get("type") == "array":
        return _is_file(part.get("items"), encoding)
    if part.get("type", "string") == "string" and any(map(is_binary, encoding.content_types)):
        return not any(keyword in part for keyword in _COMPOSING)
    media = part.get("contentMediaType")
    binary = isinstance(media, str) and "json" not in media and not media.startswith("text/")
    return part.get("format") == "binary" or binary or part.get("contentEncoding") == "base64"


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a file: base64, because JSON cannot hold bytes."""
    if part.get("type") == "array":
        return {**part, "items": _file(part["items"])}
    text = {"description": part["description"]} if "description" in part else {}
    return {"type": "string", "contentEncoding": "base64", **text}


def _guess(text: str, why: str, confidence: float, otherwise: str) -> Guess:
    risk: Risk = "medium" if confidence < UNSURE else "low"
    return Guess(at="/input_schema", text=text, why=why, confidence=confidence, otherwise=otherwise, risk=risk)
