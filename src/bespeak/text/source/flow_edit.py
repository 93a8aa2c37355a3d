"""Edits of bracketed lists and mappings, which JSON, TOML and YAML's flow style write alike."""

from __future__ import annotations

import re
from typing import Final

from bespeak.text.source.text_edit import TextEdit, deletion, insertion
from bespeak.text.source.text_position import match_end
from bespeak.text.source.tree import Span

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
    """Return the end of an offset's line, without the line feed."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def line_start(text: str, at: int) -> int:
    """Return the start of an offset's line."""
    return text.rfind("\n", 0, at) + 1


def whole_lines(text: str, start: int, end: int) -> TextEdit:
    """Remove the lines of a span but keep the text after it on its last line."""
    return deletion(line_start(text, start), min(line_end(text, end) + 1, len(text)))
