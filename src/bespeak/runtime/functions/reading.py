"""Everything a handler function declares about its endpoint, read once even if it serves many."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bespeak.errors import ContractError
from bespeak.runtime.functions.docstring import Prose, parse_docstring
from bespeak.runtime.functions.hints import input_schema, output_schema
from bespeak.runtime.functions.refusals import refused_names
from bespeak.runtime.functions.signature import read_signature
from bespeak.text.source.span import Location


@dataclass(frozen=True, slots=True)
class Reading:
    """The declarations of a function."""

    prose: Prose
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    refused: tuple[tuple[str, int], ...]
    """Error names the function refuses with, each with its line."""
    is_async: bool


def read_handler(function: Callable[..., Any]) -> Reading:
    """Read a function. Raises ContractError if it cannot describe an endpoint."""
    prose = parse_docstring(inspect.getdoc(function))
    signature = read_signature(function)
    known = {*(parameter.name for parameter in signature.parameters), signature.context and signature.context.name}
    unknown = [name for name in prose.parameters if name not in known]
    if unknown:
        raise ContractError(
            f"the docstring describes {', '.join(map(repr, unknown))}, which the function does not take"
        )
    return Reading(
        prose=prose,
        input_schema=input_schema(signature, prose.parameters),
        output_schema=output_schema(signature.returns),
        refused=tuple(refused_names(function)),
        is_async=inspect.iscoroutinefunction(function),
    )


def locate(function: Callable[..., Any]) -> Location | None:
    """Return the location of a function's definition."""
    try:
        code = getattr(inspect.unwrap(function), "__code__", None)
    except ValueError:  # it wraps itself
        code = None
    return Location(code.co_filename, code.co_firstlineno) if code else None
