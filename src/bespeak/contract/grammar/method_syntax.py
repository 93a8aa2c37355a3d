"""The lexical rule of method names (AGTP-API 3.2)."""

from __future__ import annotations

import re

# AGTP-API 3.2: uppercase ASCII single tokens matching ^[A-Z]+$, length 3 to 32 characters inclusive.
_METHOD = re.compile(r"[A-Z]{3,32}")


def is_method_name(method: str) -> bool:
    """Return True if the text is a syntactically valid method: 3 to 32 capital letters."""
    return _METHOD.fullmatch(method) is not None
