"""Values that a text mentions, with their places: own grammars for numbers and times, patterns for everything else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from bespeak.text.language.sentence import LatePattern
from bespeak.text.values.numbers import ORDINALS, STARTS, Reading, Tokens, read_amount
from bespeak.text.values.times import TIME_STARTS, Times

Kind = Literal[
    "date", "time", "datetime", "range", "duration", "number", "money", "percent", "quantity", "email", "url", "phone",
    "version", "path", "identifier", "quoted",
]  # fmt: skip
LONGEST: Final = 4_000  # characters that are read
_HIDING: Final = frozenset(("quoted", "url", "email", "path"))  # kinds whose content is opaque
_DOMAINS: Final = "com|net|org|io|dev|app|ai|co|edu|gov|info|eu|de|fr|uk|es|it|nl|ch|at|example"
_FILES: Final = (
    "pdf|csv|tsv|json|ya?ml|toml|xml|html?|md|txt|log|docx?|xlsx?|pptx?|odt|png|jpe?g|gif|svg|webp|mp[34]|wav|mov|zip|tar|"
    "gz|tgz|py|js|ts|java|go|rs|c|h|cpp|sh|sql|parquet|ipynb|agis|conf|cfg|ini|env"
)
_PATTERNS: Final = tuple(
    (kind, needle, LatePattern(pattern), certainty)
    for kind, needle, pattern, certainty in (
        ("quoted", '"', r'"(?P<v>[^"\n]{1,500})"', 1.0),
        ("quoted", "“", r"“(?P<v>[^“”\n]{1,500})”", 1.0),
        ("quoted", "„", r"„(?P<v>[^„“”\n]{1,500})[“”]", 1.0),
        ("quoted", "«", r"«(?P<v>[^«»\n]{1,500})»", 1.0),
        ("quoted", "`", r"`(?P<v>[^`\n]{1,500})`", 1.0),
        ("quoted", "'", r"(?<![^\s(\[{,:=])'(?P<v>[^'\n]{1,500})'(?!\w)", 0.9),
        ("quoted", "‘", r"‘(?P<v>[^‘’\n]{1,500})’(?!\w)", 0.9),
        ("url", "://", r"(?<!\w)[a-zA-Z][a-zA-Z0-9+.-]{0,20}://[^\s<>\"'`{}]{0,2000}[^\s<>\"'`{}.,;:!?)\]]", 1.0),
        ("url", "www.", r"(?<![\w.])www\.[^\s<>\"'`{}]{0,2000}[^\s<>\"'`{}.,;:!?)\]]", 0.95),
        ("email", "@", r"(?<![\w.+-])[\w+-][\w.+-]{0,63}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}", 1.0),
        ("url", ".", rf"(?<![\w.@/-])(?:[a-z0-9-]{{1,63}}\.){{1,4}}(?:{_DOMAINS})(?:/[^\s<>\"'`]{{0,500}}[\w/])?(?![\w.-]*\w)", 0.8),
        ("path", "/", r"(?<![\w/.~<])(?:~|\.{1,2})?/(?:[\w.@+-]{1,255}/)*[\w@+-][\w.@+-]{0,250}(?<![.])/?", 0.9),
        ("path", "\\", r"(?<!\w)[A-Za-z]:\\[^\s\"'<>|*?]{1,500}", 1.0),
        ("path", ".", rf"(?<![\w./\\@-])(?:[\w-][\w.-]{{0,100}}/){{0,20}}[\w-][\w-]{{0,100}}(?:\.[\w-]{{1,40}}){{0,4}}\.(?:{_FILES})(?![\w/-])", 0.9),
        ("identifier", "-", r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b", 1.0),
        ("identifier", "#", r"(?<![\w#&])#(?P<v>[A-Za-z]{0,8}-?\d{1,12})(?![\w-])", 0.95),
        ("version", "", r"(?<![\w.])v(?P<v>\d{1,6}(?:\.\d{1,6}){0,3}(?:-[0-9A-Za-z.]{1,30})?(?<!\.))(?![\w-])", 0.95),
        ("version", ".", r"(?<![\w.,-])\d{1,6}(?:\.\d{1,6}){2,3}(?:-[A-Za-z][0-9A-Za-z.]{0,30}(?<!\.))?(?![\w,-]|\.\d)", 0.7),
        ("phone", "+", r"(?<![\w+])\+[1-9]\d{0,3}(?:[ ().-]{1,2}\d{1,8}){1,6}(?!\w)|(?<![\w+])\+[1-9]\d{7,14}(?!\w)", 0.95),
        ("phone", "", r"(?<![\w.,+/-])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?![\w-])", 0.9),
        ("phone", "0", r"(?<![\w.,+:/-])(?:\(0\d{1,5}\)|0\d{2,5})[ /-]\d{3,8}(?:[ -]\d{2,6}){0,3}(?![\w:/-])", 0.7),
        ("identifier", "", r"(?<![\w.@#/])[A-Za-z0-9]{1,40}(?:[-_][A-Za-z0-9]{1,40}){0,8}(?![\w@/-])", 0.7),
    )
)  # fmt: skip
_NAMING: Final = frozenset(
    "order orders invoice ticket booking reservation case issue number no nr ref reference code id account customer flight "
    "room gate seat table confirmation tracking pr build task job request contract user device sensor bus train line "
    "platform item product sku part version track claim policy document record".split()
)  # nouns before a number that names one thing
_ACTIONS: Final = frozenset(
    ("order", "ticket", "request", "book", "part", "track", "claim", "document", "record", "issue")
)
_OWNING: Final = frozenset(
    "the my our your his her their this that of for on from to in at an a cancel delete track close".split()
)
_EDGES: Final = {
    word: edge
    for edge, words in (
        ("from", "from over above after since starting beginning exceeding minimum min >"),
        ("to", "under below until till by before within max maximum < through"),
    )
    for word in words.split()
}
_PHRASES: Final = {
    "more than": "from", "greater than": "from", "at least": "from", "later than": "from", "longer than": "from",
    "less than": "to", "fewer than": "to", "at most": "to", "up to": "to", "earlier than": "to", "cheaper than": "to",
    "shorter than": "to", "maximum of": "to", "minimum of": "from", "> =": "from", "< =": "to",
}  # fmt: skip
_BEHIND: Final = {
    "or more": "from", "or above": "from", "or later": "from", "and up": "from", "or over": "from", "or less": "to",
    "or fewer": "to", "or below": "to", "or earlier": "to", "or under": "to", "at most": "to", "at least": "from",
}  # fmt: skip
_OPPOSITE: Final = {"from": "to", "to": "from"}
_COUNTED: Final = frozenset(("number", "money", "percent", "quantity", "duration"))


@dataclass(frozen=True, slots=True)
class Mention:
    """A value and its place: `text[start:end]`.

    - `value`: date, time, aware datetime, timedelta, int or float, Decimal for money, str; a pair for a range.
    - `certainty`: from 0 to 1; less if the words have several meanings.
    - `unit`: an ISO 4217 code, a unit, `%`, `ordinal`; the unit in which a duration is said; the part of the day of a
      date (`morning`); the period of a range (`week`).
    - `edge`: `from` or `to` if only one end of a range is named: at least 3, until Friday. The ends of a range that
      names both are mentions of their own, inside of it.
    """

    kind: Kind
    value: Any
    start: int
    end: int
    certainty: float = 1.0
    unit: str = ""
    edge: Literal["from", "to", ""] = ""


def find_mentions(text: str, *, now: datetime, order: Literal["DMY", "MDY"] | None = None) -> list[Mention]:
    """Find the values in the first 4,000 characters of a text, in its order. Of overlapping ones the longest is kept."""
    if now.tzinfo is None:
        raise ValueError("now must be an aware datetime; got one without a time zone. Pass datetime.now(UTC).")
    text = text[:LONGEST]
    literals = list(_find_literals(text))
    tokens = Tokens(text, ((one.start, one.end) for one in literals if one.kind in _HIDING))
    # The sort is stable: of equally long mentions the first one wins.
    groups = [[one] for one in _find_named(tokens)]
    groups += [_mentions_of(reading, tokens) for reading in _find_readings(tokens, Times(tokens, now, order))]
    groups += [[one] for one in literals]
    groups.sort(key=lambda group: group[0].start - group[0].end)
    taken, kept = bytearray(len(text)), []
    for group in groups:
        start, end = group[0].start, group[0].end
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            kept += group
    return sorted(kept, key=lambda one: (one.start, -one.end))


def _find_literals(text: str) -> Iterator[Mention]:
    for kind, needle, pattern, certainty in _PATTERNS:
        if needle and needle not in text:
            continue
        for found in pattern.compiled.finditer(text):
            value: str = found["v"] if "v" in pattern.compiled.groupindex else found[0]
            if kind == "identifier" and not needle and not _is_code(value):
                continue
            if kind == "phone":
                value = ("+" if value.startswith("+") else "") + "".join(filter(str.isdecimal, value))
                if not 7 <= len(value) <= 16:
                    continue
            yield Mention(kind, value, found.start(), found.end(), certainty)


def _is_code(word: str) -> bool:
    """Return True for AB-123, abc123 and order_17; not for words, numbers, mid-2026 and 3-night."""
    if word.isalpha() or word.isdecimal() or not any(map(str.isdecimal, word)) or not any(map(str.isalpha, word)):
        return False
    return "_" in word or word.upper() == word or not all(map(_is_plain, word.split("-")))


def _is_plain(piece: str) -> bool:
    return piece.isalpha() or piece.isdecimal()


def _find_readings(tokens: Tokens, times: Times) -> Iterator[Reading]:
    at = 0
    while at < tokens.count:
        word = tokens.words[at]
        reading = None
        if word[0].isdecimal() or word in STARTS or word in TIME_STARTS:
            try:
                reading = _read(tokens, times, at)
            except (ValueError, OverflowError, ArithmeticError):
                reading = None  # no such date, or one outside of the calendar
        if reading is None:
            at += 1
        else:
            yield reading
            at = max(reading.end, at + 1)


def _read(tokens: Tokens, times: Times, at: int) -> Reading | None:
    """Read the longest value at a word; of equally long ones, a time."""
    moment, amount = times.read(at), read_amount(tokens, at)
    if amount is not None and amount.kind == "duration":
        moment = times.moved_by(amount) or moment
    found = amount if moment is None or (amount is not None and amount.end > moment.end) else moment
    if found is None:
        return None
    if found.ends is None and found.kind != "range":
        both = times.read_range(found)
        if both is not None:
            found = times.with_day(both) if both.ends and both.ends[0].kind == "time" else both
    return times.finish(found)


def _mentions_of(reading: Reading, tokens: Tokens) -> list[Mention]:
    """Return the mention of a reading, and those of its ends."""
    edge = "" if reading.kind == "range" or reading.unit == "ordinal" else _edge(reading, tokens.words)
    found = [_mention(reading, tokens, edge)]
    if reading.ends is not None:
        found += [_mention(one, tokens, edge) for one, edge in zip(reading.ends, ("from", "to"), strict=True)]
    return found


def _mention(reading: Reading, tokens: Tokens, edge: Any) -> Mention:
    start, end = tokens.starts[reading.start], tokens.ends[reading.end - 1]
    return Mention(reading.kind, reading.value, start, end, round(reading.certainty, 4), reading.unit, edge)  # type: ignore[arg-type]


def _edge(reading: Reading, words: list[str]) -> str:
    at = reading.start
    while at and words[at - 1] in ("the", "about", "around", "than,"):
        at -= 1
    before = " ".join(words[max(at - 2, 0) : at])
    edge = _PHRASES.get(before) or _EDGES.get(words[at - 1] if at else "", "")
    if edge and at > 1 and reading.kind in _COUNTED and words[max(at - 3, 0)] in ("no", "not") and " than" in before:
        edge = _OPPOSITE[edge]
    if (
        words[at - 1 if at else -1] in ("from", "by", "before", "after", "since", "through")
        and reading.kind in _COUNTED
    ):
        edge = ""  # from 3 shops, by 5 people
    return edge or _BEHIND.get(" ".join(words[reading.end : reading.end + 2]), "")


def _find_named(tokens: Tokens) -> Iterator[Mention]:
    """Find numbers that name something: order 4711, room no. 12. Order 5 pizzas counts."""
    words = tokens.words
    for at in range(tokens.count):
        if words[at] not in _NAMING:
            continue
        place = at + 1
        while place - at < 4 and words[place] in ("number", "no", "nr", "id", "code", "#", ".", ":", "is"):
            place += 1
        word = words[place]
        if not word.isdecimal() or len(word) > 24 or tokens.joins(place + 1):
            continue
        behind, told = words[place + 1], place > at + 1
        is_counted = behind.isalpha() and behind not in _STOPS
        if not told and is_counted and not (len(word) > 2 and at and words[at - 1] in _OWNING):
            continue
        certainty = 0.95 if told else 0.85 if len(word) > 2 or words[at] not in _ACTIONS else 0.6
        yield Mention("identifier", word, tokens.starts[place], tokens.ends[place], certainty)


_STOPS: Final = frozenset(
    "to for from with and or on in at by of is as the please but so then until before after now today tomorrow".split()
)
