"""The comments of a TOML text, told from `#` inside strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from bespeak.text.source.toml_places import STRING
from bespeak.text.source.tree import Span

_PART: Final = re.compile(rf"""{STRING} | (?P<comment>\#[^\n]*+) | [^"'\#]++ | .""", re.VERBOSE | re.DOTALL)


def toml_comments(text: str) -> Iterator[Span]:
    """Yield the place of each comment in valid TOML, from its `#` to the end of the line."""
    for part in _PART.finditer(text):
        if part.lastgroup == "comment":
            yield Span(part.start(), part.end())
