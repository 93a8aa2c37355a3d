"""Changes of JSON and TOML as edits of text, and of bracketed YAML. TOML tables with headers are not removed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from bespeak.text.source.json_tree import JsonTree
from bespeak.text.source.pointer import parent, unescaped
from bespeak.text.source.toml_tree import TomlTree
from bespeak.text.source.tree import Change, Place, Span, TextEdit, deletion, insertion, match_end
from bespeak.text.source.value_text import toml_key, toml_value

_GAP: Final = re.compile(r"(?:\s|#[^\n]*+)*+")


def add_last(text: str, around: Span, entries: list[Span], written: str) -> tuple[TextEdit, ...]:
    """Insert an entry after the last one, on its own line if the last one has one."""
    if not entries:
        inside = text[around.start + 1 : around.end - 1]
        if "#" in inside:
            return (insertion(around.start + 1, f"{written} "),)
        blank = " " if inside[:1] == " " and "\n" not in inside else ""
        return (TextEdit(Span(around.start + 1, around.end - 1), f"{blank}{written}{blank}"),)
    last = entries[-1]
    line = text.rfind("\n", around.start, last.start)
    before = text[line + 1 : last.start]
    blank = " " if text[last.end - 1] == ":" else ""  # YAML's key without a value
    if line >= 0 and not before.strip():
        return (insertion(last.end, f"{blank},\n{before}{written}"),)
    return (insertion(last.end, f"{blank}, {written}"),)


def take_out(text: str, around: Span, entries: list[Span], index: int) -> tuple[TextEdit, ...]:
    """Remove one entry with its comma; comments on their own lines stay."""
    entry = entries[index]
    if len(entries) == 1:
        if "#" not in text[around.start + 1 : around.end - 1]:
            return (deletion(around.start + 1, around.end - 1),)
        comma = gap_end(text, entry.end)
        rest = (deletion(comma, comma + 1),) if text.startswith(",", comma) else ()
        return (deletion(entry.start, entry.end), *rest)
    if index < len(entries) - 1:
        following = entries[index + 1]
        if "#" not in text[entry.end : following.start]:
            return (deletion(entry.start, following.start),)
        comma = gap_end(text, entry.end)
        return (deletion(entry.start, entry.end), deletion(comma, comma + 1))
    previous = entries[index - 1]
    if "#" not in text[previous.end : entry.start]:
        return (deletion(previous.end, entry.end),)
    comma = gap_end(text, previous.end)
    return (deletion(comma, comma + 1), deletion(entry.start, entry.end))


def gap_end(text: str, at: int) -> int:
    """Return the next character outside of spaces and comments."""
    return match_end(_GAP, text, at)


def line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def whole_lines(text: str, start: int, end: int) -> TextEdit:
    """Remove the lines of a span but keep the text after it on its last line."""
    return deletion(line_start(text, start), min(line_end(text, end) + 1, len(text)))


_HEADER_END: Final = re.compile(r"[ \t]*+\]")
Edits = tuple[TextEdit, ...] | None


class _ValueWriter(NamedTuple):
    """How a notation writes values and keys; None for what it cannot express."""

    value: Callable[[Any, str], str | None]  # takes the first character of the old value, a quote to keep
    key: Callable[[str], str | None]
    assign: str


def _json_text(value: Any, _quote: str = "") -> str | None:
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except (ValueError, TypeError, RecursionError):
        return None
    return written


_JSON: Final = _ValueWriter(_json_text, _json_text, ": ")
_TOML: Final = _ValueWriter(lambda value, quote: toml_value(value, literal=quote == "'"), toml_key, " = ")


def placed_edits(tree: JsonTree | TomlTree, change: Change) -> Edits:
    """Return the edits, or None if the place does not exist, is spread over several headers, or cannot be written."""
    write = _JSON if isinstance(tree, JsonTree) else _TOML
    place = tree.place(change.at)
    if place is None:
        return None
    if change.op in {"append", "insert"}:
        return _added(tree.text, change, place, write)
    if place.end < 0:
        return None
    if change.op == "replace":
        written = write.value(change.value, tree.text[place.start : place.start + 1])
        return None if written is None else (TextEdit(place.span, written),)
    around = tree.place(parent(change.at)) if change.at else None
    if around is None:
        return None
    if change.op == "rename":
        name = write.key(change.key)
        if place.key is None or name is None or change.key in (around.entries or {}):
            return None
        return (TextEdit(place.key, name),)
    return _removed(tree.text, change.at, place.entry_span, around)


def _removed(text: str, at: str, entry: Span, around: Place) -> Edits:
    before = text[line_start(text, entry.start) : entry.start]
    in_brackets = around.end >= 0 and text[around.start : around.start + 1] in {"[", "{"}
    if in_brackets and around.start < entry.start < around.end:
        neighbours, index = _beside(around, at)
        if any(span.end < 0 for span in neighbours) or before.rstrip(" \t").endswith("."):
            return None  # a dotted key is not one place
        return take_out(text, around.span, neighbours, index)
    if before.strip():
        return None  # a dotted key: without it, its table would be gone as well
    return (whole_lines(text, entry.start, entry.end),)


def _beside(around: Place, at: str) -> tuple[list[Span], int]:
    """Return a pointer's entry with its neighbours and its index among them: all of a list may be many."""
    part = at.rpartition("/")[2]
    index = int(part) if around.entries is None else list(around.entries).index(unescaped(part))
    first = max(0, index - 1)
    return [entry.entry_span for entry in around.children[first : index + 2]], index - first


def _added(text: str, change: Change, place: Place, write: _ValueWriter) -> Edits:
    written = write.value(change.value, "")
    if written is None:
        return None
    if change.op == "insert":
        name = write.key(change.key)
        if place.entries is None or name is None or change.key in place.entries:
            return None
        written = f"{name}{write.assign}{written}"
        if place.end < 0:
            return _below_header(text, change.at, place, place.entries, written)
    elif place.items is None or place.end < 0:
        return None
    entries = [entry.entry_span for entry in place.children]
    if any(span.end < 0 for span in entries):
        return None  # dotted keys: the last entry is not one place
    return add_last(text, place.span, entries, written)


def _below_header(text: str, at: str, table: Place, entries: dict[str, Place], written: str) -> Edits:
    """Add a line to a TOML table with a header: after its last value, or else after the header."""
    last = max((entry for entry in entries.values() if entry.end >= 0), key=lambda entry: entry.end, default=None)
    if last is not None:
        start = last.entry_span.start
        before = text[line_start(text, start) : start]
        return None if before.strip() else (insertion(line_end(text, last.end), f"\n{before}{written}"),)
    if not at:
        return (insertion(0, f"{written}\n"),)
    if table.key is None or not _HEADER_END.match(text, table.key.end):
        return None  # a table that only the headers of its parts name
    line = text[line_start(text, table.key.start) :]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return (insertion(line_end(text, table.key.end), f"\n{indent}{written}"),)
