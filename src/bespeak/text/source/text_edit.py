"""Edits of a text: what to put in place of which stretch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bespeak.text.source.tree import Span


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A text to put in place of a stretch; an empty stretch is a place to insert at."""

    span: Span
    text: str


def insertion(at: int, text: str) -> TextEdit:
    """A text put between two characters."""
    return TextEdit(Span(at, at), text)


def deletion(start: int, end: int) -> TextEdit:
    """A stretch taken out."""
    return TextEdit(Span(start, end), "")


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """The text after the edits. Of two that overlap, the one that starts first counts; the other has to wait."""
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)):
        if edit.span.start < done:
            continue
        parts += (text[done : edit.span.start], edit.text)
        done = edit.span.end
    parts.append(text[done:])
    return "".join(parts)
