"""A place in a description: a value, its document, and its pointer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bespeak.text.source import pointer
from bespeak.text.source.span import Location


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One file of a description."""

    name: str
    """File or address it was read from."""
    data: dict[str, Any]
    locate: Callable[[str], Location]
    """Function from a pointer to its location."""
    path: Path | None = None
    """Path on disk, if it is a file."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A value with its document and pointer."""

    value: Any
    document: Document
    at: str = ""

    def below(self, *parts: str | int) -> Spot:
        """Return the place below these keys; its value is None if it does not exist."""
        value, at = self.value, self.at
        for part in parts:
            at = pointer.child(at, part)
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                value = None
        return Spot(value, self.document, at)

    def entries(self) -> Iterator[tuple[str, Spot]]:
        """Yield the entries of an object except for extensions."""
        if isinstance(self.value, dict):
            for name in self.value:
                if not name.startswith("x-"):
                    yield name, self.below(name)

    def items(self) -> Iterator[Spot]:
        """Yield the items of a list."""
        if isinstance(self.value, list):
            for index in range(len(self.value)):
                yield self.below(index)

    def text(self, key: str) -> str:
        """Return the text under a key, or an empty one. YAML reads versions as numbers."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return value.strip() if isinstance(value, str) else ""

    def flag(self, key: str) -> bool | None:
        """Return the boolean under a key, also for a quoted `yes` of YAML 1.1; None if there is none."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, str):
            return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(value.lower())
        return value if isinstance(value, bool) else None

    @property
    def key(self) -> tuple[str, str]:
        """Identity of the place: document and pointer."""
        return self.document.name, self.at
