"""Mistakes in the declarations of a module: raised at the first one, or collected while a command loads the module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from bespeak.errors import ContractError

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
