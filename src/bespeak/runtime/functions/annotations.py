"""Annotations of handler functions: the types they consist of, and those that pydantic describes.

msgspec would ignore a constraint that it does not know, so that the published schema and the check would be too
wide. Such an annotation becomes a class with the methods of a pydantic model. Pydantic is optional, and imported
when needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NewType, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec
from msgspec import inspect as kinds

from bespeak.contract.schema.subschemas import nodes, target
from bespeak.contract.schema.validation import DIALECT, Validator, compile_schema, shorten
from bespeak.errors import ContractError
from bespeak.protocol.exchange.refusal import Fault

Object = kinds.StructType | kinds.DataclassType | kinds.TypedDictType | kinds.NamedTupleType

PLAIN_TYPES: Final = frozenset({bool, int, float, str, UUID, date, time, timedelta, Decimal, NoneType})
_CONTAINERS: Final = frozenset({Annotated, Union, UnionType, list, set, frozenset, tuple, dict})


def is_plain(annotation: Any) -> bool:
    """Return True if an annotation contains no object, datetime or foreign type, and needs no inspection."""
    if type(annotation) is type:
        return annotation in PLAIN_TYPES
    return get_origin(annotation) in _CONTAINERS and all(is_plain(part) for part in annotation.__args__)


def read_types(annotations: Sequence[Any]) -> tuple[kinds.Type, ...]:
    """Inspect the annotations that are not plain. Raises ContractError for one that JSON cannot be converted to."""
    try:
        msgspec.msgpack.Decoder(tuple[tuple(annotations)])  # type: ignore[misc]
        return kinds.multi_type_info(kind for kind in annotations if not is_plain(kind))
    except (TypeError, NameError) as error:
        raise ContractError(f"cannot be read from JSON: {reason(error)}") from None


def reason(error: Exception) -> str:
    """Return the last line of a msgspec error, without the type: the others are advice for its caller."""
    return shorten(str(error).splitlines()[-1].partition(" - type `")[0])


def walk(found: Iterable[kinds.Type], seen: set[Any] | None = None) -> Iterator[kinds.Type]:
    """Yield every type that the types consist of; those with fields once."""
    seen = set() if seen is None else seen
    for kind in found:
        if isinstance(kind, Object):
            if kind.cls in seen:
                continue
            seen.add(kind.cls)
        yield kind
        yield from walk(_parts(kind), seen)


def _parts(kind: kinds.Type) -> Iterable[kinds.Type]:
    match kind:
        case kinds.Metadata(type=inner):
            return (inner,)
        case kinds.CollectionType(item_type=item):
            return (item,)
        case kinds.TupleType(item_types=items):
            return items
        case kinds.DictType(key_type=key, value_type=value):
            return (key, value)
        case kinds.UnionType(types=types):
            return types
    if isinstance(kind, kinds.TypedDictType) and (extra := extra_items(kind.cls)) is not None:
        return (*(field.type for field in kind.fields), kinds.type_info(extra))
    return (field.type for field in kind.fields) if isinstance(kind, Object) else ()


def extra_items(kind: Any) -> Any:
    """Return the type of the further fields that a TypedDict admits (PEP 728); None if it says nothing of them."""
    kind = get_origin(kind) or kind
    extra, closed = getattr(kind, "__extra_items__", None), getattr(kind, "__closed__", None)
    if closed:
        return None
    if extra is not None and str(extra).rpartition(".")[2] not in ("NoExtraItems", "Never"):
        return extra
    if closed is False:
        return Any
    bases = getattr(kind, "__orig_bases__", ())
    return next((found for base in bases if (found := extra_items(base)) is not None), None)


NO_SCHEMA: Final = "has no JSON Schema; use a dataclass, Struct, TypedDict or pydantic model"
"""Message for any other class."""

Side = Literal["validation", "serialization"]  # direction of a schema, input or output; pydantic models may have two


class StandIn(type):
    """Class of classes for an annotation. Every value is an instance: msgspec checks the type of a hook's result."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def describes_itself(kind: object) -> bool:
    """Return True if a type is a pydantic model, has the same methods, or stands for an annotation."""
    if isinstance(kind, StandIn):
        return True
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def has_foreign(annotations: Sequence[Any]) -> bool:
    """Return True if a type validates itself. Raises ContractError for a type that nothing can validate."""
    foreign = [kind.cls for kind in walk(read_types(annotations)) if isinstance(kind, kinds.CustomType)]
    for kind in foreign:
        if not describes_itself(kind):
            raise ContractError(NO_SCHEMA if kind in annotations else f"contains {kind.__name__}, which {NO_SCHEMA}")
    return bool(foreign)


