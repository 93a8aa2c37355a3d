"""JSON Pointers (RFC 6901): names of places inside a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

ABSENT: Final[Any] = object()  # marker for a missing value where None is a valid one


def child(at: str, part: str | int) -> str:
    if isinstance(part, int):
        return f"{at}/{part}"
    if "~" in part or "/" in part:
        part = part.replace("~", "~0").replace("/", "~1")
    return f"{at}/{part}"


def unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def is_index(part: str, items: Sequence[Any]) -> bool:
    """Return True if a pointer part is a list index; int() would refuse thousands of digits."""
    return len(part) < 10 and part.isdecimal() and int(part) < len(items)


def value_at(data: object, at: str, default: Any = None) -> Any:
    """Return the value a pointer leads to; `default` if there is none."""
    here: Any = data
    for part in at.split("/")[1:]:
        key = unescaped(part)
        if isinstance(here, Mapping) and key in here:
            here = here[key]
        elif isinstance(here, list) and is_index(part, here):
            here = here[int(part)]
        else:
            return default
    return here


def nodes(data: object, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value of a document with its pointer, the whole one first. A loop: depth costs memory, not frames."""
    waiting: list[tuple[str, Any]] = [(at, data)]
    while waiting:
        at, value = waiting.pop()
        yield at, value
        if isinstance(value, Mapping):
            waiting += ((child(at, str(key)), item) for key, item in value.items())
        elif isinstance(value, list):
            waiting += ((child(at, index), item) for index, item in enumerate(value))


def pointer(parts: Iterable[str | int]) -> str:
    """Join parts into a pointer; the empty text is the whole document."""
    return reduce(child, parts, "")


def parent(at: str) -> str:
    """Return the pointer one step above; the whole document is its own parent."""
    return at.rpartition("/")[0]
