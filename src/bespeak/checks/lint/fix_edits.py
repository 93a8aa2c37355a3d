"""Fixes as text edits: those of one finding, and a selection of several that do not overlap."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from bespeak.text.diagnostics.diagnostic import Fix
from bespeak.text.source.edit import edits
from bespeak.text.source.tree import Span, TextEdit, Tree, apply_edits

_BREAK: Final = re.compile("\r\n")
_MARK: Final = "\ufeff"
_ADDING: Final = (",", "\n")  # beginnings of edits that append an entry: two of them at one position add two entries

_Owner = TypeVar("_Owner")


def fix_edits(fix: Fix, tree: Tree) -> tuple[TextEdit, ...] | None:
    """Convert a fix into text edits; return None if it cannot be made in place."""
    made = sorted(fix.edits, key=_start)
    for change in fix.changes:
        found = edits(tree, change)
        if found is None or not _apart(found, made):
            return None
        for edit in found:
            insort(made, edit, key=_start)
    return tuple(made)


def apart(wanted: Iterable[tuple[_Owner, Sequence[TextEdit]]]) -> list[tuple[_Owner, Sequence[TextEdit]]]:
    """Select the fixes that can be made together, earlier ones first."""
    taken: list[TextEdit] = []
    kept = []
    for owner, found in wanted:
        if _apart(found, taken):
            for edit in found:
                insort(taken, edit, key=_start)
            kept.append((owner, found))
    return kept


def _apart(some: Iterable[TextEdit], others: Sequence[TextEdit]) -> bool:
    """Return True if no edit touches one of the sorted, disjoint others: only neighbours are compared."""
    for edit in some:
        at = bisect_left(others, edit.span.start, key=_start)
        if at and _touch(edit, others[at - 1]):
            return False
        while at < len(others) and others[at].span.start <= edit.span.end:
            if _touch(edit, others[at]):
                return False
            at += 1
    return True


def _start(edit: TextEdit) -> int:
    return edit.span.start


def _touch(one: TextEdit, other: TextEdit) -> bool:
    """Return True if two edits touch. Two edits that append entries do not."""
    if one.span.end < other.span.start or other.span.end < one.span.start:
        return False
    both_add = one.span == other.span and one.span.start == one.span.end
    return not (both_add and one.text.startswith(_ADDING) and other.text.startswith(_ADDING))


def edited(text: str, tree: Tree, made: Iterable[TextEdit]) -> str:
    """Apply edits to a text; keep its byte order mark and line endings."""
    mark = _MARK if text.startswith(_MARK) else ""
    if not tree.crlf:
        return mark + apply_edits(tree.text, made)
    text = text.removeprefix(_MARK)
    # A text may mix line endings: only edited parts are rewritten.
    breaks = [match.start() - number for number, match in enumerate(_BREAK.finditer(text))]
    moved = [
        TextEdit(
            Span(*(at + bisect_left(breaks, at) for at in (edit.span.start, edit.span.end))),
            edit.text.replace("\n", "\r\n"),
        )
        for edit in made
    ]
    return mark + apply_edits(text, moved)
