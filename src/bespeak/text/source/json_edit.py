"""Changes of JSON documents as edits of their text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bespeak.text.source.change import Change
from bespeak.text.source.flow_edit import add_last, take_out
from bespeak.text.source.json_tree import JsonTree
from bespeak.text.source.places import Place
from bespeak.text.source.pointer import parent, unescaped
from bespeak.text.source.text_edit import TextEdit
from bespeak.text.source.tree import Span


def json_edits(tree: JsonTree, change: Change) -> tuple[TextEdit, ...] | None:
    """Return the edits, or None if the place does not exist or the value is not JSON."""
    place = tree.place(change.at)
    if place is None:
        return None
    if change.op == "replace":
        written = json_text(change.value)
        return None if written is None else (TextEdit(Span(place.start, place.end), written),)
    if change.op in {"append", "insert"}:
        return _added(tree, change, place)
    around = tree.place(parent(change.at)) if change.at else None
    if around is None:
        return None
    if change.op == "rename":
        name = json_text(change.key)
        if place.key is None or name is None or change.key in (around.entries or {}):
            return None
        return (TextEdit(place.key, name),)
    return take_out(tree.text, Span(around.start, around.end), *beside(around, change.at))


def _added(tree: JsonTree, change: Change, place: Place) -> tuple[TextEdit, ...] | None:
    written = json_text(change.value)
    if written is None:
        return None
    if change.op == "insert":
        name = json_text(change.key)
        if place.entries is None or name is None or change.key in place.entries:
            return None
        written = f"{name}: {written}"
    elif place.items is None:
        return None
    entries = [entry_span(entry) for entry in below(place)]
    return add_last(tree.text, Span(place.start, place.end), entries, written)


def json_text(value: Any) -> str | None:
    """Format a value as JSON on one line; return None if JSON cannot express it."""
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        written.encode()
    except (ValueError, TypeError, RecursionError):
        return None
    return written


def below(place: Place) -> Sequence[Place]:
    """Return the places of a collection's entries or items, in order."""
    if place.entries is not None:
        return list(place.entries.values())
    return place.items or ()


def beside(around: Place, at: str) -> tuple[list[Span], int]:
    """Return a pointer's entry with its neighbours and its index; lists may be long."""
    part = at.rpartition("/")[2]
    siblings: Sequence[Place] = below(around)
    index = int(part) if around.entries is None else list(around.entries).index(unescaped(part))
    first = max(0, index - 1)
    return [entry_span(entry) for entry in siblings[first : index + 2]], index - first


def entry_span(place: Place) -> Span:
    """Return the span of a key with its value, or of an item."""
    return Span(place.key.start if place.key else place.start, place.end)
