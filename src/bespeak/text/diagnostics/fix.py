"""Automatic fix of a finding: the changes to the document, and whether they preserve its meaning."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak.text.source.change import Change
from bespeak.text.source.text_edit import TextEdit


@dataclass(frozen=True, slots=True)
class Fix:
    """Automatic fix of a finding."""

    title: str
    """Imperative description: `Write BOOK`."""
    changes: tuple[Change, ...]
    safe: bool = True
    """True if the fix preserves the meaning of the contract; an unsafe fix needs a review."""
    edits: tuple[TextEdit, ...] = ()
    """Edits of the text itself, for a fix in a comment, which has no pointer."""
