"""Verbs that take back what another one does."""

from __future__ import annotations

from bespeak.text.language.meanings import meanings
from bespeak.text.language.operation_class import operation_classes


def takes_back(one: str, other: str) -> bool:
    """Return True if one verb restores what was before the other. What is made anew is not what has ended."""
    classes = operation_classes(one)
    remade = classes is not None and classes.main == "CREATE" and classes.of("BEGIN") == 0
    return meanings().opposite(one, other) and not remade
