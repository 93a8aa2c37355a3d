"""Values that a text mentions, with their places: own grammars for numbers and times, patterns for everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final, Literal, cast

from bespeak.text.language.sentence import LatePattern, listed, names, word_set
from bespeak.text.values import written_dates
from bespeak.text.values.numbers import STARTS as NUMBERS
from bespeak.text.values.numbers import Reading, Tokens, read_amount
from bespeak.text.values.times import STARTS as TIMES
from bespeak.text.values.times import Times

Kind = Literal[
    "date", "time", "datetime", "range", "duration", "number", "money", "percent", "quantity", "email", "url", "phone",
    "version", "path", "identifier", "quoted",
]  # fmt: skip
Edge = Literal["from", "to", ""]
LONGEST: Final = 4_000  # characters that are read
_HIDING: Final = frozenset(("quoted", "url", "email", "path"))  # kinds whose content is opaque
_DOMAIN: Final = (
    r"(?:[a-z0-9-]{1,63}\.){1,4}(?:com|net|org|io|dev|app|ai|co|edu|gov|info|eu|de|fr|uk|es|it|nl|ch|at|example)"
)
_FILE: Final = (
    r"(?:\.[\w-]{1,40}){0,4}\.(?:pdf|csv|tsv|json|ya?ml|toml|xml|html?|md|txt|log|docx?|xlsx?|pptx?|odt|png|jpe?g|gif|svg|"
    r"webp|mp[34]|wav|mov|zip|tar|gz|tgz|py|js|ts|java|go|rs|c|h|cpp|sh|sql|parquet|ipynb|agis|conf|cfg|ini|env)"
)
_SUFFIX: Final = r"[0-9A-Za-z.]{0,30}(?<!\.)"
_URL: Final = r"[^\s<>\"'`{}]{0,2000}[^\s<>\"'`{}.,;:!?)\]]"
_ROWS: Final[tuple[tuple[Kind, str, float, str], ...]] = (  # what a text must contain, and the certainty of a match
    ("quoted", '"', 1.0, r'"(?P<v>[^"\n]{1,500})"'),
    ("quoted", "“", 1.0, r"“(?P<v>[^“”\n]{1,500})”"),
    ("quoted", "„", 1.0, r"„(?P<v>[^„“”\n]{1,500})[“”]"),
    ("quoted", "«", 1.0, r"«(?P<v>[^«»\n]{1,500})»"),
    ("quoted", "`", 1.0, r"`(?P<v>[^`\n]{1,500})`"),
    ("quoted", "'", 0.9, r"(?<![^\s(\[{,:=])'(?P<v>[^'\n]{1,500})'(?!\w)"),
    ("quoted", "‘", 0.9, r"‘(?P<v>[^‘’\n]{1,500})’(?!\w)"),
    ("url", "://", 1.0, rf"(?<!\w)[a-zA-Z][a-zA-Z0-9+.-]{{0,20}}://{_URL}"),
    ("url", "www.", 0.95, rf"(?<![\w.])www\.{_URL}"),
    ("email", "@", 1.0, r"(?<![\w.+-])[\w+-][\w.+-]{0,63}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"),
    ("url", ".", 0.8, rf"(?<![\w.@/-]){_DOMAIN}(?:/[^\s<>\"'`]{{0,500}}[\w/])?(?![\w.-]*\w)"),
    ("path", "/", 0.9, r"(?<![\w/.~<])(?:~|\.{1,2})?/(?:[\w.@+-]{1,255}/)*[\w@+-][\w.@+-]{0,250}(?<!\.)/?"),
    ("path", "\\", 1.0, r"(?<!\w)[A-Za-z]:\\[^\s\"'<>|*?]{1,500}"),
    ("path", ".", 0.9, rf"(?<![\w./\\@-])(?:[\w-][\w.-]{{0,100}}/){{0,20}}[\w-][\w-]{{0,100}}{_FILE}(?![\w/-])"),
    ("identifier", "-", 1.0, r"\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b"),
    ("identifier", "#", 0.95, r"(?<![\w#&])#(?P<v>[A-Za-z]{0,8}-?\d{1,12})(?![\w-])"),
    ("version", "v", 0.95, r"(?<![\w.])v(?P<v>\d{1,6}(?:\.\d{1,6}){0,3}(?:-[0-9A-Za-z.]{1,30})?(?<!\.))(?![\w-])"),
    ("version", ".", 0.7, rf"(?<![\w.,-])\d{{1,6}}(?:\.\d{{1,6}}){{2,3}}(?:-[A-Za-z]{_SUFFIX})?(?![\w,-]|\.\d)"),
    ("phone", "+", 0.95, r"(?<![\w+])\+[1-9](?:\d{0,3}(?:[ ().-]{1,2}\d{1,8}){1,6}|\d{7,14})(?!\w)"),
    ("phone", "", 0.9, r"(?<![\w.,+/-])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?![\w-])"),
    ("phone", "0", 0.7, r"(?<![\w.,+:/-])(?:\(0\d{1,5}\)|0\d{2,5})[ /-]\d{3,8}(?:[ -]\d{2,6}){0,3}(?![\w:/-])"),
    ("identifier", "", 0.7, r"(?<![\w.@#/])[A-Za-z0-9]{1,40}(?:[-_][A-Za-z0-9]{1,40}){0,8}(?![\w@/-])"),
)
_PATTERNS: Final = tuple((kind, needle, certainty, LatePattern(pattern)) for kind, needle, certainty, pattern in _ROWS)
_WRITTEN: Final = LatePattern(r"(?<![\w.])\d{1,2}\.?(?: de)? [^\W\d_]{3,12}\.?(?: de)? [12]\d{3}(?!\w)")
_LANGUAGES: Final = ("de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da", "cs", "fi", "tr", "ru")
_NAMING: Final = listed("naming-nouns")  # nouns before a number that names one thing
_VERBS: Final = listed("naming-verbs")  # those of them that are also verbs
_OWNING: Final = listed("owning")
_CLOSING: Final = listed("behind-numbers")
_EDGES: Final = names("edges")
_PHRASES: Final = names("edge-phrases")
_OF_MOMENTS: Final = word_set("from by before after since through thru")  # from 3 shops, by 5 people


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
    edge: Edge = ""


def find_mentions(text: str, *, now: datetime, order: Literal["DMY", "MDY"] | None = None) -> list[Mention]:
    """Find the values in the first 4,000 characters of a text, in order; the longest of overlapping ones is kept."""
    if now.tzinfo is None:
        raise ValueError("now must be an aware datetime; got one without a time zone. Pass datetime.now(UTC).")
    text = text[:LONGEST]
    literals = list(_find_literals(text))
    tokens = Tokens(text, ((one.start, one.end) for one in literals if one.kind in _HIDING))
    # The sort is stable: of equally long mentions the first one wins.
    groups = [[one] for one in _find_named(tokens)]
    groups += [_mentions_of(reading, tokens) for reading in _find_readings(tokens, Times(tokens, now, order))]
    groups += [[one] for one in literals]
    if not any(group[0].kind in ("date", "datetime") for group in groups):
        groups[:0] = [[one] for one in _find_written(text, order or "DMY")]
    groups.sort(key=lambda group: group[0].start - group[0].end)
    taken, kept = bytearray(len(text)), []
    for group in groups:
        start, end = group[0].start, group[0].end
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            kept += group
    return sorted(kept, key=lambda one: (one.start, -one.end))


def _find_literals(text: str) -> Iterator[Mention]:
    for kind, needle, certainty, pattern in _PATTERNS:
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


def _find_written(text: str, order: str) -> Iterator[Mention]:
    """Find dates in other languages, with a year: 3. Mai 2027, 3 de mayo de 2027."""
    for found in islice(_WRITTEN.compiled.finditer(text), 3 if written_dates.is_available() else 0):
        read = written_dates.parse_date(found[0], _LANGUAGES, order)
        if read is not None:
            yield Mention("date", read[0].date(), found.start(), found.end(), 0.8)


def _find_readings(tokens: Tokens, times: Times) -> Iterator[Reading]:
    at = 0
    while at < tokens.count:
        word, reading = tokens.words[at], None
        is_part = word.isdecimal() and tokens.joins(at) and tokens.words[at - 1].isalpha()  # m2
        if not is_part and (word[0].isdecimal() or word in NUMBERS or word in TIMES):
            try:
                reading = _read(tokens, times, at)
            except (ValueError, OverflowError, ArithmeticError):
                while tokens.joins(at + 1):  # 2026-02-30 is not a date, and 30 is not a number
                    at += 1
        if reading is not None:
            yield reading
        at = reading.end if reading is not None else at + 1


def _read(tokens: Tokens, times: Times, at: int) -> Reading | None:
    """Read the longest value at a word; of equally long ones, a time."""
    moment, amount = times.read(at), read_amount(tokens, at)
    if amount is not None and amount.kind == "duration":
        moment = times.read_moved(amount) or moment
    found = amount if moment is None or (amount is not None and amount.end > moment.end) else moment
    if found is None or found.kind == "range":
        return found
    both = times.read_range(found) or (times.read_hours(found) if found.kind == "date" else None)
    return times.finish(both or found)


def _mentions_of(reading: Reading, tokens: Tokens) -> list[Mention]:
    """Return the mention of a reading, and those of its ends."""
    if reading.ends is not None:
        first, last = reading.ends
        return [_mention(reading, tokens), _mention(first, tokens, "from"), _mention(last, tokens, "to")]
    has_edge = reading.kind != "range" and reading.unit != "ordinal"
    return [_mention(reading, tokens, _edge(reading, tokens.words) if has_edge else "")]


def _mention(reading: Reading, tokens: Tokens, edge: str = "") -> Mention:
    start, end = tokens.starts[reading.start], tokens.ends[reading.end - 1]
    certainty = round(reading.certainty, 4)
    return Mention(cast("Kind", reading.kind), reading.value, start, end, certainty, reading.unit, cast("Edge", edge))


def _edge(reading: Reading, words: list[str]) -> str:
    at = reading.start
    while at and words[at - 1] in ("the", "about", "around"):
        at -= 1
    before = words[at - 1] if at else ""
    edge = _PHRASES.get("-".join(words[max(at - 2, 0) : at]), "")
    if edge and before == "than" and words[max(at - 3, 0)] in ("no", "not"):
        return "to" if edge == "from" else "from"
    is_moment = reading.kind in ("date", "time", "datetime")
    edge = edge or (_EDGES.get(before, "") if is_moment or before not in _OF_MOMENTS else "")
    behind = words[reading.end : reading.end + 2]
    return edge or ("from" if behind[0] == "+" else _PHRASES.get("-".join(behind), ""))


def _find_named(tokens: Tokens) -> Iterator[Mention]:
    """Find numbers that name something: order 4711, room no. 12; but in `order 5 pizzas` it counts."""
    words = tokens.words
    for at in range(tokens.count):
        if words[at] not in _NAMING:
            continue
        place = at + 1
        while place < at + 4 and words[place] in ("number", "no", "nr", "id", "code", "#", ".", ":"):
            place += 1
        word, is_told = words[place], place > at + 1
        if not word.isdecimal() or len(word) > 24 or (tokens.joins(place + 1) and words[place + 1] not in ".,;:?!)"):
            continue
        is_owned = len(word) > 2 and at > 0 and words[at - 1] in _OWNING
        if words[place + 1].isalpha() and words[place + 1] not in _CLOSING and not is_told and not is_owned:
            continue
        certainty = 0.95 if is_told else 0.85 if len(word) > 2 or words[at] not in _VERBS else 0.6
        yield Mention("identifier", word, tokens.starts[place], tokens.ends[place], certainty)
