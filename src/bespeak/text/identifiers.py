"""Names: their words, free ones, and those that lead to others. It loads no English, so that servers can use it."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import Final, TypeVar

_T = TypeVar("_T")
# Between the words of `roomType` and `HTTPStatus`; the plural of an acronym is one word: `listAPIs`.
_BORDER: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")


def apart(name: str, joint: str = " ") -> str:
    """Put a joint between the words of a name in camel case."""
    return _BORDER.sub(joint, name)


def pieces(name: str) -> list[str]:
    """Return the words of a name, as they are written, that consist of letters."""
    return _LETTERS.findall(apart(name))


def spaced(name: str) -> str:
    """Write a name as text: `roomType`, `room_type` and `room-type` become `room type`."""
    return apart(name).replace("_", " ").replace("-", " ").lower()


def snake(name: str) -> str:
    """Write a name in snake_case; empty if it has no letter or digit."""
    return slug(name if name.isupper() else apart(name))


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
