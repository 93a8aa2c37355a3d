"""The parameters of a handler function: those filled from the input, and the Context if it takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import islice
from types import FunctionType
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import inspect as kinds

from bespeak.errors import ContractError
from bespeak.protocol.exchange.context import Context
from bespeak.runtime.functions.adapted_type import adapt, show_type
from bespeak.runtime.functions.foreign_types import NO_SCHEMA, describes_itself
from bespeak.runtime.functions.type_tree import read_types, walk

MISSING: Final = inspect.Parameter.empty

_KEYWORD_ONLY: Final = inspect.Parameter.KEYWORD_ONLY
_VAR_POSITIONAL: Final = inspect.Parameter.VAR_POSITIONAL
_VAR_KEYWORD: Final = inspect.Parameter.VAR_KEYWORD

CONTEXT_NAMES: Final = frozenset({"context", "ctx"})
"""Names of an unannotated parameter that receives the Context."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that is filled from the input."""

    name: str
    annotation: Any
    """The resolved annotation, or MISSING."""
    default: Any
    """The default, or MISSING."""
    keyword_only: bool


@dataclass(frozen=True, eq=False)
class Signature:
    """The parameters of a handler, with the Context separate from those of the input."""

    name: str
    """Name of the handler."""
    parameters: tuple[Parameter, ...]
    context: Parameter | None
    context_at: int
    """Number of positional parameters before the Context."""
    takes_rest: bool
    """True if `**rest` receives all further properties."""
    returns: Any
    """The resolved return annotation, or MISSING."""

    @cached_property
    def struct(self) -> type[msgspec.Struct]:
        """Struct that the input is converted to: a field per parameter, in order. Built on first use."""
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        for parameter in self.parameters:
            annotation = Any if parameter.annotation is MISSING else parameter.annotation
            if parameter.default is MISSING:
                fields.append((parameter.name, annotation))
            else:
                fields.append((parameter.name, annotation, parameter.default))
        try:
            return msgspec.defstruct(self.name, fields, kw_only=True, forbid_unknown_fields=False)
        except TypeError as error:
            raise ContractError(f"a parameter of {self.name}() cannot be read from JSON: {error}") from None

    def check_defaults(self) -> None:
        """Refuse a default that a struct cannot have, such as a list shared by all calls."""
        if any(parameter.default is not MISSING for parameter in self.parameters):
            _ = self.struct

    @property
    def annotations(self) -> list[Any]:
        """The annotations of the parameters that have one."""
        return [parameter.annotation for parameter in self.parameters if parameter.annotation is not MISSING]

    @cached_property
    def has_foreign_types(self) -> bool:
        """True if some type validates itself. Raises ContractError for a type that cannot be read from JSON."""
        try:
            return _has_foreign(self.annotations)
        except ContractError:
            self.blame(lambda annotation: _has_foreign([annotation]))
            raise

    def blame(self, check: Callable[[Any], object]) -> None:
        """Raise the ContractError of a check again for the first parameter that fails it, with its name."""
        for parameter in self.parameters:
            try:
                check(parameter.annotation)
            except ContractError as error:
                shown = show_type(parameter.annotation)
                raise ContractError(
                    f"the parameter {parameter.name!r} is annotated with {shown}, which {error}"
                ) from None


def _has_foreign(annotations: Sequence[Any]) -> bool:
    """Return True if a type validates itself. Raises ContractError for a type that nothing can validate."""
    foreign = [kind.cls for kind in walk(read_types(annotations)) if isinstance(kind, kinds.CustomType)]
    for kind in foreign:
        if not describes_itself(kind):
            raise ContractError(NO_SCHEMA if kind in annotations else f"contains {kind.__name__}, which {NO_SCHEMA}")
    return bool(foreign)


