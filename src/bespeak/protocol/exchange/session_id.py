"""Session-IDs: what may stand in one, and how hard it looks to guess.

Core 8 asks for 128 random bits. Chance cannot be seen in a single text, so this is an estimate from above: what it
finds too weak is weak, and what it lets pass may still be the work of a poor generator.
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
# A word in front is passed over, unless it may be part of the number.
_HEX = re.compile(r"(?:[A-Za-z]{1,16}[._:-])??([0-9a-f-]+|[0-9A-F-]+)")
_OF_TIME: Final = frozenset("1267")
"""Versions of UUIDs that are mostly clock and counter; the others have 122 bits and count as 128."""

_HEX_BITS: Final = 4.0
_DIGIT_BITS: Final = log2(10)
_OTHER_BITS: Final = 6.0
"""Any other alphabet counts as that of base64: a random text of one need not show all of it."""
_SPREAD: Final = 2.0
"""A random text of this length shows far more than half of its entropy in how often each character occurs."""


def is_session_id(text: str) -> bool:
    """Whether a text can be a Session-ID at all."""
    return _SESSION_ID.fullmatch(text) is not None


def estimated_bits(session_id: str) -> float:
    """How many bits somebody has to guess, at most."""
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
    """The length of what a text repeats; its own if it repeats nothing."""
    return (text + text).find(text, 1)


def _entropy(items: Sequence[Hashable]) -> float:
    """Bits for each item, by how often each occurs."""
    count = len(items)
    return sum(-n / count * log2(n / count) for n in Counter(items).values())
