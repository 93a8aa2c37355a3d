"""Place of an offset in JSON, and in the brackets of YAML and TOML, even if they are not closed yet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ITEM: Final = "[]"
"""Path segment for any item of a list."""

_TOKEN: Final = re.compile(
    r"""(?P<text>"(?:[^"\\\n]++|\\.)*+"?+|'[^'\n]*+'?+)
      | (?P<comment>(?<!\S)\#[^\n]*+)
      | (?P<mark>[{}\[\],:=])
      | (?P<word>[^\s{}\[\],:="'\#]++|\#)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a word: the names and lists that lead to it, and its role."""

    path: tuple[str, ...]
    is_key: bool
    """True for a key of the mapping at the path, False for the value at the path."""


def flow_place(text: str, start: int, offset: int) -> Place | None:
    """Return the place of an offset inside the bracket that opens at `start`; None if it is closed earlier."""
    # For each open bracket: its kind, and in a mapping the key of the next value.
    frames: list[tuple[str, str | None]] = []
    last = ""
    for token in _TOKEN.finditer(text, start, offset):
        kind, said = token.lastgroup, token[0]
        if kind in ("text", "word"):
            last = said.strip("\"'")
        elif said in ("{", "["):
            frames.append((said, None))
        elif said in ("}", "]"):
            if frames:
                frames.pop()
            if not frames:
                return None
        elif kind == "mark" and frames and frames[-1][0] == "{":
            frames[-1] = ("{", None if said == "," else last)
    if not frames:
        return None
    steps = [ITEM if kind == "[" else key for kind, key in frames]
    path = tuple(step for step in steps if step is not None)
    return Place(path, is_key=frames[-1][0] == "[" or frames[-1][1] is None)
