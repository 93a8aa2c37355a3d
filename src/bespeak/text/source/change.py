"""A change to a document, said independently of its notation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Change:
    """What to do with the place of a JSON Pointer.

    replace: give it another value. rename: give its key another name. remove: take the entry or item out.
    append: put a value at the end of the list there. insert: put `key` with a value at the end of the mapping there.
    """

    op: Literal["replace", "rename", "remove", "append", "insert"]
    at: str
    value: Any = None
    key: str = ""
