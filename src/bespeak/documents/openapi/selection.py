"""Selection of operations by tag, path or operationId, with shell patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import translate

from bespeak.documents.openapi.description import Description, Operation


def select_operations(
    description: Description, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> Description:
    """Keep the operations that match a pattern of `include`; keep all if there is none."""
    wanted, unwanted = _patterns(include), _patterns(exclude)
    kept = tuple(
        operation
        for operation in description.operations
        if (not wanted or _is_named(operation, wanted)) and not _is_named(operation, unwanted)
    )
    return replace(description, operations=kept)


def with_server(description: Description, server: str) -> Description:
    """Set the address of operations that have none, or one with unresolved variables."""
    base = server.rstrip("/")
    operations = tuple(
        operation if operation.base and "{" not in operation.base else replace(operation, base=base)
        for operation in description.operations
    )
    return replace(description, operations=operations)


def _patterns(texts: Iterable[str]) -> list[re.Pattern[str]]:
    return [re.compile(translate(text)) for text in texts]


def _is_named(operation: Operation, patterns: list[re.Pattern[str]]) -> bool:
    names = (operation.path, operation.operation_id, f"{operation.method} {operation.path}", *operation.tags)
    return any(pattern.match(name) for pattern in patterns for name in names if name)
