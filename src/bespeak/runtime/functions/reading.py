"""Everything a handler declares about its endpoint: docstring, types, and the errors that its source names."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any, Final

from bespeak.contract.handler import Refusal
from bespeak.errors import ContractError
from bespeak.runtime.functions.hints import input_schema, items_schema, output_schema
from bespeak.runtime.functions.needs import is_async, plan_needs
from bespeak.runtime.functions.signature import read_signature
from bespeak.text.source.tree import Location

_HEADINGS: Final = {
    "outcome": "outcome",
    "errors": "errors",
    "args": "parameters",
    "arguments": "parameters",
    "parameters": "parameters",
    "returns": "other",
    "raises": "other",
    "example": "other",
    "examples": "other",
    "note": "other",
    "notes": "other",
}
_HEADING: Final = re.compile(r"([A-Za-z]+):(?:\s+(.*))?")
_ENTRY: Final = re.compile(r"(\s*)([A-Za-z_][A-Za-z0-9_.-]*)(?:\s*\([^)]*\))?:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Prose:
    intent: str = ""  # the first paragraph
    outcome: str = ""  # the paragraph that begins with `Outcome:`
    parameters: dict[str, str] = field(default_factory=dict)  # the entries under `Args:`
    errors: dict[str, str] = field(default_factory=dict)  # the entries under `Errors:`


@lru_cache(maxsize=1024)
def parse_docstring(text: str | None) -> Prose:
    """Parse a docstring. Other text is for people. Cached: functions made by a factory share one docstring."""
    parts: dict[str, list[str]] = {"intent": [], "outcome": [], "parameters": [], "errors": [], "other": []}
    current = "intent"
    for line in inspect.cleandoc(text or "").splitlines():
        heading = _HEADING.fullmatch(line)
        if heading and heading[1].lower() in _HEADINGS:
            current = _HEADINGS[heading[1].lower()]
            parts[current].append(heading[2] or "")
        elif not line.strip() and current in ("intent", "outcome") and any(parts[current]):
            current = "other"
        else:
            parts[current].append(line)
    return Prose(
        intent=_joined(parts["intent"]),
        outcome=_joined(parts["outcome"]),
        parameters=_entries(parts["parameters"]),
        errors=_entries(parts["errors"]),
    )


def _joined(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())


def _entries(lines: Iterable[str]) -> dict[str, str]:
    """Parse `name: text` entries; a line indented deeper than the first entry continues the one before."""
    found: dict[str, list[str]] = {}
    margin: int | None = None
    name = ""
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry and (margin is None or len(entry[1]) <= margin):
            margin, name = len(entry[1]), entry[2]
            found[name] = [entry[3]]
        elif name and line.strip():
            found[name].append(line)
    return {name: _joined(texts) for name, texts in found.items()}


def refused_names(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    """Return each literal name in a `Refusal("name", ...)` of a handler or its providers, with a line of its file."""
    yield from _refused_by(function)
    place = locate(function)
    for provider in plan_needs(read_signature(function).needs).providers:
        there = locate(provider.function)
        for name, line in _refused_by(provider.function):
            if place is not None:
                yield name, line if there and there.file == place.file else place.line


def _refused_by(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    plain = inspect.unwrap(function)
    plain = getattr(plain, "__func__", plain)
    if not isinstance(plain, FunctionType):
        return
    called = {name for name in _names(plain.__code__) if plain.__globals__.get(name) is Refusal or name == "Refusal"}
    if not called:
        return
    try:
        lines, first = inspect.getsourcelines(plain)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        if (getattr(node.func, "attr", None) or getattr(node.func, "id", None)) in called:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, first + node.lineno - 1


def _names(code: CodeType) -> Iterator[str]:
    """Return the names used in code, nested functions included: a cheap test before the source is read."""
    yield from code.co_names
    yield from code.co_varnames
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@dataclass(frozen=True, slots=True)
class FunctionReading:
    prose: Prose
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    streams: bool  # True if the function yields the items of its output
    refused: tuple[tuple[str, int], ...]  # error names the function refuses with, each with its line
    is_async: bool


def read_handler(function: Callable[..., Any]) -> FunctionReading:
    """Read a function. Raises ContractError if it cannot describe an endpoint."""
    prose = parse_docstring(inspect.getdoc(function))
    signature = read_signature(function)
    context = signature.context and signature.context.name
    known = {*(parameter.name for parameter in signature.parameters), context, *signature.needs}
    unknown = [name for name in prose.parameters if name not in known]
    if unknown:
        message = f"the docstring describes {', '.join(map(repr, unknown))}, which the function does not take"
        raise ContractError(message)
    return FunctionReading(
        prose=prose,
        input_schema=input_schema(signature, prose.parameters),
        output_schema=items_schema(signature.item) if signature.yields else output_schema(signature.returns),
        streams=signature.yields,
        refused=tuple(refused_names(function)),
        is_async=is_async(function),
    )


def locate(function: Callable[..., Any]) -> Location | None:
    try:
        code = getattr(inspect.unwrap(function), "__code__", None)
    except ValueError:  # it wraps itself
        code = None
    return Location(code.co_filename, code.co_firstlineno) if code else None
