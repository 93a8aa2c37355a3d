"""Place of an offset in TOML: its header and key."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from bespeak.app.lsp.flow_place import ITEM, Place, flow_place

_HEADER: Final = re.compile(r"^[ \t]*+(?P<open>\[\[?+)(?P<name>[^\[\]\n#]++)\]", re.MULTILINE)
_KEY: Final = re.compile(r"[ \t]*+(?P<key>[\w.\"'-]++)[ \t]*+=[ \t]*+(?P<rest>.*+)")
_PART: Final = re.compile(r"\"([^\"]*+)\"|'([^']*+)'|([\w-]++)")
_VALUE_LINES: Final = 200
"""Number of lines above in which the key of an open bracket is searched."""


def toml_place(text: str, offset: int) -> Place | None:
    """Return the place of an offset; None inside a header."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:offset]
    if line.lstrip().startswith("["):
        return None
    header = _header(text, start)
    inside = _in_brackets(text, start, offset)
    if inside is not None:
        return Place(header + inside.path, inside.is_key)
    assigned = _KEY.match(line)
    if assigned is None:
        return Place((*header, *_parts(line.rpartition(".")[0])), is_key=True)
    return Place((*header, *_parts(assigned["key"])), is_key=False)


def _header(text: str, offset: int) -> tuple[str, ...]:
    found = next(iter(deque(_HEADER.finditer(text, 0, offset), maxlen=1)), None)
    if found is None:
        return ()
    path = _parts(found["name"])
    return (*path, ITEM) if found["open"] == "[[" else path


def _in_brackets(text: str, start: int, offset: int) -> Place | None:
    """Return the place inside a list or an inline table that opens on this line or a few lines above."""
    for _ in range(_VALUE_LINES):
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        assigned = _KEY.match(line)
        if assigned is not None:
            opening = start + assigned.start("rest")
            if assigned["rest"][:1] not in ("[", "{") or opening >= offset:
                return None
            inside = flow_place(text, opening, offset)
            return Place(_parts(assigned["key"]) + inside.path, inside.is_key) if inside else None
        if start == 0 or _HEADER.match(line):
            return None
        start = text.rfind("\n", 0, start - 1) + 1
    return None


def _parts(name: str) -> tuple[str, ...]:
    return tuple(next(filter(None, part.groups()), "") for part in _PART.finditer(name))
