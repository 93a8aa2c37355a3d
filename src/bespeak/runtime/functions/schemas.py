"""JSON Schemas of annotations: what msgspec says of them, with what agents need to know beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import inspect as kinds

from bespeak.contract.schema.subschemas import target
from bespeak.contract.schema.validation import DIALECT, Validator, compile_schema
from bespeak.errors import ContractError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.functions.annotations import (
    NO_SCHEMA,
    PLAIN_TYPES,
    Object,
    Side,
    StandIn,
    adapt_foreign,
    describe_foreign,
    describes_itself,
    extra_items,
    is_plain,
    is_readable,
    read_types,
    reason,
    show_type,
    validate_foreign,
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


class Choice(StandIn):
    """Class of classes for a union. A discriminator is published if there is one; it is not needed to choose."""

    members: tuple[Any, ...]
    _admits: list[Validator]

    def describe(cls, side: Side, ref_template: str) -> Schema:  # noqa: N805 - of a metaclass
        assert ref_template.startswith(REF), "definitions have one place"
        schemas, definitions = schemas_of(cls.members, side)
        for index, (member, schema) in enumerate(zip(cls.members, schemas, strict=True)):
            if describes_itself(member) and schema.get("type") == "object":  # a model is written out otherwise
                define(definitions, member.__name__, schema)
                schemas[index] = {"$ref": REF + member.__name__}
        mapping = discriminate(schemas, definitions)
        if mapping is None:
            return {"anyOf": schemas, "$defs": definitions}
        return {"oneOf": schemas, "discriminator": mapping, "$defs": definitions}

    def model_validate(cls, obj: Any) -> Any:  # noqa: N805
        """Convert a value to the first member that admits it. Raises ValueError if none does."""
        if "_admits" not in cls.__dict__:
            cls._admits = [_closed(member) for member in cls.members]
        failure: ValueError | None = None
        for member, validator in zip(cls.members, cls._admits, strict=True):
            if validator.is_valid(obj):
                try:
                    return msgspec.convert(obj, member, dec_hook=validate_foreign)
                except ValueError as error:
                    failure = failure or error
        raise failure or ValueError(f"Expected `{cls.__name__}`")


def _closed(member: Any) -> Validator:
    (schema,), definitions = schemas_of([member], "validation")
    whole = {"$schema": DIALECT, **schema, "$defs": definitions}
    close(whole)
    compiled = compile_schema(whole)
    if isinstance(compiled, Fault):
        raise ContractError(f"{show_type(member)} has no valid JSON Schema: {compiled.message}")
    return compiled


def discriminate(schemas: Sequence[Schema], definitions: Mapping[str, Schema]) -> Schema | None:
    """Return the discriminator of OpenAPI if each member requires one property with texts that are only its own."""
    members = [target(schema.get("$ref"), {"$defs": definitions}, {}) for schema in schemas]
    shared = set.intersection(*(set(member.get("required", ())) for member in members))
    for name in (name for name in members[0].get("properties", ()) if name in shared):
        mapping: dict[str, str] = {}
        count = 0
        for schema, member in zip(schemas, members, strict=True):
            field = member["properties"][name]
            texts = [field["const"]] if "const" in field else field.get("enum", [None])
            count += len(texts)
            mapping |= {text: schema["$ref"] for text in texts if isinstance(text, str)}
        if len(mapping) == count:
            return {"propertyName": name, "mapping": mapping}
    return None


_UNIONS: Final = (Union, UnionType)


def adapt(annotation: Any) -> Any:
    """Return an annotation that msgspec reads, with classes for the parts that it does not. Raises ContractError."""
    foreign = adapt_foreign(annotation)
    return foreign if isinstance(foreign, StandIn) else _adapted(annotation, ())


def _adapted(annotation: Any, aliases: tuple[Any, ...]) -> Any:
    origin, parts = get_origin(annotation), get_args(annotation)
    if type(annotation).__name__ == "TypeAliasType" and annotation not in aliases:
        value = annotation.__value__
        made = _adapted(value, (*aliases, annotation))
        return annotation if made is value else made
    if not parts or origin is Literal:
        return annotation
    if origin is Annotated:
        inner = _adapted(parts[0], aliases)
        return annotation if inner is parts[0] else Annotated[(inner, *parts[1:])]
    made_parts = tuple(part if part is ... else _adapted(part, aliases) for part in parts)
    if origin in _UNIONS:
        return _union(made_parts)
    same = all(made is part for made, part in zip(made_parts, parts, strict=True))
    return annotation if same else origin[made_parts]


def _union(parts: tuple[Any, ...]) -> Any:
    union: Any = Union[parts]  # noqa: UP007 - known only now
    members = tuple(part for part in parts if part is not NoneType)
    if len(members) < 2 or is_readable(union):
        return union
    # A member with constraints of pydantic is read by it; the others stay as they are.
    choice = _choice(tuple(adapt_foreign(member) for member in members))
    return choice | None if NoneType in parts else choice


@lru_cache(maxsize=1024)
def _choice(members: tuple[Any, ...]) -> Choice:
    return Choice(" | ".join(map(show_type, members)), (), {"members": members})