@cache
def _schema_generator() -> type:
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - installed if there is such a type

    class PydanticSchemas(GenerateJsonSchema):
        """The schemas of pydantic, except that a datetime without offset is not called a `date-time` (RFC 3339)."""

        def datetime_schema(self, schema: Any) -> dict[str, Any]:
            return {"type": "string"} if schema.get("tz_constraint") == "naive" else super().datetime_schema(schema)

    return PydanticSchemas


def validate_foreign(kind: Any, value: Any) -> Any:
    """Validate JSON data into a self-describing type: the `dec_hook` of msgspec."""
    if describes_itself(kind):
        return kind.model_validate(value)
    raise NotImplementedError(f"{kind.__name__} cannot be read from JSON")


def dump_foreign(value: Any) -> dict[str, Any]:
    """Dump a self-describing value as JSON data with published names: the `enc_hook` of msgspec."""
    if describes_itself(type(value)):
        dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True)
        return dumped
    raise TypeError(f"a handler returned {type(value).__name__}, which is not a JSON value")


_CORE_SCHEMA: Final = "__get_pydantic_core_schema__"
_LIBRARIES: Final = ("pydantic", "pydantic_core", "annotated_types")


class Adapted(StandIn):
    """Class of classes for an annotation that pydantic reads."""

    adapter: Any

    def describe(cls, side: Side, ref_template: str) -> dict[str, Any]:
        schema: dict[str, Any] = cls.adapter.json_schema(
            ref_template=ref_template, mode=side, schema_generator=_schema_generator()
        )
        return schema

    def model_validate(cls, obj: Any) -> Any:
        return cls.adapter.validate_python(obj)


def adapter_of(kind: Any) -> Any:
    """Return pydantic's adapter of a model or of a class that stands for an annotation; None for another class."""
    if isinstance(kind, Adapted):
        return kind.adapter
    if not hasattr(kind, "__pydantic_serializer__"):
        return None
    from pydantic import TypeAdapter  # noqa: PLC0415 - loaded by the model

    return TypeAdapter(kind)


def adapt_foreign(annotation: Any) -> Any:
    """Return the annotation, or a class that stands for it if only pydantic reads it. Raises ContractError."""
    if not _needs_pydantic(annotation, set()):
        return annotation
    try:
        return _adapted(annotation)
    except TypeError:  # a part of it is not hashable
        return _adapted.__wrapped__(annotation)


@lru_cache(maxsize=1024)
def _adapted(annotation: Any) -> Adapted:
    try:
        from pydantic import TypeAdapter  # noqa: PLC0415 - optional, and slow to load
        from pydantic.errors import PydanticUserError  # noqa: PLC0415
    except ImportError:
        message = (
            f"{show_type(annotation)} has constraints, or a union inside of a class, that need pydantic; install it, "
            "or use msgspec.Meta and Structs with a tag"
        )
        raise ContractError(message) from None
    try:
        adapter = TypeAdapter(annotation)
        adapter.json_schema()
    except PydanticUserError as error:
        said = str(error).partition(". ")[0].splitlines()[0]
        message = f"{show_type(annotation)} needs pydantic, which cannot read it: {said}"
        raise ContractError(f"{message}; if a Struct has a field with a union of Structs, give these a tag") from None
    return Adapted(show_type(annotation), (), {"adapter": adapter})


def is_readable(annotation: Any) -> bool:
    """Return True if msgspec reads a type: of a union, members that JSON tells apart by its types, or by a tag."""
    try:
        msgspec.msgpack.Decoder(annotation)
    except (TypeError, NameError):
        return False
    return True


