"""Edits of documents in brace notation: only values are replaced, because the notation is meant for reading."""

from __future__ import annotations

import re
from typing import Final

from bespeak.text.source.brace_tree import BraceTree
from bespeak.text.source.change import Change
from bespeak.text.source.pointer import parent
from bespeak.text.source.text_edit import TextEdit
from bespeak.text.source.yaml_text import value_text

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_HEAD: Final = {"method": re.compile(r"[A-Za-z][\w-]*+"), "path": re.compile(r"/[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+")}


def brace_edits(tree: BraceTree, change: Change) -> tuple[TextEdit, ...] | None:
    """Return the edit that replaces one scalar value, or None."""
    place = tree.place(change.at)
    if change.op != "replace" or place is None or not change.at:
        return None
    if place.entries is not None or place.items is not None or isinstance(change.value, list | dict):
        return None
    if place.key is None:
        head = _HEAD.get(change.at.rpartition("/")[2])
        if head is not None:
            fits = isinstance(change.value, str) and head.fullmatch(change.value)
            return (TextEdit(place.span, change.value),) if fits else None
    around = tree.place(parent(change.at))
    if around is not None and around.items is not None and tree.text[around.start] not in "[-":
        fits = place.key is None and isinstance(change.value, str) and _NAME.fullmatch(change.value)
        return (TextEdit(place.span, change.value),) if fits else None  # names are never quoted
    style = tree.text[place.start : place.start + 1]
    written = value_text(change.value, style=style if style in {'"', "'"} else "", flow=True)
    if written is None:
        return None
    blank = " " if place.start == place.end else ""
    return (TextEdit(place.span, blank + written),)
