"""The draft's illustrative notation, `BOOK /reservation { semantic { ... } }`, as a document tree.

The draft calls only YAML and JSON normative, but readers paste its examples. They are parsed into the data that the
same document has in YAML, with JSON Schemas for the short fields, and every part keeps its place.
"""

from __future__ import annotations

from typing import Any

from bespeak.text.source.brace_reader import read
from bespeak.text.source.expansion import expand_tree
from bespeak.text.source.places import Place, PlacedTree
from bespeak.text.source.tree import NotationError, SyntaxFault, plain, too_long
from bespeak.text.source.yaml_fault import unprintable


class BraceTree(PlacedTree):
    """A document in brace notation."""

    __slots__ = ("_read",)

    notation = "braces"

    def __init__(self, data: Any, places: Place, text: str, file: str, *, crlf: bool = False) -> None:
        super().__init__(data, text, file, crlf=crlf)
        self._read = places

    def places(self) -> Place:
        return self._read


def parse_braces(text: str, file: str) -> BraceTree | SyntaxFault:
    """Parse a text in brace notation; return a Fault if it is not valid."""
    text, crlf = plain(text)
    refused = too_long(text, file) or unprintable(text, file)
    if refused is not None:
        return refused
    try:
        data, places = read(text)
    except NotationError as reason:
        return reason.fault(text, file)
    tree = BraceTree(data, places, text, file, crlf=crlf)
    expand_tree(tree)
    return tree