def _needs_pydantic(annotation: Any, seen: set[Any], *, inside: bool = False) -> bool:
    """Return True if a part of an annotation has a meaning that msgspec does not know; `inside` of a class, a union."""
    origin = get_origin(annotation)
    if origin is Literal:
        return False
    if isinstance(annotation, NewType):
        return _needs_pydantic(annotation.__supertype__, seen, inside=inside)
    parts = get_args(annotation)
    if origin is Annotated:
        kind, *extras = parts
        return any(map(_is_constraint, extras)) or _needs_pydantic(kind, seen, inside=inside)
    if inside and origin in (Union, UnionType) and not is_readable(annotation):
        return True
    if parts:
        return any(_needs_pydantic(part, seen, inside=inside) for part in parts)
    if not isinstance(annotation, type) or describes_itself(annotation) or annotation in seen:
        return False
    if hasattr(annotation, "__pydantic_core_schema__") or hasattr(annotation, _CORE_SCHEMA):
        return True
    seen.add(annotation)
    return any(_needs_pydantic(part, seen, inside=True) for part in _field_types(annotation))


def _is_constraint(extra: Any) -> bool:
    """Return True for metadata that narrows a type; others, such as a text, describe it."""
    if isinstance(extra, msgspec.Meta):
        return False
    kind = extra if isinstance(extra, type) else type(extra)
    return hasattr(extra, _CORE_SCHEMA) or any(base.__module__.split(".")[0] in _LIBRARIES for base in kind.__mro__)


def _field_types(kind: type) -> Iterable[Any]:
    """Return the annotations of the fields of a class; none if it has none, or if they cannot be resolved here."""
    if not inspect.get_annotations(kind) and not hasattr(kind, "__annotations__"):
        return ()
    try:
        return get_type_hints(kind, include_extras=True).values()
    except (NameError, TypeError, AttributeError):  # reported where the class is read
        return ()


def show_type(annotation: Any) -> str:
    """Write an annotation as its author would: without the modules of its parts."""
    if isinstance(annotation, type) and not get_args(annotation):
        return "None" if annotation is NoneType else annotation.__name__
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return show_type(parts[0])
    if origin in (Union, UnionType):
        return " | ".join(map(show_type, parts))
    if parts and origin is not Literal:
        name = getattr(origin, "__name__", str(origin))
        return f"{name}[{', '.join('...' if part is ... else show_type(part) for part in parts)}]"
    return str(annotation).replace("typing.", "")


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
        kind: Any = foreign
        if isinstance(foreign, StandIn):
            schema: Schema = kind.describe(side, REF + "{model}")
        else:
            options = {"ref_template": REF + "{model}", "mode": side, "schema_generator": _schema_generator()}
            schema = kind.model_json_schema(**options)
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

    def describe(cls, side: Side, ref_template: str) -> Schema:
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

    def model_validate(cls, obj: Any) -> Any:
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
    try:
        return close_schema(schema, definitions)[1]
    except ContractError as error:
        raise ContractError(f"{show_type(member)} {error}") from None


def close_schema(schema: Schema, definitions: dict[str, Schema]) -> tuple[Schema, Validator]:
    """Return a schema that is closed except where its type is open, also compiled. Raises ContractError."""
    closed = {"$schema": DIALECT, **schema, "$defs": definitions}
    close(closed)
    for _, node in nodes(closed):
        if "prefixItems" in node:
            node.setdefault("items", False)
    compiled = compile_schema(closed)
    if isinstance(compiled, Fault):
        raise ContractError(f"has no valid JSON Schema: {compiled.message}")
    return closed, compiled


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


def adapt(annotation: Any) -> Any:
    """Return an annotation that msgspec reads, with classes for the parts that it does not. Raises ContractError."""
    foreign = adapt_foreign(annotation)
    return foreign if isinstance(foreign, StandIn) else _substituted(annotation, ())


def _substituted(annotation: Any, aliases: tuple[Any, ...]) -> Any:
    origin, parts = get_origin(annotation), get_args(annotation)
    if type(annotation).__name__ == "TypeAliasType" and annotation not in aliases:
        value = annotation.__value__
        made = _substituted(value, (*aliases, annotation))
        return annotation if made is value else made
    if not parts or origin is Literal:
        return annotation
    if origin is Annotated:
        inner = _substituted(parts[0], aliases)
        return annotation if inner is parts[0] else Annotated[(inner, *parts[1:])]
    made_parts = tuple(part if part is ... else _substituted(part, aliases) for part in parts)
    if origin in (Union, UnionType):
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
