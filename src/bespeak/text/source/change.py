"""A change to a document, independent of its notation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Change:
    """An operation at a JSON Pointer.

    replace: set another value. rename: rename the key. remove: remove the entry or item. append: add a value at the end
    of the list. insert: add `key` with a value at the end of the mapping.
    """

    op: Literal["replace", "rename", "remove", "append", "insert"]
    at: str
    value: Any = None
    key: str = ""
