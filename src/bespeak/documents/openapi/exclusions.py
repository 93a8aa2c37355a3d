"""Optional fields that exclude each other by their descriptions, which a schema rarely says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

_CHOOSING: Final = re.compile(r"\b(?:only|exactly|at most) one of\b|\beither\b[^.]{1,120}\bor\b", re.IGNORECASE)
"""Words before the fields of which one may be sent."""
_EXCLUDING: Final = re.compile(
    rf"{_CHOOSING.pattern}|mutually exclusive|\bnot both\b|\b(?:conflicts?|incompatible) with\b"
    r"|\bnot (?:compatible|allowed|supported|valid) (?:together )?with\b"
    r"|(?:can ?not|can't|must not|may not|should not|shouldn't|not be|never|do not|don't)\b[^.]{0,40}"
    r"\b(?:together|combin\w+|along(?:side)?|both|conjunction|in addition|(?:used?|set|given|specified|sent) with)\b",
    re.IGNORECASE,
)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_NAME: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.-]*[A-Za-z0-9_$]|[A-Za-z]")
_MARKED: Final = re.compile(r"[`'\"*]")
_LONGEST: Final = 4_000
"""Maximum characters of a description that are searched."""
_MOST: Final = 10
"""Maximum pairs of one sentence."""


def exclusions(fields: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield pairs of fields whose descriptions say that only one of them may be sent, with the sentence."""
    seen: set[frozenset[str]] = set()
    for own, description in fields.items():
        if _EXCLUDING.search(description, 0, _LONGEST) is None:
            continue
        for sentence in _SENTENCE.split(description[:_LONGEST]):
            if _EXCLUDING.search(sentence) is None:
                continue
            named = dict.fromkeys(_named(sentence, fields))
            if not named:
                continue
            if _CHOOSING.search(sentence) is None or len(named) == 1:
                pairs = [(own, other) for other in named if other != own]
            else:
                pairs = list(combinations(named, 2))
            for pair in pairs[:_MOST]:
                if frozenset(pair) not in seen:
                    seen.add(frozenset(pair))
                    yield *pair, " ".join(sentence.split())[:160]


def _named(sentence: str, fields: Mapping[str, str]) -> Iterator[str]:
    """Yield the fields that a sentence names. A name that is also a plain word counts only if it is marked."""
    for found in _NAME.finditer(sentence):
        name = found.group()
        if name in fields:
            around = sentence[max(0, found.start() - 1) : found.end() + 1]
            is_word = name.isalpha() and name.islower()
            if not is_word or _MARKED.search(around):
                yield name
