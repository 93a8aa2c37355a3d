"""Session-IDs: their syntax, and an estimate of how hard they are to guess.

Core 8 requires 128 random bits. Randomness is not visible in a single text, so this is an upper estimate: an id found
too weak is weak, and one that passes may still come from a poor generator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from math import log2
from typing import Final

WANTED_BITS: Final = 128

_SESSION_ID = re.compile(r"[A-Za-z0-9._~:@+/=-]{1,256}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
# A leading word is skipped, unless it may be part of the number.
_HEX = re.compile(r"(?:[A-Za-z]{1,16}[._:-])??([0-9a-f-]+|[0-9A-F-]+)")
_OF_TIME: Final = frozenset("1267")
"""UUID versions made mostly of clock and counter; the others have 122 bits and count as 128."""

_HEX_BITS: Final = 4.0
_DIGIT_BITS: Final = log2(10)
_OTHER_BITS: Final = 6.0
"""Bits per character of any other alphabet, counted as base64: a random text need not show all of it."""
_SPREAD: Final = 2.0
"""Minimum share of entropy that a random text of this length shows in its character frequencies."""


def is_session_id(text: str) -> bool:
    """Return True if a text is a valid Session-ID."""
    return _SESSION_ID.fullmatch(text) is not None


def estimated_bits(session_id: str) -> float:
    """Estimate the bits that an attacker has to guess, at most."""
    hexadecimal = _HEX.fullmatch(session_id)
    uuid = _UUID.fullmatch(hexadecimal[1]) if hexadecimal else None
    if uuid is not None and uuid[1] in _OF_TIME:
        return 0.0
    text = hexadecimal[1].replace("-", "") if hexadecimal else session_id
    if not text:
        return 0.0
    length = _period(text)
    each = _OTHER_BITS if hexadecimal is None else _DIGIT_BITS if text.isdigit() else _HEX_BITS
    steps = [ord(after) - ord(before) for before, after in pairwise(text)]
    return length * min(each, _SPREAD * _entropy(text), _SPREAD * _entropy(steps))


def _period(text: str) -> int:
    """Return the length of the repeated part of a text; its own length if it repeats nothing."""
    return (text + text).find(text, 1)


def _entropy(items: Sequence[Hashable]) -> float:
    """Return the bits per item by frequency."""
    count = len(items)
    return sum(-n / count * log2(n / count) for n in Counter(items).values())
