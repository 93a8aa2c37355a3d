"""JSON Schemas from type hints: the input from a handler's parameters, the output from its return annotation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from bespeak.contract.schema.subschemas import nodes
from bespeak.contract.schema.validation import DIALECT, compile_schema
from bespeak.contract.schema.view import SchemaView
from bespeak.errors import ContractError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.functions.annotations import (
    NO_SCHEMA,
    PLAIN_TYPES,
    Object,
    Side,
    describe_foreign,
    describes_itself,
    dump_foreign,
    extra_items,
    is_plain,
    read_types,
    reason,
    show_type,
    walk,
)
from bespeak.runtime.functions.signature import MISSING, HandlerParameter, Signature

_REF: Final = "#/$defs/"
_Schema = dict[str, Any]


def input_schema(signature: Signature, descriptions: Mapping[str, str]) -> _Schema:
    """Build the schema of a handler's parameters: closed at the top and in every nested object (AGTP-API 13.3)."""
    for parameter in signature.parameters:
        if parameter.annotation is MISSING:
            raise ContractError(f"the parameter {parameter.name!r} has no annotation, so its schema is unknown")
    if signature.takes_rest:
        raise ContractError("**rest accepts any name, but an input has only declared properties: name the parameters")
    properties, definitions = _properties(signature)
    for name, text in descriptions.items():
        if name in properties:
            properties[name].setdefault("description", text)
    root = {
        "type": "object",
        "properties": properties,
        "required": [parameter.name for parameter in signature.parameters if parameter.default is MISSING],
        "additionalProperties": False,
    }
    return _document(root, definitions)


def _properties(signature: Signature) -> tuple[dict[str, _Schema], dict[str, _Schema]]:
    _ = signature.has_foreign_types  # raises an error that names the parameter without a schema
    signature.check_defaults()
    try:
        schemas, definitions = _schemas_of(signature.annotations, "validation")
    except ContractError:
        signature.blame(lambda annotation: _schemas_of([annotation], "validation"))
        raise
    for node in (*schemas, *definitions.values()):
        _close(node)
    properties: dict[str, _Schema] = {}
    for parameter, schema in zip(signature.parameters, schemas, strict=True):
        properties[parameter.name] = schema
        if parameter.default is not MISSING and parameter.default is not msgspec.UNSET:
            schema["default"] = _json_default(parameter)
    return properties, definitions


def output_schema(returns: Any) -> _Schema:
    """Build the schema of a return annotation: an object, open to additional fields, or an array."""
    # A class is often returned by many functions, and always hashable.
    return _class_output(returns) if isinstance(returns, type) else _output(returns)


def _output(returns: Any) -> _Schema:
    if returns is MISSING:
        raise ContractError(
            "the return annotation is missing, so the output schema is unknown; write -> None if there is no result"
        )
    if returns is None or returns is type(None):
        return {"$schema": DIALECT, "type": "object", "properties": {}, "additionalProperties": True}
    try:
        root, definitions = _written_out(*_returned(returns))
    except ContractError as error:
        raise ContractError(f"the return annotation {show_type(returns)} {error}") from None
    types = SchemaView(root, {"$defs": definitions}).types
    if not types or not types <= {"object", "array"}:
        raise ContractError(
            f"{show_type(returns)} is not a valid result of an endpoint: return an object (a dataclass, a Struct, "
            "a TypedDict, a model, a dict) or a list of them, and declare an error for a missing result"
        )
    if root.get("type") == "object":
        root.setdefault("additionalProperties", True)
    return _document(root, definitions)


def closed_output(returns: Any) -> _Schema:
    """Build the schema of a return annotation, closed except where its type is open. Raises ContractError."""
    schema, definitions = _returned(returns)
    closed = {"$schema": DIALECT, **schema, "$defs": definitions}
    _close(closed)
    for _, node in nodes(closed):
        if "prefixItems" in node:
            node.setdefault("items", False)
    fault = compile_schema(closed)
    if isinstance(fault, Fault):
        raise ContractError(f"has no valid JSON Schema: {fault.message}")
    return closed


def _returned(returns: Any) -> tuple[_Schema, dict[str, _Schema]]:
    try:
        text = _returned_text(returns)
    except TypeError:  # a part of it is not hashable
        text = _returned_text.__wrapped__(returns)
    schema, definitions = msgspec.json.decode(text)
    return schema, definitions


@lru_cache(maxsize=1024)
def _returned_text(returns: Any) -> bytes:
    # Kept as text, also because the names in annotations may be gone later: a module can be imported for a while.
    (schema,), definitions = _schemas_of([returns], "serialization")
    return msgspec.json.encode((schema, definitions))


_class_output: Final = lru_cache(maxsize=1024)(_output)


def _schemas_of(annotations: Sequence[Any], side: Side) -> tuple[list[_Schema], dict[str, _Schema]]:
    composed = [annotation for annotation in annotations if not is_plain(annotation)]
    made, definitions = _composed_schemas(composed, side) if composed else ((), {})
    rest = iter(made)
    return [_plain_schema(kind) if is_plain(kind) else next(rest) for kind in annotations], definitions


