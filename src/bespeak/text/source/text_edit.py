"""Edits of a text: replacements of spans."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bespeak.text.source.tree import Span


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A replacement for a span; an empty span is an insertion point."""

    span: Span
    text: str


def insertion(at: int, text: str) -> TextEdit:
    """Insert text between two characters."""
    return TextEdit(Span(at, at), text)


def deletion(start: int, end: int) -> TextEdit:
    """Delete a span."""
    return TextEdit(Span(start, end), "")


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Apply the edits. Of two that overlap, only the one that starts first is applied."""
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < done:
            continue
        parts += (text[done : edit.span.start], edit.text)
        done = edit.span.end
    parts.append(text[done:])
    return "".join(parts)
