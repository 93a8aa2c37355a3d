"""A repair a finding offers: the changes to the document, and whether they keep its meaning."""

from __future__ import annotations

from dataclasses import dataclass

from bespeak.text.source.change import Change
from bespeak.text.source.text_edit import TextEdit


@dataclass(frozen=True, slots=True)
class Fix:
    """What would mend a finding."""

    title: str
    """What the repair does, as a command: `Write BOOK`."""
    changes: tuple[Change, ...]
    safe: bool = True
    """Whether the meaning of the contract stays what its author meant; an unsafe repair wants a look."""
    edits: tuple[TextEdit, ...] = ()
    """What to do with the text itself, where the repair is of a comment, which no pointer leads to."""
