"""A place in a description: a value, the document it stands in, and the pointer that leads to it."""

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
    """The file or address it was read from."""
    data: dict[str, Any]
    locate: Callable[[str], Location]
    """The place of a pointer, as far as it is known."""
    path: Path | None = None
    """Where it is on disk, if it is."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A value with its place."""

    value: Any
    document: Document
    at: str = ""

    def below(self, *parts: str | int) -> Spot:
        """What stands under a key, a key of that, and so on; None where nothing does."""
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
        """The entries of an object that are no extensions."""
        if isinstance(self.value, dict):
            for name in self.value:
                if not name.startswith("x-"):
                    yield name, self.below(name)

    def items(self) -> Iterator[Spot]:
        """The items of a list."""
        if isinstance(self.value, list):
            for index in range(len(self.value)):
                yield self.below(index)

    def text(self, key: str) -> str:
        """A text under a key; nothing if there is none. YAML makes numbers of versions."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return value.strip() if isinstance(value, str) else ""

    def flag(self, key: str) -> bool | None:
        """A boolean under a key, also where YAML 1.1 wrote `yes` and meant it; None if there is none."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        if isinstance(value, str):
            return {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}.get(value.lower())
        return value if isinstance(value, bool) else None

    @property
    def key(self) -> tuple[str, str]:
        """What tells this place from every other."""
        return self.document.name, self.at
