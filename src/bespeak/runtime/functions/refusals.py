"""The error names a handler refuses with, found in its source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from bespeak.contract.refusal import Refusal


def refused_names(function: Callable[..., Any]) -> Iterator[tuple[str, int]]:
    """Return each name in a `Refusal("name", ...)` of the function with its line.

    Names computed at run time, and refusals in called functions, are only seen by the dispatcher.
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
    """Return the names used in code, nested functions included: a cheap test before the source is read."""
    yield from code.co_names
    yield from code.co_varnames
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
