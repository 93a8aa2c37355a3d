"""Place of an offset in YAML, by indentation, so that the rest of the document may be broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from bespeak.app.lsp.flow_place import ITEM, Place, flow_place

_LINE: Final = re.compile(
    r"""(?P<indent>[ ]*+)(?P<dashes>(?:-(?:[ ]++|$))*+)
        (?:(?:"(?P<double>[^"\n]*+)"|'(?P<single>[^'\n]*+)'|(?P<plain>[\w$./~-]++))[ \t]*+:(?:[ \t]++|$))?+
        (?P<rest>.*+)""",
    re.VERBOSE,
)
_FLOW_LINES: Final = 200
"""Number of lines above in which an open bracket is searched."""


class _Line:
    """One line: the columns of its dashes, its key, and the rest."""

    def __init__(self, text: str) -> None:
        match = _LINE.match(text)
        assert match is not None
        indent, dashes = match["indent"], match["dashes"]
        self.key = next((name for name in match.group("double", "single", "plain") if name is not None), None)
        self.dashes = [len(indent) + at for at, char in enumerate(dashes) if char == "-"]
        self.column = len(indent) + len(dashes)
        self.rest = match["rest"]
        self.rest_at = match.start("rest")
        self.is_empty = not self.dashes and self.key is None and (not self.rest or self.rest.startswith("#"))


def yaml_place(text: str, offset: int) -> Place:
    """Return the place of an offset."""
    start = text.rfind("\n", 0, offset) + 1
    flow = _in_flow(text, start, offset)
    if flow is not None:
        return flow
    return _block(text, start, offset)


def _block(text: str, start: int, offset: int) -> Place:
    line = _Line(text[start:offset])
    path = (*_above(text, start, line), *(ITEM for _ in line.dashes))
    return Place(path, is_key=True) if line.key is None else Place((*path, line.key), is_key=False)


def _above(text: str, start: int, line: _Line) -> tuple[str, ...]:
    """Return the keys and lists that enclose a line, outermost first."""
    column = line.dashes[0] if line.dashes else line.column
    in_list = bool(line.dashes)
    found: list[str] = []
    for _, written in _upwards(text, start):
        if column == 0 and not in_list:
            break
        if written.startswith(" " * (column + 1)):
            continue  # a shortcut for most lines of a long document
        above = _Line(written)
        if above.is_empty:
            continue
        # The items of a list may be in the column of its key.
        if above.key is not None and (above.column < column or (in_list and above.column == column)):
            found.append(above.key)
            column, in_list = above.column, False
        for dash in reversed(above.dashes):
            if dash < column:
                found.append(ITEM)
                column, in_list = dash, True
    return tuple(reversed(found))


def _in_flow(text: str, start: int, offset: int) -> Place | None:
    """Return the place inside unclosed brackets that open on this line or a few lines above."""
    leftmost = None
    lines = ((start, text[start:offset]), *islice(_upwards(text, start), _FLOW_LINES))
    for at, written in lines:
        line = _Line(written)
        # Text in brackets is indented further than their key; a key that is not ends them.
        if line.rest[:1] in ("[", "{") and (leftmost is None or line.column < leftmost):
            opening = at + line.rest_at
            inside = flow_place(text, opening, offset)
            if inside is not None:
                outer = _block(text, at, opening)
                return Place(outer.path + inside.path, inside.is_key)
        if line.key is not None:
            leftmost = line.column if leftmost is None else min(leftmost, line.column)
        if leftmost == 0:
            break
    return None


def _upwards(text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the lines above an offset at a line start, nearest first."""
    while start > 0:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        yield start, text[start:end].rstrip("\r")
