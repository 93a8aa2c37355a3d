"""A proposal (AGTP-API 10.2, step 3); fields are written `email`, `limit?:integer`, `invoices[].total:number`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import CAPABILITIES, IMPACTS, Endpoint
from bespeak.contract.handler import COMPOSITION_FAILED
from bespeak.contract.schema.subschemas import inline
from bespeak.documents.ai.param_notation import FORMATS, TYPES, parse_param
from bespeak.documents.manifest_json import parse_endpoint
from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import brief

# field = step *( "." step ) [ "?" ] [ ":" type ]      step = name *"[]"
_FIELD: Final = re.compile(r"([^\s.:?,\[\]{}]+(?:\[\])*(?:\.[^\s.:?,\[\]{}]+(?:\[\])*)*)(\?)?(?::(\S+))?")
_STEP: Final = re.compile(r"([^\[]+)((?:\[\])*)")
_LONGEST: Final = 500
_DEEPEST: Final = 16
_MOST: Final = 500  # most fields of one list: more than people write, and servers refuse more
_PYTHON: Final[Mapping[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}
Fields = Iterable[str] | Mapping[str, Any]  # fields in the notation, a mapping of them to types, or a JSON Schema
_READING: Final = ("discovery", "retrieval", "analysis")  # capabilities whose verbs change nothing
_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_TYPED: Final = ("type", "format", "enum")


def read_fields(fields: Fields) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields. Raises ConfigError if one cannot be read.

    A mapping with `properties`, or with the type `object`, is a schema and returned as it is. In other mappings, each
    value is a type of the notation, a Python type or a schema.
    """
    if isinstance(fields, str):
        raise ConfigError(f"Fields must be a list, not the string {brief(fields)}; write [{brief(fields)}].")
    if isinstance(fields, Mapping) and (
        isinstance(fields.get("properties"), Mapping) or fields.get("type") == "object"
    ):
        return dict(fields)
    root: dict[str, Any] = {"type": "object", "properties": {}}
    pairs = list(fields.items()) if isinstance(fields, Mapping) else [(text, None) for text in fields]
    if len(pairs) > _MOST:
        raise ConfigError(f"At most {_MOST} fields can be named; got {len(pairs)}.")
    for text, given in pairs:
        path, optional, kind = _split(text)
        named = _PYTHON.get(given, given) if isinstance(given, type) else given
        schema = dict(named) if isinstance(named, Mapping) else read_type(named or kind, text)
        _add(root, path, schema, text, required=not optional)
    return root


def read_type(kind: Any, field: str) -> dict[str, Any]:
    """Return the schema of a type in the notation: a JSON type, a format or `TYPE[]`; None is any value."""
    if kind is None:
        return {}
    read = parse_param(kind) if isinstance(kind, str) else None
    if read is None or not read.schema or read.description:
        known = ", ".join((*TYPES, "object", *FORMATS[:6]))
        raise ConfigError(f"{brief(kind)} is not a valid type of the field {brief(field)}; use one of {known}.")
    return read.schema


def _split(text: Any) -> tuple[list[str], bool, str | None]:
    match = _FIELD.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    steps = match[1].split(".") if match else []
    if match is None or len(steps) > _DEEPEST or text.count("[]") > _DEEPEST:
        advice = "write it like email, limit?:integer or invoices[].total:number"
        raise ConfigError(f"{brief(text)} is not a valid field; {advice}.")
    return steps, bool(match[2]), match[3]


def _add(root: dict[str, Any], steps: list[str], schema: dict[str, Any], text: str, *, required: bool) -> None:
    node = root
    for number, step in enumerate(steps, 1):
        match = _STEP.fullmatch(step)
        assert match is not None
        name, arrays = match[1], match[2].count("[]")
        properties = _open(node, "object", text).setdefault("properties", {})
        is_leaf = number == len(steps)
        if (required or not is_leaf) and name not in node.setdefault("required", []):
            node["required"].append(name)
        node = properties.setdefault(name, {})
        for _ in range(arrays):
            node = _open(node, "array", text).setdefault("items", {})
        if is_leaf and schema and node and node != schema:
            raise ConfigError(f"The field {brief(text)} is named twice, as {_kind(node)} and as {_kind(schema)}.")
    node.update(schema)


