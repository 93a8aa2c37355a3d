"""Declarations of Python functions: errors, data sets, checks of the code, and mistakes, raised or collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final, TypeVar, get_args

from bespeak.checks.lint.rules.error import UNDECLARED_ERROR
from bespeak.checks.lint.rules.handler import SIGNATURE
from bespeak.contract.data_set import DataColumn, DataSet, read_column, with_null
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.schema.subschemas import inline
from bespeak.documents.projections.deployment_files import near_field
from bespeak.errors import ContractError
from bespeak.runtime.bindings.stream import find_fault
from bespeak.runtime.functions.needs import is_async
from bespeak.runtime.functions.reading import locate, output_schema, refused_names
from bespeak.runtime.functions.signature import function_name, plan_call, read_signature
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


def refuse_removed(removed: Mapping[str, Any], endpoint: str) -> None:
    """Raise for keyword arguments that the decorator of an endpoint does not have, or has no longer."""
    if "blocking" in removed:
        message = "`blocking` is not an argument: every `def` runs in a thread. Remove it. Write inline=True for a "
        raise ContractError(f"{endpoint}: {message}quick `def` that may run in the event loop.")
    if removed:
        raise TypeError(f"got an unexpected keyword argument {next(iter(removed))!r}")


def declare_errors(given: Mapping[str, str] | Sequence[str], described: Mapping[str, str]) -> tuple[DeclaredError, ...]:
    """Merge the errors of the decorator and of the docstring. The decorator's descriptions win."""
    texts = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, "")
    names = [*texts, *(name for name in described if name not in texts)]
    return tuple(DeclaredError(name, texts.get(name) or described.get(name, "")) for name in names)


IN_PYTHON = "Add it to errors={{{name!r}: ...}} or to `Errors:` in the docstring."


def check_fit(endpoint: Endpoint, function: Callable[..., Any], *, inline: bool, advice: str) -> Iterator[Diagnostic]:
    """Check that a function can handle an endpoint that was declared without it."""
    refused: list[tuple[str, int]] = []
    try:
        plan_call(function, endpoint.input_schema)
        refused = list(refused_names(function))
    except ContractError as error:
        yield SIGNATURE.at(endpoint, "/handler/function", str(error), advice)
    else:
        yield from _check_spelling(endpoint, function, advice)
    yield from check_streaming(endpoint, function)
    errors_advice = "Add {name!r} to the errors of the endpoint."
    yield from check_behaviour(endpoint, refused, errors_advice, inlined=inline and is_async(function))


def check_streaming(endpoint: Endpoint, function: Callable[..., Any]) -> Iterator[Diagnostic]:
    """Find a function that yields where it must not, or does not where it must."""
    fault = find_fault(endpoint, function)
    if fault is not None:
        yield SIGNATURE.at(endpoint, "/handler/function", f"{function_name(function)}(): {fault}")


def _check_spelling(endpoint: Endpoint, function: Callable[..., Any], advice: str) -> Iterator[Diagnostic]:
    """Find a likely typo: a single parameter whose name resembles a field would receive the whole input."""
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
    endpoint: Endpoint, refused: Iterable[tuple[str, int]], advice: str, *, inlined: bool
) -> Iterator[Diagnostic]:
    """Find coroutines declared as inline, and refusals with undeclared error names."""
    if inlined:
        message = "inline=True is for `def`; an `async def` always runs in the event loop"
        yield SIGNATURE.at(endpoint, "/handler/function", message, "Remove it.")
    for name, line in refused:
        if name not in endpoint.error_names:
            here = replace(endpoint, location=Location(endpoint.location.file, line) if endpoint.location else None)
            message = f"the handler refuses with {name!r}, which is not a declared error"
            yield UNDECLARED_ERROR.at(here, "/errors", message, advice.format(name=name))


def declared_data(name: str, columns: Mapping[str, Any] | None, **settings: Any) -> DataSet:
    """Build a data set from the arguments of a declaration. Raises ContractError for a column without a known type."""
    read = {column: read_column(column, kind) for column, kind in (columns or {}).items()}
    wrong = [column for column, known in read.items() if known is None]
    if wrong:
        raise ContractError(f"the data class {name!r}: the column {wrong[0]!r} has no known type")
    lists = {key: tuple(value) for key, value in settings.items() if isinstance(value, list)}
    known = tuple(column for column in read.values() if column is not None)
    return DataSet(name=name, columns=known, **{**settings, **lists})


def with_function(data: DataSet, function: Callable[..., Any]) -> DataSet:
    """Add the function that returns the rows. Columns that are not declared come from its return annotation."""
    columns = data.columns or _columns_of(function)
    if not columns:
        message = f"{locate(function)}: the columns of the data class {data.name!r} are not known"
        raise ContractError(f"{message}; give `columns`, or annotate the function with the type of its rows")
    return replace(data, target=function, function=function_name(function), columns=columns)


def _columns_of(function: Callable[..., Any]) -> tuple[DataColumn, ...]:
    rows = get_args(read_signature(function).returns)
    if not rows:
        return ()
    schema = output_schema(list[rows[0]])  # type: ignore[valid-type] # the type is known only now
    row = inline(schema.get("items"), schema)
    members = (row.get("properties") or {}) if isinstance(row, Mapping) else {}
    found = [(name, inline(one, schema)) for name, one in members.items()]
    return tuple(column for name, one in found if (column := _column(name, one)) is not None)


def _column(name: str, schema: Any) -> DataColumn | None:
    options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    column = read_column(name, options[0] if len(options) == 1 else schema)
    return column if column is None or len(options) != 1 else with_null(column)
