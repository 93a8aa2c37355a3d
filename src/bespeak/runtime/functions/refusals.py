"""The error names a handler refuses with, as far as its source tells."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from bespeak.contract.refusal import Refusal


def refused_names(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    """Each name in a `Refusal("name", ...)` of the function with its line.

    Names that are made at run time, and refusals in functions it calls, are seen by the dispatcher only.
    """
    plain = inspect.unwrap(function)
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
        if isinstance(node, ast.Call) and node.args and _called(node.func) in called:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, first + node.lineno - 1


def _called(target: ast.expr) -> str | None:
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else None


def _names(code: CodeType) -> Iterator[str]:
    """The names some code uses, inner functions included: reading the source is slow and mostly not needed."""
    yield from code.co_names
    yield from code.co_varnames
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
