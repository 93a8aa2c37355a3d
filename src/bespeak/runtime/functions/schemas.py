"""JSON Schemas of annotations: what msgspec says of them, with what agents need to know beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect as kinds

from bespeak.errors import ContractError
from bespeak.runtime.functions.annotations import (
    NO_SCHEMA,
    PLAIN_TYPES,
    Object,
    Side,
    describe_foreign,
    describes_itself,
    extra_items,
    is_plain,
    read_types,
    reason,
    walk,
)

REF: Final = "#/$defs/"
Schema = dict[str, Any]


def schemas_of(annotations: Sequence[Any], side: Side) -> tuple[list[Schema], dict[str, Schema]]:
    composed = [annotation for annotation in annotations if not is_plain(annotation)]
    made, definitions = _composed_schemas(composed, side) if composed else ((), {})
    rest = iter(made)
    return [_plain_schema(kind) if is_plain(kind) else next(rest) for kind in annotations], definitions


def _plain_schema(annotation: Any) -> Schema:
    if type(annotation) is type:
        return dict(_PLAIN_SCHEMAS[annotation])
    ((schema,), _) = _components((annotation,))
    return schema


def _composed_schemas(annotations: Sequence[Any], side: Side) -> tuple[Sequence[Schema], dict[str, Schema]]:
    definitions: dict[str, Schema] = {}

    def describe(foreign: type) -> Schema:
        if foreign is object and side == "serialization":
            return {"description": "Any value."}  # strict type checkers prefer `object` to Any; msgspec wants a keyword
        if not describes_itself(foreign):
            raise ContractError(
                NO_SCHEMA if [foreign] == [*annotations] else f"contains {foreign.__name__}, which {NO_SCHEMA}"
            )
        schema = describe_foreign(foreign, side, REF + "{model}")
        for title, definition in schema.pop("$defs", {}).items():
            define(definitions, title, definition)
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
        component = components[reference["$ref"].removeprefix(REF)]
        for field in known.fields:
            if field.encode_name in component.get("properties", {}):
                _date(field.type, component["properties"][field.encode_name])
        if known.cls in further:
            component["additionalProperties"] = further[known.cls] or True
    for title, component in components.items():
        define(definitions, title, component)
    return own, definitions


def _components(
    annotations: Iterable[Any], describe: Callable[[type], Schema] | None = None
) -> tuple[tuple[Schema, ...], dict[str, Schema]]:
    try:
        return msgspec.json.schema_components(annotations, schema_hook=describe, ref_template=REF + "{name}")
    except (TypeError, NameError, NotImplementedError) as error:
        raise ContractError(f"has no JSON Schema: {reason(error)}") from None


def define(definitions: dict[str, Schema], title: str, schema: Schema) -> None:
    if definitions.setdefault(title, schema) != schema:
        raise ContractError(f"two different types are called {title}: rename one of them")


def close(node: Any) -> None:
    """Forbid undeclared fields in every object that declares fields, unless its type allows them."""
    if isinstance(node, list):
        for item in node:
            close(item)
    elif isinstance(node, dict):
        if "properties" in node:
            node.setdefault("additionalProperties", False)
        for keyword, value in node.items():
            if keyword in ("properties", "patternProperties"):
                for schema in value.values():
                    close(schema)
            elif keyword not in ("default", "enum", "const", "examples"):
                close(value)


def _date(kind: kinds.Type, schema: Schema) -> None:
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


_PLAIN_SCHEMAS: Final[dict[type, Schema]] = dict(zip(PLAIN_TYPES, _components(PLAIN_TYPES)[0], strict=True))
