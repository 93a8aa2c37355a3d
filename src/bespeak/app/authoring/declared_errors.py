"""Errors that a function declares, in its decorator and in its docstring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bespeak.contract.endpoint import DeclaredError


def declare_errors(given: Mapping[str, str] | Sequence[str], described: Mapping[str, str]) -> tuple[DeclaredError, ...]:
    """Merge the errors of the decorator and of the docstring. The decorator's descriptions win."""
    texts = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, "")
    names = [*texts, *(name for name in described if name not in texts)]
    return tuple(DeclaredError(name, texts.get(name) or described.get(name, "")) for name in names)
