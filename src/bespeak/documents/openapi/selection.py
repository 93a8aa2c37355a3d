"""Selection of operations by tag, path or operationId, with shell patterns."""

from __future__ import annotations

import re
from collections import Counter
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


def with_server(description: Description, server: str) -> tuple[Description, Counter[str]]:
    """Set the address of all operations, and count the operations of each described address that is replaced."""
    base = server.rstrip("/")
    replaced = Counter(one.base for one in description.operations if one.base and one.base != base)
    operations = tuple(replace(operation, base=base) for operation in description.operations)
    return replace(description, operations=operations), replaced


def _patterns(texts: Iterable[str]) -> list[re.Pattern[str]]:
    return [re.compile(translate(text)) for text in texts]


def _is_named(operation: Operation, patterns: list[re.Pattern[str]]) -> bool:
    names = (operation.path, operation.operation_id, f"{operation.method} {operation.path}", *operation.tags)
    return any(pattern.match(name) for pattern in patterns for name in names if name)
