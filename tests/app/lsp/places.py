"""Every value of a document, with the path that leads to it and the offset it starts at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bespeak.app.lsp.cursor import ITEM
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Tree


def leaves(tree: Tree) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the scalars of a tree."""
    waiting: list[tuple[str, tuple[str, ...], Any]] = [("", (), tree.data)]
    while waiting:
        at, path, value = waiting.pop()
        if isinstance(value, dict):
            waiting += ((child(at, key), (*path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            waiting += ((child(at, number), (*path, ITEM), item) for number, item in enumerate(value))
        elif (span := tree.value_span(at)) is not None:
            yield path, span.start


def marked(text: str) -> tuple[str, int]:
    """Return a text without its `|`, and the offset of that mark."""
    offset = text.index("|")
    return text[:offset] + text[offset + 1 :], offset
