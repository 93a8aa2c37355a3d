"""The output filter: of a result, only what the declared return type has is sent.

A result is copied by the declared type, in C: a Shadow, or the serializer of a pydantic type. What that cannot copy,
such as a mapping in place of a model, is written as JSON data and pruned by the closed schema of the type.

Each dataclass, attrs class, Struct or TypedDict of an annotation has a Shadow, a Struct with its fields.
`msgspec.convert` copies a result into it in one call: undeclared fields of mappings, subclasses and other classes
stay behind at every depth, and a value of another type is refused.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cached_property
from itertools import count
from types import NoneType
from typing import Annotated, Any, Final, Literal, TypedDict, Union, get_origin
from uuid import UUID

import msgspec
from msgspec import NODEFAULT, UNSET, UnsetType
from msgspec import inspect as kinds

from bespeak.contract.schema.subschemas import nodes
from bespeak.contract.schema.validation import Pruner, Validator, Violation, non_finite
from bespeak.errors import ContractError
from bespeak.runtime.functions.annotations import Choice, StandIn, adapter_of, dump_foreign, extra_items, show_type
from bespeak.runtime.functions.reading import closed_output, output_schema
from bespeak.text.diagnostics.diagnostic import brief

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


def take(kind: Any, value: Any) -> Any:
    """Make the value of a carrier, a class whose values a function makes: the `dec_hook` of the conversion."""
    return kind.take(value)


class Unshadowed(Exception):
    """A type for which there is no shadow."""


class Shadow:
    def __init__(self, annotation: Any, *, strict: bool = False) -> None:
        """Build the shadow. Raises Unshadowed. With `strict` pydantic only dumps values of the declared classes."""
        self._strict = strict
        self.dumps = False  # True if pydantic dumps a part of the value, which must be checked by the closed schema
        self.is_exact = True  # True if the shadow checks everything that the schema of the annotation says
        self.chooses = False  # True if the class of a value decides between Structs
        self.decides = False  # True if it decides between any classes: then the fields must not decide otherwise
        self.has_numbers = False  # True if some value may be infinite or NaN, which JSON cannot express
        self._made: dict[int, type[msgspec.Struct]] = {}
        self._kept: list[object] = []  # types of choices, whose ids must not be used again while `_made` has them
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
            case kinds.CustomType(cls=Choice() as cls):
                return self._choice(cls)
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

    def _choice(self, choice: Choice) -> Any:
        """Copy a value by the member that is its class; of a mapping, its fields decide, as for an input."""
        types = kinds.multi_type_info(choice.members)
        self._kept.append(types)
        parts = [(_class_of(member), self._of(kind)) for member, kind in zip(choice.members, types, strict=True)]
        schema, closed = closed_output(choice)
        pruner = Pruner(schema)
        self.chooses = self.decides = True

        def choose(value: Any) -> Any:
            if isinstance(value, dict):
                kept, _ = pruner.prune(_write(value))
                if closed.is_valid(kept):
                    return kept
            declared = [part for cls, part in parts if type(value) is cls]
            declared += [part for cls, part in parts if isinstance(value, cls)]
            for part in declared or [part for _, part in parts]:
                try:
                    kept = msgspec.convert(value, part, from_attributes=True, dec_hook=take)
                except ValueError:
                    continue
                if declared or _write(kept) != {}:  # any object has the attributes of a class without required fields
                    return kept
            raise ValueError(f"a {type(value).__name__} is not a {choice.__name__}")

        return _carrier(choice.__name__, choose)

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


def _class_of(member: Any) -> type:
    """Return the class whose instances are values of a member; one that nothing is an instance of for a mapping."""
    origin = get_origin(member) or member
    return origin if isinstance(origin, type) and not issubclass(origin, dict | StandIn) else _Nobody


class _Nobody:
    pass


def _bounded(kind: kinds.Type, annotation: Any) -> Any:
    bounds = {name: bound for name in _BOUNDS if (bound := getattr(kind, name, None)) is not None}
    return Annotated[annotation, msgspec.Meta(**bounds)] if bounds else annotation


def _carrier(name: str, function: Callable[[Any], Any]) -> Any:
    return StandIn(name, (), {"take": staticmethod(function)})


def declared_dump(kind: Any, *, strict: bool) -> Callable[[Any], Any]:
    """Return the dump of a pydantic type by its own fields. If `strict`, a value of another class raises an error."""
    adapter = adapter_of(kind)
    if adapter is None:
        raise Unshadowed(kind)
    dump = adapter.serializer.to_python
    warnings = "error" if strict else False  # three times as slow
    return lambda value: dump(value, mode="json", by_alias=True, warnings=warnings)


_logger = logging.getLogger(__name__)

_encode = msgspec.json.Encoder(enc_hook=dump_foreign).encode

_MISFITS: Final = (ValueError, TypeError, AttributeError)  # of msgspec and pydantic, for a value of another type

_CLOSELY: Final = 100
_SAMPLED: Final = 64
"""Copies by type drop fields silently. The first results of an endpoint, then one in so many, are looked through."""
_MOST_NAMES: Final = 50  # dropped fields that the log names for one endpoint
_MOST_PARTS: Final = 10_000  # objects and lists of one result that are looked through for dropped fields


class UnfitResult(Exception):
    """A result that its declared type does not admit. It names places of the schema, never values."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__()
        self.violations = violations