def read_signature(function: Callable[..., Any], properties: Iterable[str] = ()) -> Signature:
    """Read a function. An unannotated `context` is the Context, unless the input has a property of that name."""
    read = _read_once if isinstance(function, FunctionType) else _read  # other callables need not be hashable
    return read(function, CONTEXT_NAMES.difference(properties))


def _read(function: Callable[..., Any], context_names: frozenset[str]) -> Signature:
    # First, because it detects a function that wraps itself, on which get_type_hints would not end.
    listed = _list_parameters(function)
    hints = _hints(function)
    parameters: list[Parameter] = []
    context: Parameter | None = None
    context_at = 0
    takes_rest = False
    for name, kind, default in listed:
        if kind is _VAR_KEYWORD:
            takes_rest = True
            continue
        if kind is _VAR_POSITIONAL:
            raise ContractError(f"*{name} cannot be filled: an input has names, not positions")
        parameter = Parameter(
            name, _adapted(hints.get(name, MISSING), f"the parameter {name!r}"), default, kind is _KEYWORD_ONLY
        )
        if not _is_context(parameter, context_names):
            parameters.append(parameter)
        elif context is not None:
            raise ContractError(f"{context.name!r} and {parameter.name!r} both ask for the Context: one is enough")
        else:
            context, context_at = parameter, len(parameters)
    returns = _adapted(hints.get("return", MISSING), "the return annotation")
    return Signature(function_name(function), tuple(parameters), context, context_at, takes_rest, returns)


_read_once: Final = lru_cache(maxsize=1 << 14)(_read)
"""Cached `_read`: a function is read when it is declared and when it is bound, and may serve many endpoints."""


def _list_parameters(function: Callable[..., Any]) -> Iterable[tuple[str, object, Any]]:
    """List name, kind and default of each parameter. For a plain function this avoids the slow `inspect.signature`."""
    if not isinstance(function, FunctionType) or function.__dict__:
        try:
            listed = inspect.signature(function).parameters.values()
        except (TypeError, ValueError) as error:
            raise ContractError(f"its parameters cannot be read: {error}") from None
        return [(raw.name, raw.kind, raw.default) for raw in listed]
    code, defaults, named = function.__code__, function.__defaults__ or (), function.__kwdefaults__ or {}
    names = iter(code.co_varnames)
    required = code.co_argcount - len(defaults)
    found: list[tuple[str, object, Any]] = [(name, None, MISSING) for name in islice(names, required)]
    found += [(name, None, default) for default, name in zip(defaults, names, strict=False)]
    found += [(name, _KEYWORD_ONLY, named.get(name, MISSING)) for name in islice(names, code.co_kwonlyargcount)]
    for flag, kind in ((inspect.CO_VARARGS, _VAR_POSITIONAL), (inspect.CO_VARKEYWORDS, _VAR_KEYWORD)):
        if code.co_flags & flag:
            found.append((next(names), kind, MISSING))
    return found


def _adapted(annotation: Any, what: str) -> Any:
    try:
        return adapt(annotation)
    except ContractError as error:
        raise ContractError(f"{what} cannot be used: {error}") from None


def _is_context(parameter: Parameter, context_names: frozenset[str]) -> bool:
    if parameter.annotation is MISSING:
        return parameter.name in context_names
    return parameter.annotation in (Context, Context | None)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Resolve the annotations. They may be strings, so their names must exist at run time."""
    target: Any = function
    while isinstance(target, partial):
        target = target.func
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise ContractError(
            f"an annotation cannot be resolved: {error}. "
            "Define or import the type at module level, not only for the type checker."
        ) from None
    except (TypeError, ValueError, AttributeError, SyntaxError) as error:
        raise ContractError(f"an annotation is not a type: {error}") from None


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or the class name of a callable object."""
    return getattr(function, "__name__", type(function).__name__)


def dotted_name(function: Callable[..., Any]) -> str:
    """Return the module and the name of a function."""
    return f"{function.__module__}.{getattr(function, '__qualname__', function_name(function))}"
