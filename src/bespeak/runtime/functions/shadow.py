"""Shadows: types that hold the declared fields of a return type and nothing else.

Each dataclass, attrs class, Struct or TypedDict of an annotation becomes a Struct with its fields. `msgspec.convert`
copies a result into it in one call: undeclared fields of mappings, subclasses and other classes stay behind at every
depth, and a value of another type is refused.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from types import NoneType
from typing import Annotated, Any, Final, Literal, Union
from uuid import UUID

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType
from msgspec import inspect as kinds

from bespeak.runtime.functions.adapted_type import adapter_of
from bespeak.runtime.functions.type_tree import extra_items

_LEAVES: Final[dict[type, Any]] = {
    kinds.AnyType: Any,
    kinds.NoneType: NoneType,
    kinds.BoolType: bool,
    kinds.IntType: int,
    kinds.FloatType: float,
    kinds.StrType: str,
    kinds.BytesType: bytes,
    kinds.ByteArrayType: bytearray,
    kinds.DateTimeType: datetime.datetime,
    kinds.DateType: datetime.date,
    kinds.TimeType: datetime.time,
    kinds.TimeDeltaType: datetime.timedelta,
    kinds.UUIDType: UUID,
    kinds.DecimalType: Decimal,
}
_COLLECTIONS: Final = {kinds.SetType: set, kinds.FrozenSetType: frozenset}
_BOUNDS: Final = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "tz")
_PROSE: Final = frozenset({"title", "description", "examples", "default", "deprecated"})


class Carrier(type):
    """Class of the classes that stand for a type in a shadow whose values a function makes.

    Every value counts as an instance, because msgspec checks the type of what a hook returns.
    """

    take: Callable[[Any], Any]

    def __instancecheck__(cls, instance: object) -> bool:
        return True


def take(kind: Any, value: Any) -> Any:
    """Make the value of a carrier: the `dec_hook` of the conversion."""
    return kind.take(value)


class Unshadowed(Exception):
    """A type for which there is no shadow."""


class Shadow:
    """The shadow of one annotation."""

    def __init__(self, annotation: Any, *, strict: bool = False) -> None:
        """Build the shadow. Raises Unshadowed. With `strict` pydantic only dumps values of the declared classes."""
        self._strict = strict
        self.dumps = False
        """True if pydantic dumps a part of the value, which must be checked by the closed schema."""
        self.is_exact = True
        """True if the shadow checks everything that the schema of the annotation says."""
        self.chooses = False
        """True if the class of a value decides between Structs."""
        self.has_numbers = False
        """True if some value may be infinite or NaN, which JSON cannot express."""
        self._made: dict[int, type[msgspec.Struct]] = {}
        self._fields: list[tuple[type[msgspec.Struct], dict[str, Any]]] = []
        kind = kinds.type_info(annotation)
        self.type: Any = self._of(kind)
        # The types may refer to each other, so all structs are made first. msgspec reads annotations on first use.
        for made, types in self._fields:
            made.__annotations__.update(types)

    def convert(self, value: Any) -> Any:
        """Copy the declared part of a value. Raises msgspec.ValidationError if it has another type."""
        return msgspec.convert(value, self.type, from_attributes=True, dec_hook=take)

    def _of(self, kind: kinds.Type) -> Any:
        leaf = _LEAVES.get(type(kind))
        if leaf is not None:
            return self._leaf(kind, leaf)
        match kind:
            case kinds.Metadata(type=inner, extra_json_schema=extra):
                self.is_exact &= _PROSE.issuperset(extra or ())
                return self._of(inner)
            case kinds.EnumType(cls=cls):
                return cls
            case kinds.LiteralType(values=values):
                return Literal[values]
            case kinds.UnionType(types=types):
                return self._union(types)
            case kinds.CustomType(cls=cls) if cls is object:
                self.has_numbers = True
                return Any
            case kinds.CustomType(cls=cls):
                self.dumps = self.has_numbers = True
                return _carrier(cls.__name__, declared_dump(cls, strict=self._strict))
            case kinds.TypedDictType(cls=cls) if extra_items(cls) is not None:
                raise Unshadowed(cls)  # a Struct holds no further fields
            case kinds.StructType() | kinds.DataclassType() | kinds.TypedDictType():
                return self._struct(kind)
        return self._container(kind)

    def _container(self, kind: kinds.Type) -> Any:
        match kind:
            case kinds.DictType(key_type=key, value_type=value):
                return _bounded(kind, dict[self._of(key), self._of(value)])  # type: ignore[misc] # known only now
            case kinds.VarTupleType(item_type=item):
                return _bounded(kind, tuple[self._of(item), ...])  # type: ignore[misc]
            case kinds.CollectionType(item_type=item):
                made: Any = _COLLECTIONS.get(type(kind), list)
                return _bounded(kind, made[self._of(item)])
            case kinds.TupleType(item_types=items):
                return tuple[tuple(map(self._of, items))]  # type: ignore[misc]
            case kinds.NamedTupleType(fields=fields):
                return tuple[tuple(self._of(field.type) for field in fields)]  # type: ignore[misc]
        raise Unshadowed(kind)

    def _leaf(self, kind: kinds.Type, leaf: Any) -> Any:
        self.has_numbers |= isinstance(kind, kinds.FloatType | kinds.AnyType)
        self.is_exact &= getattr(kind, "pattern", None) is None
        if isinstance(kind, kinds.DateTimeType) and kind.tz is None:
            return Annotated[leaf, msgspec.Meta(tz=True)]  # the published schema says `date-time`
        return _bounded(kind, leaf)

    def _union(self, types: tuple[kinds.Type, ...]) -> Any:
        parts = [self._of(one) for one in types]
        union: Any = Union[tuple(parts)]  # noqa: UP007 - known only now
        structs = [(one.cls, part) for one, part in zip(types, parts, strict=True) if isinstance(one, kinds.StructType)]
        if len(structs) < 2:
            return union

        self.chooses = True

        def choose(value: Any) -> Any:
            # The tag of a Struct is not an attribute, and a subclass has another tag: the class decides.
            declared = next((part for cls, part in structs if isinstance(value, getattr(cls, "__origin__", cls))), None)
            return msgspec.convert(value, declared or union, from_attributes=declared is not None, dec_hook=take)

        return _carrier("Choice", choose)

    def _struct(self, kind: Any) -> type[msgspec.Struct]:
        known = self._made.get(id(kind))
        if known is not None:
            return known
        cls = getattr(kind.cls, "__origin__", kind.cls)
        omits = isinstance(kind, kinds.StructType) and cls.__struct_config__.omit_defaults
        # msgspec does not write the private fields of an attrs class either.
        private = hasattr(cls, "__attrs_attrs__")
        declared = [field for field in kind.fields if not (private and field.name.startswith("_"))]
        fields: list[Any] = []
        for field in declared:
            if field.required:
                fields.append((field.name, Any))
            elif omits and field.default is not NODEFAULT:
                fields.append((field.name, Any, field.default))
            elif omits and field.default_factory is not NODEFAULT:
                fields.append((field.name, Any, msgspec.field(default_factory=field.default_factory)))
            else:
                fields.append((field.name, Any, UNSET))
        options: dict[str, Any] = {"kw_only": True}
        if isinstance(kind, kinds.StructType):
            options = {"kw_only": not kind.array_like, "omit_defaults": omits, "array_like": kind.array_like}
            options |= {} if kind.tag is None else {"tag": kind.tag, "tag_field": kind.tag_field}
        names = {field.name: field.encode_name for field in declared if field.name != field.encode_name}
        made = msgspec.defstruct(cls.__name__, fields, gc=False, rename=names or None, **options)
        self._made[id(kind)] = made
        types = {}
        for field in declared:
            part = self._of(field.type)
            types[field.name] = part if field.required or omits or part is Any else part | UnsetType
        self._fields.append((made, types))
        return made


def _bounded(kind: kinds.Type, annotation: Any) -> Any:
    bounds = {name: bound for name in _BOUNDS if (bound := getattr(kind, name, None)) is not None}
    return Annotated[annotation, msgspec.Meta(**bounds)] if bounds else annotation


def _carrier(name: str, function: Callable[[Any], Any]) -> Any:
    return Carrier(name, (), {"take": staticmethod(function)})


def declared_dump(kind: Any, *, strict: bool) -> Callable[[Any], Any]:
    """Return the dump of a pydantic type, by its own fields and not by those of the value's class.

    A value of another class is dumped by that class, unless the dump is `strict`: then it raises an exception.
    """
    adapter = adapter_of(kind)
    if adapter is None:
        raise Unshadowed(kind)
    dump = adapter.serializer.to_python
    warnings = "error" if strict else False  # three times as slow
    return lambda value: dump(value, mode="json", by_alias=True, warnings=warnings)
