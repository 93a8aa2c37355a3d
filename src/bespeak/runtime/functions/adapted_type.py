"""Annotations that only pydantic reads in full: its constraints, discriminated unions, dataclasses and own types.

msgspec would ignore a constraint that it does not know, so that the published schema and the check would be too wide.
Such an annotation becomes a class with the methods of a pydantic model. Pydantic is optional, and imported when needed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NewType, Union, get_args, get_origin, get_type_hints

import msgspec

from bespeak.errors import ContractError
from bespeak.runtime.functions.foreign_types import Side, describes_itself

_CORE_SCHEMA: Final = "__get_pydantic_core_schema__"
_LIBRARIES: Final = ("pydantic", "pydantic_core", "annotated_types")


class Adapted(type):
    """Class of the classes that stand for an annotation.

    Every value counts as an instance, because msgspec checks the type of what a hook returns.
    """

    adapter: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return True

    def model_json_schema(cls, *, ref_template: str, mode: Side, schema_generator: type) -> dict[str, Any]:
        """Return the schema of the annotation."""
        schema: dict[str, Any] = cls.adapter.json_schema(
            ref_template=ref_template, mode=mode, schema_generator=schema_generator
        )
        return schema

    def model_validate(cls, obj: Any) -> Any:
        """Convert JSON data to the annotated type."""
        return cls.adapter.validate_python(obj)


def adapter_of(kind: Any) -> Any:
    """Return pydantic's adapter of a model or of a class that stands for an annotation; None for another class."""
    if isinstance(kind, Adapted):
        return kind.adapter
    if not hasattr(kind, "__pydantic_serializer__"):
        return None
    from pydantic import TypeAdapter  # noqa: PLC0415 - loaded by the model

    return TypeAdapter(kind)


def adapt(annotation: Any) -> Any:
    """Return an annotation unchanged if msgspec reads all of it, else the class that stands for it.

    Raises ContractError if pydantic cannot read it either.
    """
    if not _needs_pydantic(annotation, set()):
        return annotation
    try:
        return _adapted(annotation)
    except TypeError:  # a part of it is not hashable
        return _adapted.__wrapped__(annotation)


@functools.lru_cache(maxsize=1024)
def _adapted(annotation: Any) -> Adapted:
    try:
        from pydantic import TypeAdapter  # noqa: PLC0415 - optional, and slow to load
        from pydantic.errors import PydanticUserError  # noqa: PLC0415
    except ImportError:
        raise ContractError(
            f"{show_type(annotation)} has constraints that need pydantic; install it, or use msgspec.Meta"
        ) from None
    try:
        adapter = TypeAdapter(annotation)
        adapter.json_schema()
    except PydanticUserError as error:
        said = str(error).partition(". ")[0].splitlines()[0]
        raise ContractError(f"{show_type(annotation)} needs pydantic, which cannot read it: {said}") from None
    return Adapted(show_type(annotation), (), {"adapter": adapter})


def _needs_pydantic(annotation: Any, seen: set[Any]) -> bool:
    """Return True if some part of an annotation has a meaning that msgspec does not know."""
    origin = get_origin(annotation)
    if origin is Literal:
        return False
    if isinstance(annotation, NewType):
        return _needs_pydantic(annotation.__supertype__, seen)
    parts = get_args(annotation)
    if origin is Annotated:
        kind, *extras = parts
        return any(map(_is_constraint, extras)) or _needs_pydantic(kind, seen)
    if origin in (Union, UnionType) and sum(map(describes_itself, parts)) > 1:
        return True
    if parts:
        return any(_needs_pydantic(part, seen) for part in parts)
    if not isinstance(annotation, type) or describes_itself(annotation) or annotation in seen:
        return False
    if hasattr(annotation, "__pydantic_core_schema__") or hasattr(annotation, _CORE_SCHEMA):
        return True
    seen.add(annotation)
    return any(_needs_pydantic(part, seen) for part in _field_types(annotation))


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
