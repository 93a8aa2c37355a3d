"""Detection of a text's notation by its first lines."""

from __future__ import annotations

import re
from typing import Final, Literal

_SEEN: Final = 1 << 16
"""Limit of characters that are read: an endpoint is near the top of a document."""

_NOT_YAML: Final = re.compile(
    r"""^[ \t]*+(?:
        [A-Za-z][\w-]*+[ \t]++/[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)*+[ \t]*+\{         # BOOK /reservation/{id} {
      | [A-Za-z_][\w-]*+[ \t]*+\{(?!\{)                                               # semantic {
      | (?:input|output)[ \t]*+:[ \t]*+\n[ \t\n]*+[A-Za-z_]\w*+[ \t]*+\(              # output: / status (string)
      | -[ \t]++\w++[ \t]*+\([^():\n]*+:[^()\n]*+\)[ \t]*+$                           # - size (integer, minimum: 1)
    )""",
    re.MULTILINE | re.VERBOSE,
)


def detect_notation(text: str) -> Literal["json", "yaml", "braces"]:
    """Detect the notation: JSON starts with a bracket, brace notation has blocks without a colon; everything else is
    YAML.
    """
    head = text[:_SEEN].removeprefix("\ufeff").lstrip()
    if head[:1] in {"{", "["}:
        return "json"
    if _NOT_YAML.search(head):
        return "braces"
    return "yaml"
