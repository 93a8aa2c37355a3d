"""JSON Schemas from type hints: the input from a handler's parameters, the output from what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from bespeak.authoring.foreign_types import Side, describes_itself
from bespeak.authoring.signature import MISSING, Signature, parameter_struct
from bespeak.errors import ContractError
from bespeak.schema.compile import DIALECT, SchemaFault, compile_schema
from bespeak.schema.violation import shorten

_REF: Final = "#/$defs/"
_Schema = dict[str, Any]
_Object = kinds.StructType | kinds.DataclassType | kinds.TypedDictType | kinds.NamedTupleType


def input_schema(signature: Signature, name: str, descriptions: Mapping[str, str]) -> _Schema:
    """The schema of a handler's parameters: closed, at the top and in every object inside (AGTP-API 13.3)."""
    for parameter in signature.parameters:
        if parameter.annotation is MISSING:
            raise ContractError(f"the parameter {parameter.name!r} has no annotation, so its schema is unknown")
    if signature.takes_rest:
        raise ContractError("**rest takes anything, and an input takes only what is declared: name the parameters")
    root, definitions = _schema_of(parameter_struct(signature.parameters, name), "validation")
    for text in ("title", "description"):
        root.pop(text, None)
    for node in (root, *definitions.values()):
        _close(node)
    properties: dict[str, _Schema] = root["properties"]
    for key, text in descriptions.items():
        if key in properties:
            properties[key].setdefault("description", text)
    schema = _document(root, definitions)
    _check_defaults(properties, definitions)
    return schema


def output_schema(returns: Any) -> _Schema:
    """The schema of a return annotation: an object, open for fields to come, or an array."""
    if returns is MISSING:
        raise ContractError("the return annotation is missing, so the output schema is unknown; None is one too")
    if returns is None or returns is type(None):
        return {"$schema": DIALECT, "type": "object", "properties": {}, "additionalProperties": True}
    root, definitions = _schema_of(returns, "serialization")
    variants = [_resolve(option, definitions) for option in root.get("anyOf", [root])]
    if not all(variant.get("type") in ("object", "array") for variant in variants):
        raise ContractError(
            f"{_name(returns)} is not what an endpoint returns: return an object (a dataclass, a Struct, "
            "a TypedDict, a model, a dict) or a list of them, and declare an error for the case that there is none"
        )
    if root.get("type") == "object":
        root.setdefault("additionalProperties", True)
    return _document(root, definitions)


def _schema_of(kind: Any, side: Side) -> tuple[_Schema, dict[str, _Schema]]:
    """The schema of a type with its definitions; a named type at the top is written out there."""
    definitions: dict[str, _Schema] = {}

    def describe(foreign: type) -> _Schema:
        if not describes_itself(foreign):
            raise NotImplementedError
        schema = foreign.model_json_schema(ref_template=_REF + "{model}", mode=side)
        for name, definition in schema.pop("$defs", {}).items():
            if definitions.setdefault(name, definition) != definition:
                raise ContractError(f"two different types are called {name}: rename one of them")
        return schema

    try:
        info = kinds.type_info(kind)
        objects = list(_objects(info))
        # With the objects beside the root their references come back in order: that is how they are named.
        types = (kind, *(known.cls for known in objects))
        (root, *references), components = msgspec.json.schema_components(
            types, schema_hook=describe, ref_template=_REF + "{name}"
        )
    except (TypeError, NotImplementedError) as error:
        raise ContractError(f"{_name(kind)} has no JSON Schema: {shorten(str(error).splitlines()[-1])}") from None
    _date(info, root)
    for known, reference in zip(objects, references, strict=True):
        _date_fields(known, components[reference["$ref"].removeprefix(_REF)])
    for name, component in components.items():
        if definitions.setdefault(name, component) != component:
            raise ContractError(f"two different types are called {name}: rename one of them")
    return _written_out(root, definitions)


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
    if isinstance(fault, SchemaFault):
        raise ContractError(f"the schema of the annotations is not valid: {fault.message} (at {fault.pointer})")
    return schema


def _resolve(schema: _Schema, definitions: Mapping[str, _Schema]) -> _Schema:
    return definitions.get(schema.get("$ref", "").removeprefix(_REF), schema)


def _close(node: Any) -> None:
    """Refuse undeclared fields in every object that says which fields it has, unless its type says otherwise."""
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


def _check_defaults(properties: Mapping[str, _Schema], definitions: Mapping[str, _Schema]) -> None:
    """A default that the parameter's own type forbids would be a promise nobody can keep."""
    for name, schema in properties.items():
        if "default" not in schema:
            continue
        compiled = compile_schema({**schema, "$defs": dict(definitions)})
        if isinstance(compiled, SchemaFault) or not compiled.is_valid(schema["default"]):
            raise ContractError(
                f"the default of {name!r} is {shorten(repr(schema['default']))}, which its annotation does not allow"
            )


def _objects(kind: kinds.Type, seen: set[Any] | None = None) -> Iterator[_Object]:
    """Every type with fields that a type is made of, each once."""
    seen = set() if seen is None else seen
    if isinstance(kind, _Object) and kind.cls not in seen:
        seen.add(kind.cls)
        yield kind
        for field in kind.fields:
            yield from _objects(field.type, seen)
    for part in _parts(kind):
        yield from _objects(part, seen)


def _parts(kind: kinds.Type) -> tuple[kinds.Type, ...]:
    match kind:
        case kinds.Metadata(type=inner):
            return (inner,)
        case kinds.CollectionType(item_type=item):
            return (item,)
        case kinds.TupleType(item_types=items):
            return items
        case kinds.DictType(value_type=value):
            return (value,)
        case kinds.UnionType(types=types):
            return types
    return ()


def _date_fields(known: _Object, schema: _Schema) -> None:
    for field in known.fields:
        if field.encode_name in schema.get("properties", {}):
            _date(field.type, schema["properties"][field.encode_name])


def _date(kind: kinds.Type, schema: _Schema) -> None:
    """Say `date-time` for a datetime. msgspec leaves it open, but JSON Schema asks for the offset, and so do agents."""
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


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", None) or str(kind)