def _open(node: dict[str, Any], kind: str, text: str) -> dict[str, Any]:
    if node.setdefault("type", kind) != kind:
        raise ConfigError(f"The field {brief(text)} lies in a field that is named as {_kind(node)}, not as {kind}.")
    return node


def _kind(schema: Mapping[str, Any]) -> str:
    return str(schema.get("format") or schema.get("type") or "any value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The definition of an endpoint as it is sent, and as the contract model reads it."""

    definition: Mapping[str, Any]
    endpoint: Endpoint


def read_proposal(definition: Mapping[str, Any]) -> Proposal:
    """Read a complete definition. Raises ConfigError if it is not one."""
    try:
        data = msgspec.json.encode(definition)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(f"The definition of the endpoint is not JSON: {error}.") from error
    endpoint, findings = parse_endpoint(data)
    if endpoint is None:
        reason = findings[0].message if findings else "it needs a method and a path"
        raise ConfigError(f"The definition of the endpoint is not valid: {reason}.")
    return Proposal(definition=definition, endpoint=endpoint)


def define(
    method: str,
    path: str,
    *,
    given: Fields = (),
    needs: Fields = (),
    intent: str | None = None,
    impact: str | None = None,
    known: Iterable[Endpoint] = (),
) -> Proposal:
    """Define the endpoint that an agent asks for.

    `impact` is the worst effect that the agent accepts, by default that of the verb. Inputs without a type take the
    one that the `known` endpoints agree on, else they are strings.
    """
    if impact is not None and impact not in IMPACTS:
        raise ConfigError(f"impact must be one of {', '.join(IMPACTS)}; got {brief(impact)}.")
    method = method.upper()
    verb = load_bundled().verbs.get(method)
    capability = next((name for name in verb.categories if name in CAPABILITIES), "") if verb else ""
    worst = impact or ("informational" if capability in _READING else "irreversible")
    words = " ".join(filter(None, re.split(r"[/_-]+", _PARAMETER.sub("", path))))  # `/rooms/cheap` gives `rooms cheap`
    said = intent or f"{method.capitalize()} {words}.".replace(" .", ".")
    names = list(read_fields(needs).get("properties", ()))
    named = f"The caller has {', '.join(names[:8])}{' and more' if len(names) > 8 else ''}."
    return read_proposal(
        {
            "method": method,
            "path": path,
            "description": said,
            "semantic": {
                "intent": said,
                "actor": "agent",
                "outcome": named if names else "It is done.",
                "capability": capability or "domain_spanning",
                # The server lowers it to what its steps give; a lower value would be taken for theirs.
                "confidence": 1.0,
                "impact": worst,
                "is_idempotent": worst == "informational",
            },
            "input_schema": _input(path, read_fields(given), known),
            "output_schema": read_fields(needs),
            "errors": [COMPOSITION_FAILED],
            "handler": {"type": "composition"},
        }
    )


def _input(path: str, schema: dict[str, Any], known: Iterable[Endpoint]) -> dict[str, Any]:
    """Complete an input schema: the path's parameters, types where there are none, and no other fields."""
    properties = dict(schema.get("properties", {}))
    required = list(schema.get("required", ()))
    for name in _PARAMETER.findall(path):
        properties.setdefault(name, {})
        if name not in required:
            required.append(name)
    untyped = [name for name, one in properties.items() if one == {}]
    if untyped:
        endpoints = tuple(known)
        properties |= {name: _agreed_type(name, endpoints) for name in untyped}
    done = {**schema, "properties": properties, "additionalProperties": False}
    return {**done, "required": required} if required else done


def _agreed_type(name: str, known: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the type that every endpoint gives an input of this name; a string if they differ or none has it."""
    found = {
        msgspec.json.encode(kept, order="sorted")
        for endpoint in known
        if isinstance(properties := endpoint.input_schema.get("properties"), Mapping)
        and isinstance(one := inline(properties.get(name), endpoint.input_schema), Mapping)
        and (kept := {key: one[key] for key in _TYPED if key in one})
    }
    return dict(msgspec.json.decode(found.pop())) if len(found) == 1 else {"type": "string"}
