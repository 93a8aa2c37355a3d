"""Plain data as readable TOML: tables for large values, one line for small ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.text.source.pointer import child, unescaped
from bespeak.text.source.value_text import toml_entries

_WIDTH: Final = 80  # maximum length of a table on one line
_SHARED: Final = '"$defs"'  # key of a table that holds definitions, which many documents share

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
    noted = _noted(comments or {})
    writer = _TomlWriter({} if written is None else written, sections)
    writer.table(data, "", noted)
    return "".join(f"# {line}\n" for line in noted.lines) + "\n".join(writer.lines).strip("\n") + "\n"


def find_null(data: Any) -> str | None:
    """Return the pointer of the first null in data, which TOML cannot express."""
    if data is None:
        return ""
    parts = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    return next((child("", key) + at for key, value in parts if (at := find_null(value)) is not None), None)


@dataclass(slots=True)
class _Noted:
    lines: Sequence[str] = ()
    below: dict[str, _Noted] = field(default_factory=dict)


def _noted(comments: Comments) -> _Noted:
    root = _Noted()
    for at, lines in comments.items():
        here = root
        for part in at.split("/")[1:]:
            here = here.below.setdefault(unescaped(part) if "~" in part else part, _Noted())
        here.lines = lines
    return root


class _TomlWriter:
    """Writer of one document. It appends to a list instead of nesting generators: schemas are deep and many."""

    def __init__(self, written: Written, sections: Collection[str]) -> None:
        self.lines: list[str] = []
        self._sections = sections
        self._written = written

    def table(self, table: Mapping[str, Any], name: str, noted: _Noted | None) -> None:
        """Append a table under its dotted name, followed by its tables that take more than a line."""
        if noted is not None or not name.rpartition(".")[0].endswith(_SHARED):
            self._table(table, name, noted)
            return
        if (known := self._written.get((id(table), name))) is not None:
            self.lines += known[1]
            return
        start = len(self.lines)
        self._table(table, name, noted)
        self._written[id(table), name] = (table, self.lines[start:])

    def _table(self, table: Mapping[str, Any], name: str, noted: _Noted | None, *, is_section: bool = False) -> None:
        notes = noted.below if noted is not None else {}
        lists = {key: value for key, value in table.items() if key in self._sections and isinstance(value, list)}
        small: list[str] = []
        large: list[tuple[str, str]] = []
        for key, written, text in toml_entries({key: table[key] for key in table if key not in lists}, _WIDTH):
            note = notes.get(key)
            # A table with a comment inside does not fit on one line.
            if text is None or (note is not None and note.below and isinstance(table[key], Mapping)):
                large.append((key, f"{name}.{written}" if name else written))
            else:
                small += [f"# {line}" for line in note.lines] if note is not None else ()
                small.append(f"{written} = {text}")
        has_header = bool(name) and (bool(small) or not table or is_section)
        if has_header:
            self.lines.append("")
        self.lines += [f"# {line}" for line in noted.lines] if name and noted is not None else ()
        if has_header:
            self.lines.append(f"[[{name}]]" if is_section else f"[{name}]")
        self.lines += small
        for key, below in large:
            self.table(table[key], below, notes.get(key))
        for key, written, _ in toml_entries(dict.fromkeys(lists, ""), _WIDTH) if lists else ():
            for each in lists[key]:
                self._table(each, f"{name}.{written}" if name else written, None, is_section=True)