class OutputFilter:
    """Selects the declared part of the results of one endpoint. It is built at the first result."""

    def __init__(self, endpoint: object, returns: Any, output: object) -> None:
        """Create the filter of an endpoint by its return annotation; `output` is the schema that it publishes."""
        self._endpoint = endpoint
        self._shown = show_type(returns)
        self._returns = _Nothing if returns in (None, NoneType) else returns
        self._output = output
        self._seen = count(1)
        self._named: set[str] = set()
        self.encode: Callable[[Any], bytes | None] = self._encode_first
        """Function that writes the declared part of a result at once; None if it takes more steps, see `select`."""

    def _encode_first(self, result: Any) -> bytes | None:
        self.encode = self._encoder()
        return self.encode(result)

    def _encoder(self) -> Callable[[Any], bytes | None]:
        """Build `encode`: a function of few steps, because it runs for every answer."""
        shadow = self._shadow
        if shadow is None or not shadow.is_exact or shadow.dumps or not self.settles:
            return lambda _: None
        convert, kind, has_numbers, seen = msgspec.convert, shadow.type, shadow.has_numbers, count(1)
        copy, quick = shadow.convert, not shadow.chooses

        def encode(result: Any) -> bytes | None:
            try:
                # Keywords double the time of the conversion, and most mappings hold no objects.
                kept = convert(result, kind) if quick and type(result) is dict else copy(result)
            except msgspec.ValidationError:
                try:
                    kept = copy(result)
                except msgspec.ValidationError:
                    return None
            body = _encode(kept)
            # An object without a single declared field may be anything. JSON writes infinity and NaN as null.
            if len(body) < 3 or (has_numbers and body.find(b"null") >= 0 and non_finite(_write(kept))):
                return None
            number = next(seen)
            if not number % _SAMPLED or number < _CLOSELY:
                self._look_through(result, _write(kept))
            return body

        return encode

    def select(self, result: Any) -> Any:
        """Return the declared part of a result as JSON data. Raises Unfit."""
        written: Any = _NOTHING
        closed = self._schema[1]
        try:
            written = self._copy(result)
            if written != {} and closed.is_valid(written):
                number = next(self._seen)
                if not number % _SAMPLED or number < _CLOSELY:
                    self._look_through(result, written)
                return written
        except _MISFITS:
            pass
        if written == {}:
            written = _NOTHING  # any object could be copied by its attributes if none of them is required
        violations = [Violation("", "", "type", f"a {type(result).__name__} is not a {self._shown}")]
        for write in self._ways(written):
            try:
                kept, dropped = self._pruner.prune(write(result))
                if not closed.is_valid(kept):
                    violations = closed.violations(kept)
                elif self._shadow is None or not self._shadow.decides:
                    self._name(dropped)
                    return kept
            except _MISFITS:
                continue
        raise UnfitResult(violations)

    @cached_property
    def settles(self) -> bool:
        """True if what the filter selects is valid by the schema of the endpoint."""
        try:
            return bool(output_schema(self._returns) == self._output)
        except ContractError:
            return False

    @cached_property
    def _schema(self) -> tuple[dict[str, Any], Validator]:
        return closed_output(self._returns)

    @cached_property
    def _pruner(self) -> Pruner:
        return Pruner(self._schema[0])

    @cached_property
    def _is_open(self) -> bool:
        """True if some model admits more fields: those of another class must not become such fields."""
        return any(node.get("properties") and node.get("additionalProperties") for _, node in nodes(self._schema[0]))

    @cached_property
    def _shadow(self) -> Shadow | None:
        try:
            return Shadow(self._returns, strict=self._is_open)
        except (Unshadowed, TypeError, NameError):
            return None

    @cached_property
    def _copy(self) -> Callable[[Any], Any]:
        """Function that copies the declared part of a result, and may raise exceptions."""
        shadow = self._shadow
        if adapter_of(self._returns) is not None:
            return declared_dump(self._returns, strict=self._is_open)
        if shadow is None:
            return _write
        return lambda result: _write(shadow.convert(result))

    def _ways(self, written: Any) -> Iterator[Callable[[Any], Any]]:
        """Yield further ways to write a result as JSON data, which may have undeclared fields."""
        adapter = adapter_of(self._returns)
        if written is not _NOTHING:
            yield lambda _: written
        if adapter is None and not (self._is_open and self._shadow and self._shadow.dumps):
            yield _write
        if adapter is not None:
            dump = declared_dump(self._returns, strict=True)
            yield lambda result: dump(adapter.validate_python(result, from_attributes=True, by_name=True))

    def _look_through(self, result: Any, sent: Any) -> None:
        if len(self._named) < _MOST_NAMES:
            try:
                self._name(_surplus(msgspec.to_builtins(result, str_keys=True, enc_hook=_dump_all), sent))
            except Exception:  # noqa: BLE001 - of an operator's class, which was copied by its attributes
                return

    def _name(self, dropped: set[str] | frozenset[str]) -> None:
        new = sorted(dropped - self._named)[: _MOST_NAMES - len(self._named)]
        if new:
            self._named.update(new)
            _logger.warning(
                "%s: the handler returned fields that %s does not declare, which were not sent: %s",
                self._endpoint,
                self._shown,
                ", ".join(map(brief, new)),
            )


_NOTHING: Final = object()


class _Nothing(TypedDict):
    """The fields that `-> None` declares."""


def _write(result: Any) -> Any:
    return msgspec.to_builtins(result, str_keys=True, enc_hook=dump_foreign)


def _dump_all(value: Any) -> Any:
    """Dump a pydantic model with the fields that the classes of its parts add to the declared ones."""
    if hasattr(value, "__pydantic_serializer__"):
        return value.model_dump(mode="json", by_alias=True, serialize_as_any=True)
    return dump_foreign(value)


def _surplus(own: Any, sent: Any) -> set[str]:
    """Return the names of the fields that one JSON value has and the other lacks, at every depth."""
    found: set[str] = set()
    waiting = [(own, sent)]
    for _ in range(_MOST_PARTS):
        if not waiting:
            break
        mine, theirs = waiting.pop()
        if isinstance(mine, dict) and isinstance(theirs, dict):
            found.update(name for name in mine if name not in theirs)
            waiting += [(mine[name], part) for name, part in theirs.items() if name in mine]
        elif isinstance(mine, list | tuple) and isinstance(theirs, list | tuple):
            waiting += zip(mine, theirs, strict=False)
    return found
