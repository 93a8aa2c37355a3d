"""The words of a sentence with their places, and whether it is English."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


def word_set(text: str) -> frozenset[str]:
    """Split a text into a set of words."""
    return frozenset(text.split())


LONGEST: Final = 600
"""Limit of characters that are read; the deciding verb is near the beginning."""

_LONGEST_TAG: Final = 80
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[.,;:!?()/|–—-]")
_LABEL: Final = re.compile(r"(?i)\W{0,3}(?:note|warning|important|deprecated|caution|beta|preview)\b\W{0,3}[:–—-]")
_SENTENCE_END: Final = frozenset(".!?;")

_ENGLISH: Final = word_set(
    "the a an of to for in by with from on and or is are be that this which all its it as at into your their "
    "new given one if any not per using whether you"
)
_FOREIGN: Final = word_set(
    "el la los las una uno unos unas del para por con que se su sus y en al lo un es os as um uma dos das "
    "der die das und ein eine einen einem einer des dem den für mit auf ist von zum zur nicht werden wird "
    "le les une du au aux et ou avec dans pour sur qui ce cette il gli della di che nel alla degli "
    "een het van voor met naar og och att det som för på til och av i na w z dla się nie lub oraz"
)


class Word(NamedTuple):
    """One word or mark: in lower case, as written, and its place."""

    lower: str
    text: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """Return the words of the first sentence that has at least two."""
    found: list[Word] = []
    for match in _TOKEN.finditer(text[:LONGEST], _behind_tag(text)):
        token = match.group()
        if token in _SENTENCE_END:
            after = text[match.end() : match.end() + 1]
            if len(found) > 1 and (not after or after.isspace()):
                break
            continue
        found.append(Word(token.lower().replace("’", "'"), token, match.start(), match.end()))
    return found


def _behind_tag(text: str) -> int:
    """Skip a leading tag such as "[BETA]" or "NOTE:"."""
    if text.startswith("["):
        return text.find("]", 0, _LONGEST_TAG) + 1
    label = _LABEL.match(text)
    return label.end() if label else 0


def is_english(sentence: list[Word]) -> bool:
    """Return True if the words can be English: Latin letters, and no function words of another language."""
    letters = [word.lower for word in sentence if word.text[0].isalpha()]
    if not letters or sum(not word.isascii() for word in letters) * 5 > len(letters):
        return False
    little = set(letters)
    return bool(little & _ENGLISH) or not little & _FOREIGN