def _plain_schema(annotation: Any) -> _Schema:
    if type(annotation) is type:
        return dict(_PLAIN_SCHEMAS[annotation])
    ((schema,), _) = _components((annotation,))
    return schema


def _composed_schemas(annotations: Sequence[Any], side: Side) -> tuple[Sequence[_Schema], dict[str, _Schema]]:
    definitions: dict[str, _Schema] = {}

    def describe(foreign: type) -> _Schema:
        if foreign is object and side == "serialization":
            return {"description": "Any value."}  # strict type checkers prefer `object` to Any; msgspec wants a keyword
        if not describes_itself(foreign):
            raise ContractError(NO_SCHEMA)
        schema = describe_foreign(foreign, side, _REF + "{model}")
        for title, definition in schema.pop("$defs", {}).items():
            _define(definitions, title, definition)
        return schema

    types = read_types(annotations)
    objects = [kind for kind in walk(types) if isinstance(kind, Object)]
    typed = [known.cls for known in objects if isinstance(known, kinds.TypedDictType)]
    open_to = {kind: extra for kind in typed if (extra := extra_items(kind)) is not None}
    # Passing the objects with the annotations returns their references in order, which gives their names.
    asked = (*annotations, *(known.cls for known in objects), *open_to.values())
    schemas, components = _components(asked, describe)
    own, references = schemas[: len(annotations)], schemas[len(annotations) :]
    further = dict(zip(open_to, references[len(objects) :], strict=True))
    for kind, schema in zip(types, own, strict=True):
        _date(kind, schema)
    for known, reference in zip(objects, references, strict=False):
        component = components[reference["$ref"].removeprefix(_REF)]
        for field in known.fields:
            if field.encode_name in component.get("properties", {}):
                _date(field.type, component["properties"][field.encode_name])
        if known.cls in further:
            component["additionalProperties"] = further[known.cls] or True
    for title, component in components.items():
        _define(definitions, title, component)
    return own, definitions


def _components(
    annotations: Iterable[Any], describe: Callable[[type], _Schema] | None = None
) -> tuple[tuple[_Schema, ...], dict[str, _Schema]]:
    try:
        return msgspec.json.schema_components(annotations, schema_hook=describe, ref_template=_REF + "{name}")
    except (TypeError, NameError, NotImplementedError) as error:
        raise ContractError(f"has no JSON Schema: {reason(error)}") from None


def _define(definitions: dict[str, _Schema], title: str, schema: _Schema) -> None:
    if definitions.setdefault(title, schema) != schema:
        raise ContractError(f"two different types are called {title}: rename one of them")


def _json_default(parameter: HandlerParameter) -> Any:
    try:
        return msgspec.to_builtins(parameter.default, str_keys=True, enc_hook=dump_foreign)
    except TypeError as error:
        raise ContractError(f"the default of {parameter.name!r} cannot be written as JSON: {reason(error)}") from None


def _written_out(root: _Schema, definitions: dict[str, _Schema]) -> tuple[_Schema, dict[str, _Schema]]:
    reference = root.get("$ref", "")
    if not reference:
        return root, definitions
    name = reference.removeprefix(_REF)
    root = dict(definitions[name])
    if f'"{reference}"'.encode() not in msgspec.json.encode(definitions):
        del definitions[name]
    return root, definitions


def _document(root: _Schema, definitions: Mapping[str, _Schema]) -> _Schema:
    schema = {"$schema": DIALECT, **root}
    if definitions:
        schema["$defs"] = dict(definitions)
    fault = compile_schema(schema)
    if isinstance(fault, Fault):
        raise ContractError(f"the schema of the annotations is not valid: {fault.message} (at {fault.at})")
    return schema


def _close(node: Any) -> None:
    """Forbid undeclared fields in every object that declares fields, unless its type allows them."""
    if isinstance(node, list):
        for item in node:
            _close(item)
    elif isinstance(node, dict):
        if "properties" in node:
            node.setdefault("additionalProperties", False)
        for keyword, value in node.items():
            if keyword in ("properties", "patternProperties"):
                for schema in value.values():
                    _close(schema)
            elif keyword not in ("default", "enum", "const", "examples"):
                _close(value)


def _date(kind: kinds.Type, schema: _Schema) -> None:
    """Use `date-time` for a datetime: msgspec leaves the offset optional, but JSON Schema and agents require it."""
    match kind:
        case kinds.Metadata(type=inner):
            _date(inner, schema)
        case kinds.DateTimeType(tz=None) if schema.get("type") == "string":
            schema.setdefault("format", "date-time")
        case kinds.CollectionType(item_type=item) if "items" in schema:
            _date(item, schema["items"])
        case kinds.TupleType(item_types=items):
            for part, option in zip(items, schema.get("prefixItems", ()), strict=False):
                _date(part, option)
        case kinds.DictType(value_type=value) if isinstance(schema.get("additionalProperties"), dict):
            _date(value, schema["additionalProperties"])
        case kinds.UnionType(types=types):
            # msgspec admits one text-like, one array-like and one object-like member, so the types find their options.
            for part in types:
                for option in schema.get("anyOf", ()):
                    _date(part, option)


_PLAIN_SCHEMAS: Final[dict[type, _Schema]] = dict(zip(PLAIN_TYPES, _components(PLAIN_TYPES)[0], strict=True))
