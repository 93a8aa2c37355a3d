"""Checks of a handler function: its parameters, blocking calls and declared errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bespeak.checks.lint.rules.error import UNDECLARED_ERROR
from bespeak.checks.lint.rules.handler import SIGNATURE
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.projections.deployment_files import near_field
from bespeak.errors import ContractError
from bespeak.runtime.functions.calling import plan_call
from bespeak.runtime.functions.refusals import refused_names
from bespeak.runtime.functions.signature import read_signature
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.span import Location

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
