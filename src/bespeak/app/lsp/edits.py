"""Edits of a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lsprotocol import types

from bespeak.app.lsp.positions import Positions
from bespeak.text.diagnostics.report import Finding, Replacement


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A replacement for the text between two offsets."""

    start: int
    end: int
    text: str


def repair(finding: Finding, positions: Positions) -> list[Edit]:
    """Return the edits that repair a finding; empty if it has no repair within the text."""
    return [replacement_edit(edit, positions) for edit in finding.edits]


def replacement_edit(edit: Replacement, positions: Positions) -> Edit:
    """Convert a replacement by lines and columns to an edit, with the line ends of the text."""
    start, end = positions.replaced(edit)
    return Edit(start, end, edit.text.replace("\n", "\r\n") if "\r\n" in positions.text else edit.text)


def applied(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits that do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def as_text_edits(edits: Iterable[Edit], positions: Positions) -> list[types.TextEdit]:
    """Convert edits to LSP text edits."""
    return [types.TextEdit(positions.span(edit.start, edit.end), edit.text) for edit in edits]
