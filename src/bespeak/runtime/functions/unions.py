"""Unions that msgspec does not read, such as `Card | Transfer`: one class stands for the union and chooses a member.

msgspec reads a union whose members JSON tells apart by its types, and Structs with a tag. Of any other union a value
becomes the first member, in the order of the declaration, whose closed schema admits it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from bespeak.contract.schema.subschemas import target
from bespeak.contract.schema.validation import DIALECT, Validator, compile_schema
from bespeak.errors import ContractError
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.functions.annotations import (
    Side,
    StandIn,
    adapt_foreign,
    describes_itself,
    is_readable,
    show_type,
    validate_foreign,
)
from bespeak.runtime.functions.schemas import REF, Schema, close, define, schemas_of


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
