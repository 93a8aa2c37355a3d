"""Names: their words, free ones, and those that lead to others. It loads no English, so that servers can use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import Final, TypeVar

_T = TypeVar("_T")
HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # border between the words of `roomType`
WORD_BORDER: Final = re.compile(rf"{HUMP.pattern}|(?<=[A-Z])(?=[A-Z][a-z])")  # also between those of `HTTPStatus`
PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # one word of `roomType`
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")


def slug(text: str, joint: str = "_") -> str:
    """Write a text with small letters and digits alone, with a joint in place of everything between them."""
    return _NO_WORD.sub(joint, text.lower()).strip(joint)


def unused(name: str, taken: Container[str | None], joint: str = "_") -> str:
    """Return the name, with the first free number appended if it is taken."""
    number, found = 2, name
    while found in taken:
        found = f"{name}{joint}{number}"
        number += 1
    return found


def reached(start: Iterable[_T], leads: Callable[[_T], Iterable[_T]]) -> dict[_T, None]:
    """Return what some names lead to, directly or through others, and the names themselves first."""
    found = dict.fromkeys(start)
    waiting = list(found)
    while waiting:
        new = [name for name in leads(waiting.pop()) if name not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return found
