"""A change to a document, said in terms of the document and not of its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Operation = Literal["replace", "rename", "remove", "append", "insert"]


@dataclass(frozen=True, slots=True)
class Change:
    """One change at a JSON Pointer. Each notation knows how to make it in its own text."""

    op: Operation
    at: str
    """The value to replace or remove, the key to rename, the list to append to, the mapping to insert into."""
    value: Any = None
    key: str = ""
    """The new name of a renamed key, or the key of an inserted value."""
