"""Plain data as readable TOML: tables for large values, one line for small ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from bespeak.text.source.pointer import child, parent
from bespeak.text.source.value_text import toml_key, toml_value

_WIDTH: Final = 80  # maximum length of a table on one line
_SHARED: Final = '"$defs"'  # key of a table that holds definitions, which many documents share
_NOWHERE: Final = "-"  # pointer of a table that cannot have comments


Comments = Mapping[str, Sequence[str]]  # comment lines by the pointer of the entry that follows them


Written = dict[tuple[int, str], tuple[object, list[str]]]
"""Lines of tables written before, by identity and name; the table is included to keep its id in use."""


def toml_text(
    data: Mapping[str, Any],
    comments: Comments | None = None,
    written: Written | None = None,
    sections: Collection[str] = (),
) -> str:
    """Write data without nulls (see `find_null`) as a TOML document. A comment precedes the entry it points at.

    Pass the same `written` for many documents that share tables: each table is then written once. Lists of tables under
    the keys in `sections` are written as `[[key]]`.
    """
    writer = _Writer(comments or {}, {} if written is None else written, sections)
    writer.comment("")
    head, writer.lines = "".join(f"{line}\n" for line in writer.lines), []
    writer.table(data, "", "")
    return head + "\n".join(writer.lines).strip("\n") + "\n"


def find_null(data: Any, at: str = "") -> str | None:
    """Return the pointer of the first null in data, which TOML cannot express."""
    if data is None:
        return at
    parts = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    return next((found for key, value in parts if (found := find_null(value, child(at, key))) is not None), None)


class _Writer:
    """Writer of one document. It appends to a list instead of nesting generators: schemas are deep and many."""

    def __init__(self, comments: Comments, written: Written, sections: Collection[str] = ()) -> None:
        self.lines: list[str] = []
        self._sections = sections
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
        """Append the comment lines of a pointer."""
        self.lines += [f"# {line}" for line in self._comments.get(at, ())]

    def table(self, table: Mapping[str, Any], name: str, at: str) -> None:
        """Append a table under its dotted name, followed by its tables that take more than a line."""
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

    def _table(self, table: Mapping[str, Any], name: str, at: str, *, is_section: bool = False) -> None:
        commented = at in self._around
        small: dict[str, str] = {}
        large: dict[str, Mapping[str, Any]] = {}
        lists: dict[str, list[Mapping[str, Any]]] = {}
        for key, value in table.items():
            if key in self._sections and isinstance(value, list):
                lists[key] = value
            elif not isinstance(value, Mapping):
                small[key] = _value(value)
            elif (commented and child(at, key) in self._around) or (text := _small(value)) is None:
                large[key] = value
            else:
                small[key] = text
        if name and (small or not table or is_section):
            self.lines.append("")
            self.comment(at)
            self.lines.append(f"[[{name}]]" if is_section else f"[{name}]")
        elif name:
            self.comment(at)
        for key, text in small.items():
            if commented:
                self.comment(child(at, key))
            self.lines.append(f"{_key(key)} = {text}")
        for key, value in large.items():
            # A table without comments has none below it.
            self.table(value, f"{name}.{_key(key)}" if name else _key(key), child(at, key) if commented else _NOWHERE)
        for key, tables in lists.items():
            for each in tables:
                self._table(each, f"{name}.{_key(key)}" if name else _key(key), _NOWHERE, is_section=True)


def _small(table: Mapping[str, Any]) -> str | None:
    """Write a table on one line; return None if it is too long or nested."""
    if len(table) > 6 or any(isinstance(item, Mapping) and item for item in table.values()):
        return None
    text = _value(table)
    return text if len(text) <= _WIDTH else None


def _value(value: Any) -> str:
    written = toml_value(value)
    assert written is not None
    return written


def _key(key: str) -> str:
    written = toml_key(key)
    assert written is not None
    return written
