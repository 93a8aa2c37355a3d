"""What a handler function takes: parameters filled from the input, and perhaps the Context."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

import msgspec

from bespeak.errors import ContractError
from bespeak.exchange.context import Context

MISSING: Final = inspect.Parameter.empty

CONTEXT_NAMES: Final = frozenset({"context", "ctx"})
"""A parameter with one of these names and no annotation gets the Context."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that is filled from the input."""

    name: str
    annotation: Any
    """The resolved annotation, or MISSING."""
    default: Any
    """The default, or MISSING."""
    keyword_only: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a handler, with the Context apart from those of the input."""

    parameters: tuple[Parameter, ...]
    context: Parameter | None
    context_at: int
    """How many positional parameters stand before the Context."""
    takes_rest: bool
    """Whether `**rest` takes what no parameter names."""
    returns: Any
    """The resolved return annotation, or MISSING."""


def read_signature(function: Callable[..., Any], properties: Container[str] = ()) -> Signature:
    """Read a function. An unannotated `context` is the Context, unless the input has a property of that name."""
    hints = _hints(function)
    parameters: list[Parameter] = []
    context: Parameter | None = None
    context_at = 0
    takes_rest = False
    for raw in inspect.signature(function).parameters.values():
        if raw.kind is raw.VAR_KEYWORD:
            takes_rest = True
            continue
        if raw.kind is raw.VAR_POSITIONAL:
            raise ContractError(f"*{raw.name} takes nothing: an input has names, not positions")
        parameter = Parameter(raw.name, hints.get(raw.name, MISSING), raw.default, raw.kind is raw.KEYWORD_ONLY)
        if not _is_context(parameter, properties):
            parameters.append(parameter)
        elif context is not None:
            raise ContractError(f"{context.name!r} and {parameter.name!r} both ask for the Context: one is enough")
        else:
            context, context_at = parameter, len(parameters)
    return Signature(tuple(parameters), context, context_at, takes_rest, hints.get("return", MISSING))


def parameter_struct(parameters: tuple[Parameter, ...], name: str) -> type[msgspec.Struct]:
    """A struct with a field for each parameter, in order: what the input is converted to."""
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in parameters:
        annotation = Any if parameter.annotation is MISSING else parameter.annotation
        if parameter.default is MISSING:
            fields.append((parameter.name, annotation))
        else:
            fields.append((parameter.name, annotation, parameter.default))
    try:
        return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=False)
    except TypeError as error:
        raise ContractError(f"a parameter of {name}() cannot be read from JSON: {error}") from None


def _is_context(parameter: Parameter, properties: Container[str]) -> bool:
    if parameter.annotation is MISSING:
        return parameter.name in CONTEXT_NAMES and parameter.name not in properties
    return parameter.annotation in (Context, Context | None)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations as types. They may be written as text, so their names must exist when the module runs."""
    target: Any = function
    while isinstance(target, functools.partial):
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
        raise ContractError(f"an annotation is no type: {error}") from None


def function_name(function: Callable[..., Any]) -> str:
    """What a function is called; an object that can be called has the name of its class."""
    return getattr(function, "__name__", type(function).__name__)
