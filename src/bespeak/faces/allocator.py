"""The C library's allocator, which keeps freed memory for later unless it is told to return it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache


def return_memory() -> None:
    """Return freed memory to the system; do nothing where the C library offers no way."""
    trim = _find_trim()
    if trim is not None:
        trim(0)


@cache
def _find_trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):  # not glibc, or Windows
        return None
    return found
