"""Plain data as TOML that people read and edit: tables for what is large, one line for what is small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bespeak.text.source.pointer import child, parent
from bespeak.text.source.toml_value import key_text, value_text

_WIDTH: Final = 80
"""A table that is no longer than this stands on one line."""
_SHARED: Final = '"$defs"'
"""The tables in this one are definitions, which many documents have in common."""
_NOWHERE: Final = "-"
"""No pointer: what no comment can stand at."""


Comments = Mapping[str, Sequence[str]]
"""Lines of comment by the pointer of what they stand before."""


Written = dict[tuple[int, str], tuple[object, list[str]]]
"""The lines of tables that were written before, by identity and name; with the table, so that no other is it."""


def toml_text(data: Mapping[str, Any], comments: Comments | None = None, written: Written | None = None) -> str:
    """A TOML document of data that has no null in it; `find_null` tells. A comment stands before what it points at.

    `written` is for who writes many documents that share tables: each is put into words once.
    """
    writer = _Writer(comments or {}, {} if written is None else written)
    writer.comment("")
    head, writer.lines = "".join(f"{line}\n" for line in writer.lines), []
    writer.table(data, "", "")
    return head + "\n".join(writer.lines).strip("\n") + "\n"


def find_null(data: Any, at: str = "") -> str | None:
    """Where data has a null, which TOML cannot say."""
    if data is None:
        return at
    parts = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    return next((found for key, value in parts if (found := find_null(value, child(at, key))) is not None), None)


class _Writer:
    """One document under way. A list of lines, not generators inside each other: schemas are deep and many."""

    def __init__(self, comments: Comments, written: Written) -> None:
        self.lines: list[str] = []
        self._written = written
        self._comments = comments
        self._around: set[str] = set()
        """Tables with a comment inside, which do not fit on one line."""
        for at in comments:
            above = at
            while above:
                above = parent(above)
                self._around.add(above)

    def comment(self, at: str) -> None:
        """The lines of comment for what stands at a pointer."""
        self.lines += [f"# {line}" for line in self._comments.get(at, ())]

    def table(self, table: Mapping[str, Any], name: str, at: str) -> None:
        """A table under its dotted name; its tables of more than a line follow it."""
        if at != _NOWHERE or not name.rpartition(".")[0].endswith(_SHARED):
            self._table(table, name, at)
            return
        known = self._written.get((id(table), name))
        if known is not None:
            self.lines += known[1]
            return
        start = len(self.lines)
        self._table(table, name, at)
        self._written[id(table), name] = (table, self.lines[start:])

    def _table(self, table: Mapping[str, Any], name: str, at: str) -> None:
        commented = at in self._around
        small: dict[str, str] = {}
        large: dict[str, Mapping[str, Any]] = {}
        for key, value in table.items():
            if not isinstance(value, Mapping):
                small[key] = _value(value)
            elif (commented and child(at, key) in self._around) or (text := _small(value)) is None:
                large[key] = value
            else:
                small[key] = text
        if name and (small or not table):
            self.lines.append("")
            self.comment(at)
            self.lines.append(f"[{name}]")
        elif name:
            self.comment(at)
        for key, text in small.items():
            if commented:
                self.comment(child(at, key))
            self.lines.append(f"{_key(key)} = {text}")
        for key, value in large.items():
            # Nothing below a table without comments has any.
            self.table(value, f"{name}.{_key(key)}" if name else _key(key), child(at, key) if commented else _NOWHERE)


def _small(table: Mapping[str, Any]) -> str | None:
    """A table on one line, if it is short and simple."""
    if len(table) > 6 or any(isinstance(item, Mapping) and item for item in table.values()):
        return None
    text = _value(table)
    return text if len(text) <= _WIDTH else None


def _value(value: Any) -> str:
    written = value_text(value)
    assert written is not None
    return written


def _key(key: str) -> str:
    written = key_text(key)
    assert written is not None
    return written
