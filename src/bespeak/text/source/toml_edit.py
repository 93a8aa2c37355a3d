"""Changes of TOML documents as edits of their text. Tables with headers are not renamed or removed in place."""

from __future__ import annotations

import re
from typing import Final

from bespeak.text.source.change import Change
from bespeak.text.source.flow_edit import add_last, line_end, line_start, take_out, whole_lines
from bespeak.text.source.json_edit import below, entry_span
from bespeak.text.source.places import Place
from bespeak.text.source.pointer import parent
from bespeak.text.source.text_edit import TextEdit, insertion
from bespeak.text.source.toml_tree import TomlTree
from bespeak.text.source.toml_value import key_text, value_text
from bespeak.text.source.tree import Span

_HEADER_END: Final = re.compile(r"[ \t]*+\]")


def toml_edits(tree: TomlTree, change: Change) -> tuple[TextEdit, ...] | None:
    """Return the edits, or None if the place does not exist or is spread over several headers."""
    place = tree.place(change.at)
    if place is None:
        return None
    if change.op == "append":
        written = value_text(change.value)
        if place.items is None or place.end < 0 or written is None:
            return None
        return add_last(tree.text, Span(place.start, place.end), [entry_span(item) for item in place.items], written)
    if change.op == "insert":
        return _inserted(tree, change, place)
    if place.end < 0 or not change.at:
        return None
    if change.op == "replace":
        style = tree.text[place.start]
        written = value_text(change.value, literal=style == "'")
        return None if written is None else (TextEdit(Span(place.start, place.end), written),)
    around = tree.place(parent(change.at))
    if around is None:
        return None
    if change.op == "rename":
        name = key_text(change.key)
        if place.key is None or name is None or change.key in (around.entries or {}):
            return None
        return (TextEdit(place.key, name),)
    return _removed(tree.text, place, around)


def _removed(text: str, place: Place, around: Place) -> tuple[TextEdit, ...] | None:
    span = entry_span(place)
    if (
        around.end >= 0
        and text[around.start : around.start + 1] in {"[", "{"}
        and around.start < span.start < around.end
    ):
        entries = [entry_span(entry) for entry in below(around)]
        if any(entry.end < 0 for entry in entries) or _is_dotted(text, span.start):
            return None
        return take_out(text, Span(around.start, around.end), entries, entries.index(span))
    if text[line_start(text, span.start) : span.start].strip():
        return None  # a dotted key: without it, its table would be gone as well
    return (whole_lines(text, span.start, span.end),)


def _is_dotted(text: str, at: int) -> bool:
    return text[:at].rstrip(" \t").endswith(".")


def _inserted(tree: TomlTree, change: Change, place: Place) -> tuple[TextEdit, ...] | None:
    name, value = key_text(change.key), value_text(change.value)
    if place.entries is None or name is None or value is None or change.key in place.entries:
        return None
    written = f"{name} = {value}"
    text = tree.text
    if place.end >= 0:
        if any(entry.end < 0 for entry in place.entries.values()):
            return None  # dotted keys: the last entry is not one place
        return add_last(text, Span(place.start, place.end), [entry_span(entry) for entry in below(place)], written)
    ends = [entry.end for entry in place.entries.values() if entry.end >= 0]
    if ends:
        last = max((entry for entry in place.entries.values() if entry.end >= 0), key=lambda entry: entry.end)
        start = last.key.start if last.key else last.start
        before = text[line_start(text, start) : start]
        if before.strip():
            return None
        return (insertion(line_end(text, last.end), f"\n{before}{written}"),)
    if not change.at:
        return (insertion(0, f"{written}\n"),)
    if place.key is None or not _HEADER_END.match(text, place.key.end):
        return None  # a table that only the headers of its parts name
    line = text[line_start(text, place.key.start) :]
    indent = line[: len(line) - len(line.lstrip(" \t"))]
    return (insertion(line_end(text, place.key.end), f"\n{indent}{written}"),)
