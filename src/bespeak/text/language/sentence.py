"""Sentences: their words with places, whether they are English, and whether a text has several."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from typing import Final, NamedTuple

from bespeak.text.identifiers import apart


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def word_pairs(text: str) -> dict[str, str]:
    """Return a table that is written `word=meaning word=meaning`."""
    return dict(pair.split("=") for pair in text.split())


def word_lists(text: str) -> dict[str, tuple[str, ...]]:
    """Return a table that is written `word=one,other word=one`."""
    return {word: tuple(values.split(",")) for word, values in word_pairs(text).items()}


@cache
def _sections() -> dict[str, str]:
    data = pkgutil.get_data("bespeak.text.language", "data/words.txt")
    assert data is not None
    sections = (section.partition("]\n") for section in data.decode().split("\n[")[1:])
    return {name: text for name, _, text in sections}


@lru_cache(maxsize=64)
def listed(name: str) -> frozenset[str]:
    """Return the words of a section of words.txt."""
    return word_set(_sections()[name])


def lines(name: str) -> tuple[str, ...]:
    """Return the lines of a section of words.txt, whose words belong together; blanks at their beginning count."""
    return tuple(filter(None, _sections()[name].splitlines()))


def groups(name: str) -> list[frozenset[str]]:
    """Return the lines of a section of words.txt, each a set of words."""
    return [word_set(line) for line in _sections()[name].splitlines()]


@lru_cache(maxsize=64)
def names(section: str) -> dict[str, str]:
    """Return the words of a section of words.txt with rows such as `km: kilometer kilometers`, each with its row."""
    rows = (line.partition(": ") for line in _sections()[section].splitlines() if line)
    return {word: name for name, _, row in rows for word in row.split()}


def table(name: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return a section of words.txt with rows such as `hold: until=wait for=reserve,keep`."""
    rows = (line.partition(": ") for line in _sections()[name].splitlines() if line)
    return {word: word_lists(row) for word, _, row in rows}


LONGEST: Final = 600  # limit of characters that are read; the deciding verb is near the beginning
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[.,;:!?()/|–—-]")
_LETTERS: Final = re.compile(r"[^\W_]+")
_LABEL: Final = re.compile(
    r"\W{0,3}(?:\[[^\]]{0,80}\](?:\([^()\s]{0,200}\))?:?|(?i:note|warning|important|deprecated|caution|beta|preview)\b\W{0,3}[:!–—-])"
)  # a tag such as "[BETA]", also as a link, or a label such as "NOTE:"
_SENTENCE_END: Final = frozenset(".!?;")
_ENGLISH: Final = listed("english")
_FOREIGN: Final = listed("foreign")


class Word(NamedTuple):
    """One word or mark: in lower case, as written, and its place."""

    lower: str
    text: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """Return the words of the first sentence that has at least two, or those of a lone name: `getUserById`."""
    found: list[Word] = []
    if len(text[:LONGEST].split(None, 1)) == 1 and len(pieces := list(_words_of_name(text[:LONGEST]))) > 1:
        return pieces
    for match in _TOKEN.finditer(text[:LONGEST], label.end() if (label := _LABEL.match(text)) else 0):
        token = match.group()
        if token in _SENTENCE_END:
            after = text[match.end() : match.end() + 1]
            if len(found) > 1 and (not after or after.isspace()):
                break
            continue
        found.append(Word(token.lower().replace("’", "'"), token, match.start(), match.end()))
    return found


def _words_of_name(text: str) -> Iterator[Word]:
    for match in _LETTERS.finditer(text):
        start = match.start()
        for piece in apart(match.group()).split():
            yield Word(piece.lower(), piece, start, start + len(piece))
            start += len(piece)


def is_english(sentence: list[Word]) -> bool:
    """Return True if the words can be English: Latin letters, and no function words of another language."""
    letters = [word.lower for word in sentence if word.text[0].isalpha()]
    if not letters or sum(not word.isascii() for word in letters) * 5 > len(letters):
        return False
    little = set(letters)
    return bool(little & _ENGLISH) or not little & _FOREIGN


_STOPS: Final = frozenset(".!?。！？\n")
_WIDE: Final = "。！？"
_SEEN: Final = 4_000  # limit of characters that are read; another rule reports longer texts
_END: Final = re.compile(
    r"""(?P<stop>[.!?…]++)["'”’»)\]]*+\s++["'“‘«(\[]*+(?=(?P<next>\S))|\n[^\S\n]*+\n|\n[^\S\n]*+[-*•]\s|[。！？]"""
)
_LAST_WORD: Final = re.compile(r"[^\s\"'“‘«(\[]{1,24}$")
_NO_END: Final = listed("abbreviated")  # abbreviations written with a full stop


def is_several(text: str) -> bool:
    """Return True if a text certainly has more than one sentence."""
    seen = text.strip()[:_SEEN].rstrip(".!?…。！？ \n\"'”’)")
    return not _STOPS.isdisjoint(seen) and any(_ends(match, seen) for match in _END.finditer(seen))


def _ends(match: re.Match[str], text: str) -> bool:
    if (stop := match["stop"]) is None:
        return True
    first, before = match["next"], _LAST_WORD.search(text, max(0, match.start() - 24), match.start())
    if before is None or not (first.isalnum() or first in _WIDE):
        return False
    if stop != ".":
        return "!" in stop or "?" in stop or (first.isupper() and "…" not in stop and "..." not in stop)
    word = before[0]
    if len(word) == 1 or "." in word or word.lower() in _NO_END:
        return False  # an initial, U.S., e.g., v1.2, approx.
    if first.isupper():
        return True
    # A lower-case start is a sentence only after a plain word: authors forget capitals, and invent abbreviations.
    return len(word) > 3 and word.isalpha() and word.islower() and (first.islower() or first.isdigit())


class LatePattern:
    """A pattern that compiles itself at first use."""

    def __init__(self, text: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._text = text
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        return self.compiled.search(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self.compiled.fullmatch(text)
