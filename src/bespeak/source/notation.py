"""Which notation a text is written in, told by its first lines."""

from __future__ import annotations

import re
from typing import Final, Literal

_SEEN: Final = 1 << 16
"""Characters looked at: an endpoint stands near the top of a document."""

_BLOCK: Final = re.compile(
    r"""^[ \t]*+(?:
        [A-Za-z][\w-]*+[ \t]++/[^\s{]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+[ \t]*+\{    # BOOK /reservation/{id} {
      | [A-Za-z_][\w-]*+[ \t]*+\{(?!\{)                                         # semantic {
    )""",
    re.MULTILINE | re.VERBOSE,
)
_SHORT_FIELD: Final = re.compile(r"^[ \t]*+(?:input|output|endpoint)[ \t]*+:[ \t]*+\n(?:[ \t]*+\n)*+[ \t]++[A-Za-z_]\w*+[ \t]++\(", re.MULTILINE)


def detect_notation(text: str) -> Literal["json", "yaml", "braces"]:
    """JSON starts with a bracket, brace notation has blocks in braces without a colon; everything else is YAML."""
    head = text[:_SEEN].removeprefix("\ufeff").lstrip()
    if head[:1] in {"{", "["}:
        return "json"
    if _BLOCK.search(head) or _SHORT_FIELD.search(head):
        return "braces"
    return "yaml"
