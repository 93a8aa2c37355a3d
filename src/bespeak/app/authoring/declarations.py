"""Declarations of Python functions: declared errors, checks of the code, and mistakes, raised or collected."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final, TypeVar

from bespeak.checks.lint.rules.error import UNDECLARED_ERROR
from bespeak.checks.lint.rules.handler import SIGNATURE
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.documents.projections.deployment_files import near_field
from bespeak.errors import ContractError
from bespeak.runtime.functions.reading import refused_names
from bespeak.runtime.functions.signature import plan_call, read_signature
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

_COLLECTED: Final[ContextVar[list[ContractError] | None]] = ContextVar("collected", default=None)

_Function = TypeVar("_Function")


def declaring(declare: Callable[[_Function], _Function]) -> Callable[[_Function], _Function]:
    """Make a decorator that declares something keep its mistake for the end, if mistakes are collected."""

    def kept(function: _Function) -> _Function:
        collected = _COLLECTED.get()
        try:
            return declare(function)
        except ContractError as error:
            if collected is None:
                raise
            collected.append(error)
            return function

    return kept


@contextmanager
def collected_mistakes(what: str) -> Iterator[None]:
    """Load a module to its end, and raise one ContractError for all its declarations that are not valid."""
    mistakes: list[ContractError] = []
    token = _COLLECTED.set(mistakes)
    try:
        yield
    finally:
        _COLLECTED.reset(token)
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        findings = [finding for mistake in mistakes for finding in mistake.findings]
        told = [f"  {mistake.message}" for mistake in mistakes if not mistake.findings]
        raise ContractError("\n".join([f"{len(mistakes)} declarations of {what} are not valid", *told]), findings)


def declare_errors(given: Mapping[str, str] | Sequence[str], described: Mapping[str, str]) -> tuple[DeclaredError, ...]:
    """Merge the errors of the decorator and of the docstring. The decorator's descriptions win."""
    texts = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, "")
    names = [*texts, *(name for name in described if name not in texts)]
    return tuple(DeclaredError(name, texts.get(name) or described.get(name, "")) for name in names)


IN_PYTHON = "Add it to errors={{{name!r}: ...}} or to `Errors:` in the docstring."


def check_fit(endpoint: Endpoint, function: Callable[..., Any], *, blocking: bool, advice: str) -> Iterator[Diagnostic]:
    """Check that a function can handle an endpoint that was declared without it."""
    try:
        plan_call(function, endpoint.input_schema)
    except ContractError as error:
        yield SIGNATURE.at(endpoint, "/handler/function", str(error), advice)
    else:
        yield from _check_spelling(endpoint, function, advice)
    is_async = inspect.iscoroutinefunction(function)
    errors_advice = "Add {name!r} to the errors of the endpoint."
    yield from check_behaviour(endpoint, refused_names(function), errors_advice, waits=blocking and is_async)


def _check_spelling(endpoint: Endpoint, function: Callable[..., Any], advice: str) -> Iterator[Diagnostic]:
    """Check a single parameter whose name resembles a field: it would receive the whole input, which is likely a
    typo.
    """
    fields: Mapping[str, Any] = endpoint.input_schema.get("properties", {})
    signature = read_signature(function, fields)
    if len(signature.parameters) != 1 or signature.parameters[0].name in fields:
        return
    name = signature.parameters[0].name
    near = near_field(name, fields)
    if near is not None:
        message = f"{signature.name}(): the parameter {name!r} is not a field of the input; did you mean {near!r}?"
        yield SIGNATURE.at(endpoint, "/handler/function", message, advice)


def check_behaviour(
    endpoint: Endpoint, refused: Iterable[tuple[str, int]], advice: str, *, waits: bool
) -> Iterator[Diagnostic]:
    """Find coroutines declared as blocking, and refusals with undeclared error names."""
    if waits:
        message = "blocking=True is not allowed for async functions"
        yield SIGNATURE.at(endpoint, "/handler/function", message)
    for name, line in refused:
        if name not in endpoint.error_names:
            place = Location(endpoint.location.file, line) if endpoint.location else None
            yield UNDECLARED_ERROR.at(
                replace(endpoint, location=place),
                "/errors",
                f"the handler refuses with {name!r}, which is not a declared error",
                advice.format(name=name),
            )
