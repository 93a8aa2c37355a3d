"""Plain data as TOML that people read and edit: tables for what is large, one line for what is small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bespeak.source.pointer import child, parent, pointer
from bespeak.source.toml_value import key_text, value_text

_WIDTH: Final = 80
"""A table that is no longer than this stands on one line."""


Comments = Mapping[str, Sequence[str]]
"""Lines of comment by the pointer of what they stand before."""


def toml_text(data: Mapping[str, Any], comments: Comments | None = None) -> str:
    """A TOML document of data that has no null in it; `find_null` tells. A comment stands before what it points at."""
    writer = _Writer(comments or {})
    head = "".join(f"# {line}\n" for line in writer.comments.get("", ()))
    return head + "\n".join(writer.lines(data, ())).strip("\n") + "\n"


def find_null(data: Any, at: str = "") -> str | None:
    """Where data has a null, which TOML cannot say."""
    if data is None:
        return at
    parts = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    return next((found for key, value in parts if (found := find_null(value, child(at, key))) is not None), None)


class _Writer:
    """One document under way."""

    def __init__(self, comments: Comments) -> None:
        self.comments = comments
        self._around: set[str] = set()
        """Tables with a comment inside, which do not fit on one line."""
        for at in comments:
            while at := parent(at):
                self._around.add(at)

    def lines(self, table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
        large = {
            key: value
            for key, value in table.items()
            if isinstance(value, Mapping) and (self._is_commented(key, path) or not _is_small(value))
        }
        if path and (len(large) < len(table) or not table):
            yield ""
            yield from self._comment(path)
            yield f"[{'.'.join(map(_key, path))}]"
        elif path:
            yield from self._comment(path)
        for key, value in table.items():
            if key not in large:
                yield from self._comment((*path, key))
                yield f"{_key(key)} = {_value(value)}"
        for key, value in large.items():
            yield from self.lines(value, (*path, key))

    def _comment(self, path: tuple[str, ...]) -> Iterator[str]:
        for line in self.comments.get(pointer(path), ()) if self.comments else ():
            yield f"# {line}"

    def _is_commented(self, key: str, path: tuple[str, ...]) -> bool:
        return bool(self._around) and pointer((*path, key)) in self._around


def _is_small(value: Mapping[str, Any]) -> bool:
    if len(value) > 6 or any(isinstance(item, Mapping) and item for item in value.values()):
        return False
    return len(_value(value)) <= _WIDTH


def _value(value: Any) -> str:
    written = value_text(value)
    assert written is not None
    return written


def _key(key: str) -> str:
    written = key_text(key)
    assert written is not None
    return written
