"""What the sources of a composition read: the input and the outputs of earlier steps."""

from __future__ import annotations

from typing import Any, Final


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""No value, which is not the same as null."""


def is_there(value: Any) -> bool:
    """Return True for a value other than MISSING and null."""
    return value is not MISSING and value is not None


MOST_ROWS: Final = 1_000_000
"""The most rows that the sources of one composition look at, so that no join blocks the server for long."""


class UnmetError(Exception):
    """A source that has no usable value. It never leaves the composition."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


class Scope:
    """The values of one run. Closures of `values` read them."""

    __slots__ = ("_rows", "captured", "indexes", "input")

    def __init__(self, given: dict[str, Any]) -> None:
        self.input = given
        self.captured: dict[str, Any] = {}
        self.indexes: dict[int, Any] = {}
        """Rows by the value of a field, by the identity of the source that looks them up."""
        self._rows = MOST_ROWS

    def capture(self, name: str, output: Any) -> None:
        """Add the output of a step."""
        self.captured[name] = output
        self.indexes.clear()

    def spend(self, rows: int) -> None:
        """Count rows that are looked at. Raises UnmetError if they are too many."""
        self._rows -= rows
        if self._rows < 0:
            raise UnmetError(
                "too-many-rows", f"its lists need more than {MOST_ROWS:,} comparisons; ask for fewer elements"
            )
