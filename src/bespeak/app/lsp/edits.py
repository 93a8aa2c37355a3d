"""Changes of a text as an editor makes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lsprotocol import types

from bespeak.app.lsp.positions import Positions
from bespeak.text.diagnostics.report import Finding, Replacement


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A text to put between two offsets of a text."""

    start: int
    end: int
    text: str


def repair(finding: Finding, positions: Positions) -> list[Edit]:
    """The repair of a finding; nothing if it has none that can be made in the text."""
    return [replacement_edit(edit, positions) for edit in finding.edits]


def replacement_edit(edit: Replacement, positions: Positions) -> Edit:
    """A replacement, which counts lines and columns, with the line ends of the text it goes into."""
    start, end = positions.replaced(edit)
    return Edit(start, end, edit.text.replace("\n", "\r\n") if "\r\n" in positions.text else edit.text)


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def as_text_edits(edits: Iterable[Edit], positions: Positions) -> list[types.TextEdit]:
    """The edits as the protocol has them."""
    return [types.TextEdit(positions.span(edit.start, edit.end), edit.text) for edit in edits]
