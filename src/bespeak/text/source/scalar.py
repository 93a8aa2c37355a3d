"""Unquoted values with the types of the YAML 1.2 core schema, restricted to JSON."""

from __future__ import annotations

import math
import re
from typing import Any, Final

WORDS: Final[dict[str, Any]] = {"": None, "~": None, "null": None, "true": True, "false": False}
NUMERIC: Final = frozenset("0123456789+-.")
"""First characters of numbers."""

MAX_DIGITS: Final = 4000
"""Limit of digits: int() raises for somewhat more."""

_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class TooLarge(ValueError):
    """A number that JSON parsers do not treat alike."""


def plain_value(text: str) -> Any:
    """Parse a plain scalar. `yes`, `on`, `True`, `1_000`, `12:30` and `2026-01-01` are text."""
    if not text or text[0] not in NUMERIC:
        return WORDS.get(text, text)
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise TooLarge(f"a number has more than {MAX_DIGITS} digits")
        return int(text, 0) if text[1:2] in {"o", "x"} else int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise TooLarge(f"the number {text:.40} is too large")
        return number
    return text
