"""The lexical rule of method names (AGTP-API 3.2)."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

# AGTP-API 3.2: uppercase ASCII single tokens matching ^[A-Z]+$, length 3 to 32 characters inclusive.
_METHOD = re.compile(r"[A-Z]{3,32}")


def is_method_name(method: str) -> bool:
    """Whether the text could be a method: 3 to 32 capital letters."""
    return _METHOD.fullmatch(method) is not None


def near_verbs(method: str, verbs: Collection[str]) -> list[str]:
    """Up to three verbs somebody may have meant. A text far too long to be a typing slip has none."""
    wanted = method.upper()
    if len(wanted) > 40:
        return []
    return get_close_matches(wanted, sorted(verbs), n=3, cutoff=0.75)
