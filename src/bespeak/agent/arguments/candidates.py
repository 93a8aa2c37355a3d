"""Candidates: the parts of an instruction that may be values, each with its place and its kind."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple

from bespeak.agent.arguments.slots import Slot, listed, related, root, stemmed
from bespeak.text.values.mentions import Mention, find_mentions

LONGEST: Final = 1_500  # limit of characters of an instruction that are read for names and phrases
MOST: Final = 90  # limit of candidates that are not of one slot
_MOST_MATCHES: Final = 60
_LONGEST_PHRASE: Final = 6
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[^\w\s]|_+")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MOMENTS: Final = frozenset({"date", "time", "datetime"})
_UNTIL: Final = frozenset({"to", "until", "till", "through"})
_SENTENCE_END: Final = frozenset(".!?;")
_INNER: Final = frozenset(["of", "the", "and", "&", "de", "la", "le", "del", "von", "van", "der", "al"])

_OTHERS: Final = frozenset(("date", "time", "datetime", "money", "email", "url", "duration", "quoted", "phone"))
"""Kinds of mentions that are not a part of a name or phrase."""


class Token(NamedTuple):
    """One word or mark of an instruction."""

    text: str
    lower: str
    stem: str
    start: int
    end: int
    is_word: bool


@dataclass(slots=True)
class Candidate:
    """A part of the instruction that may be a value."""

    kind: str  # a kind of mention; name, phrase, modifier, object, tail, task; choice, flag, hint
    value: Any
    start: int
    end: int
    first: int  # its tokens
    last: int
    certainty: float = 1.0
    unit: str = ""
    edge: str = ""
    slot: int = -1  # index of the only slot that it can fill
    match: str = ""  # how the words of a choice or flag were found
    also: tuple[int, int] = (0, 0)  # further tokens that it takes
    part: bool = False  # True for a part of a longer candidate of its kind


@dataclass(slots=True)
class Reading:
    """An instruction with its tokens and candidates."""

    text: str
    tokens: list[Token]
    candidates: list[Candidate] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)  # the kind of mention that covers a token, or ""
    names: frozenset[str] = frozenset()  # stems of the names of the slots


def read(instruction: str, slots: Sequence[Slot], own: frozenset[str], *, now: datetime, order: Any = None) -> Reading:
    """Return the candidates of an instruction. `own` are the stems that the endpoint uses for itself."""
    text = _SURROGATE.sub("\ufffd", instruction[:LONGEST])  # of the same length
    tokens = [
        Token(found[0], found[0].lower(), root(found[0]), found.start(), found.end(), found[0][0].isalnum())
        for found in _TOKEN.finditer(text)
    ]
    names = frozenset(word for slot in slots for word in slot.words if len(word) > 2)
    reading = Reading(text, tokens, [], [""] * len(tokens), names)
    mentions = find_mentions(text, now=now, order=order)[:MOST]
    for mention in mentions:
        _add_mention(reading, mention, mentions)
    wide = related(own)
    bound = _match_slots(reading, slots, own)
    for one in bound:
        if one.kind == "choice" and one.match in ("exact", "synonym"):
            for at in range(one.first, one.last):
                reading.taken[at] = reading.taken[at] or "choice"
    general = [*_names(reading), *_phrases(reading, wide), *_modifiers(reading, wide | names)]
    hollow = listed("empty") | listed("prepositions") | listed("stops") | listed("fillers")
    seen: set[tuple[int, int]] = set()
    for one in general:
        head, size = tokens[one.first], one.last - one.first
        empty = all(token.lower in hollow for token in tokens[one.first : one.last])
        if size == 1 and head.stem in names and not _is_capital(head):
            empty = True  # in "city to Rome", the name of a slot is not the value of another one
        if not empty and (one.first, one.last) not in seen and len(reading.candidates) < MOST:
            seen.add((one.first, one.last))
            reading.candidates.append(one)
    reading.candidates += bound
    _match_hints(reading, slots)
    return reading


def _add_mention(reading: Reading, mention: Mention, mentions: Sequence[Mention]) -> None:
    if mention.kind == "range":
        # Its ends are mentions of their own, unless they are not named: "this weekend".
        if any(one is not mention and mention.start <= one.start and one.end <= mention.end for one in mentions):
            return
        is_end = _word_at(reading, bisect_right(reading.tokens, mention.start, key=lambda one: one.end) - 1) in _UNTIL
        for edge, value in zip(("from", "to"), mention.value, strict=True):
            if isinstance(value, date) and (edge == "to" or not is_end):
                kind: Any = "datetime" if isinstance(value, datetime) else "date"
                _add_mention(reading, replace(mention, kind=kind, value=value, edge=edge), ())  # type: ignore[arg-type]
        return
    first = bisect_right(reading.tokens, mention.start, key=lambda token: token.end)
    last = bisect_left(reading.tokens, mention.end, key=lambda token: token.start)
    said = reading.text[mention.start : mention.end].lower()
    if mention.kind == "number" and said == "one" and _word_at(reading, last) in listed("behind-one"):
        return
    if mention.kind == "number" and _word_at(reading, first) in ("one-way", "one-time", "one-off"):
        return
    reading.taken[first:last] = [mention.kind] * (last - first)
    amount = (mention.certainty, mention.unit, mention.edge)
    reading.candidates.append(Candidate(mention.kind, mention.value, mention.start, mention.end, first, last, *amount))


def _word_at(reading: Reading, at: int) -> str:
    return reading.tokens[at].lower if at < len(reading.tokens) else ""


def _made(reading: Reading, kind: str, first: int, last: int, part: bool = False) -> Candidate:
    start, end = reading.tokens[first].start, reading.tokens[last - 1].end
    return Candidate(kind, reading.text[start:end], start, end, first, last, part=part)


def _is_capital(token: Token) -> bool:
    return token.is_word and token.text[0].isupper()


def _names(reading: Reading) -> Iterator[Candidate]:
    """Yield runs of capitalised words, whole and cut at "and", and listed places in any case."""
    tokens, index = reading.tokens, 0
    titled = sum(map(_is_capital, tokens)) > 0.7 * sum(token.is_word for token in tokens) and len(tokens) > 4
    while index < len(tokens) and not titled:
        if not _is_capital(tokens[index]) or reading.taken[index] in _OTHERS:
            index += 1
            continue
        last = _end_of_name(reading, index)
        first = _start_of_name(tokens, index, last)
        if first is not None:
            yield _made(reading, "name", first, last)
            if first and reading.taken[first - 1] == "number" and tokens[first - 1].text.isdecimal():
                yield _made(reading, "name", first - 1, last)  # 12 Baker Street
            cuts = [place for place in range(first + 1, last - 1) if tokens[place].lower in ("and", "&")]
            for begin, end in pairwise([first - 1, *cuts, last]) if cuts else ():
                yield _made(reading, "name", begin + 1, end, True)
        index = last
    yield from _listed_places(reading)


def _end_of_name(reading: Reading, first: int) -> int:
    """Return the end of a run of capitalised words; up to two small words may stand inside: Book of the Dead."""
    tokens, last = reading.tokens, first + 1
    while last < len(tokens) and last - first < 8:
        if tokens[last].text == "." and tokens[last - 1].lower in listed("honorifics", "names.txt"):
            last += 1  # Dr. Weber
            continue
        if reading.taken[last] in _OTHERS or tokens[last].lower in listed("pronouns"):
            break
        inner = next((at for at in range(last, min(last + 3, len(tokens))) if tokens[at].lower not in _INNER), last)
        if inner >= len(tokens) or not _is_capital(tokens[inner]):
            break
        last = inner + 1
    return last


def _start_of_name(tokens: list[Token], first: int, last: int) -> int | None:
    """Return the start of a name without the small words before it; None if it is a capital for another reason."""
    if last - first == 1 and _is_small(tokens[first]):
        return None
    opens = first == 0 or tokens[first - 1].lower in _SENTENCE_END
    start = first
    if opens and _is_small(tokens[start]):
        start += 1
        while start < last and tokens[start].lower in listed("fillers"):
            start += 1
    while start < last and tokens[start].lower in listed("pronouns"):
        start += 1
    alone = opens and last - first == 1 and not name_class(tokens[first].text)
    return None if start >= last or alone else start


def _is_small(token: Token) -> bool:
    return any(token.lower in listed(section) for section in ("verbs", "stops", "prepositions", "fillers"))


def _listed_places(reading: Reading) -> Iterator[Candidate]:
    tokens, index = reading.tokens, 0
    while index < len(tokens):
        for size in range(min(4, len(tokens) - index), 0, -1):
            name = " ".join(token.lower for token in tokens[index : index + size])
            common = len(name) <= 3 or name in listed("words-too")
            if name in listed("places", "names.txt") and (not common or _is_capital(tokens[index])):
                yield _made(reading, "name", index, index + size)
                index += size - 1
                break
        index += 1


def _phrases(reading: Reading, own: frozenset[str]) -> Iterator[Candidate]:
    """Yield what follows a preposition, the name of a slot, a word for speech, or a verb: "play Thriller"."""
    tokens, verbs = reading.tokens, listed("verbs")
    for index, token in enumerate(tokens):
        before, behind = (tokens[index - 1].lower if index else ""), _word_at(reading, index + 1)
        is_equal = token.text in (":", "=") or token.lower in ("is", "be", "are", "am", "i'm")
        is_named = index > 0 and any(one.stem in reading.names for one in tokens[max(index - 2, 0) : index])
        is_label = token.lower == "it" and before in ("call", "name", "label", "title")
        if token.lower in listed("speech") or token.text == ":" or is_label or (is_equal and is_named):
            yield from _tails(reading, index + 1, "tail")
        elif token.lower in ("to", "must") and behind in verbs:
            yield from _tails(reading, index + 1, "task")
        if is_equal or is_label or token.lower in listed("prepositions") or token.stem in reading.names:
            yield from _phrase(reading, "phrase", index + 1)
        if token.lower in verbs or (token.stem in own and index <= 2):
            if behind not in verbs or _is_capital(tokens[index + 1]):
                yield from _phrase(reading, "object", index + 1, own)
        elif token.stem in own:  # "room 12", "order A-17": what follows the noun
            yield from _phrase(reading, "phrase", index + 1)


def _tails(reading: Reading, first: int, kind: str) -> Iterator[Candidate]:
    """Yield the rest of a sentence, and what there is of it before a comma or the name of a slot."""
    tokens = reading.tokens
    first += _word_at(reading, first) in ("that", "of")
    last = next((at for at in range(first, len(tokens)) if tokens[at].text in _SENTENCE_END), len(tokens))
    inner = range(first + 1, last)
    cuts = [next((at for at in inner if tokens[at].text == "," or tokens[at].stem in reading.names), last)]
    cuts += [next((at for at in inner if reading.taken[at] in _MOMENTS), last)]  # call mom tomorrow at 5
    joints = listed("prepositions") | listed("fillers") | {"and"}
    for cut in dict.fromkeys((last, *cuts)):
        end = cut
        while first < end < last and tokens[end - 1].lower in joints:
            end -= 1
        if end > first:
            yield _made(reading, kind, first, end)


def _phrase(reading: Reading, kind: str, first: int, own: frozenset[str] = frozenset()) -> Iterator[Candidate]:
    """Yield the phrase at a place: whole, without what is said of another slot, and with what a small word adds."""
    tokens = reading.tokens
    first = _skip_fillers(tokens, first, ("me", "us", "up", "out", "for") if own else ())
    last = _end_of_phrase(reading, first, _LONGEST_PHRASE)
    ends = [last, last]
    while ends[1] > first and tokens[ends[1] - 1].stem in own:
        ends[1] -= 1
    taken, inner = reading.taken, range(first + 1, last)
    ends += [at for at in inner if tokens[at].stem in reading.names or (taken[at] and not taken[at - 1])]
    bare = next((at for at in range(first, last) if not taken[at]), first)  # "white lamp", "10 machines"
    for end in dict.fromkeys(ends):
        for begin in dict.fromkeys((first, bare)):
            if end > begin:
                yield _made(reading, kind, begin, end)
    yield from _longer(reading, kind, first, last)


def _skip_fillers(tokens: list[Token], first: int, also: tuple[str, ...] = ()) -> int:
    while first < len(tokens) and (tokens[first].lower in listed("fillers") or tokens[first].lower in also):
        first += 1
    return first


def _end_of_phrase(reading: Reading, first: int, most: int) -> int:
    last = first
    while last < len(reading.tokens) and last - first < most and _continues(reading, last):
        last += 1
    return last


def _longer(reading: Reading, kind: str, first: int, last: int) -> Iterator[Candidate]:
    """Yield a phrase with the one that a small word joins to it (glass of water), and the rest of a list."""
    if _word_at(reading, last) in ("of", "for", "and", "&", "in", "to"):
        begin = _skip_fillers(reading.tokens, last + 1)
        further = _end_of_phrase(reading, begin, max(first + 9 - begin, 0))
        if further > begin:
            yield _made(reading, kind, first, further, part=True)
    for _ in range(9):
        begin = last
        while _word_at(reading, begin) in listed("between-too"):
            begin += 1
        last = _end_of_phrase(reading, begin, 3) if begin > last else begin
        if last <= begin or _word_at(reading, begin) in listed("verbs"):
            return
        yield _made(reading, kind, begin, last, part=True)


def _continues(reading: Reading, index: int) -> bool:
    token = reading.tokens[index]
    if reading.taken[index] in _OTHERS:
        return False
    if not token.is_word:
        return token.text in ("'", "’", "&", "/", "+", "#", "@")
    return not any(token.lower in listed(section) for section in ("prepositions", "stops", "time-words"))


def _modifiers(reading: Reading, own: frozenset[str]) -> Iterator[Candidate]:
    """Yield the words before a noun of the contract: "an Italian restaurant"."""
    tokens = reading.tokens
    for index, token in enumerate(tokens):
        if not token.is_word or token.stem not in own or index == 0:
            continue
        first = index
        while first > 0 and index - first < 4 and _continues(reading, first - 1) and tokens[first - 1].is_word:
            before = tokens[first - 1]
            is_verb = before.lower in listed("verbs") and not _is_capital(before)
            if is_verb or before.lower in listed("fillers") or before.stem in own:
                break
            first -= 1
        if first < index:
            yield _made(reading, "modifier", first, index)
        if first < index - 1:
            yield _made(reading, "modifier", index - 1, index, part=True)


def _match_slots(reading: Reading, slots: Sequence[Slot], own: frozenset[str]) -> list[Candidate]:
    """Return the choices and flags of each slot that the instruction names."""
    bound: list[Candidate] = []
    index: dict[str, list[int]] = {}
    for place, token in enumerate(reading.tokens):
        if token.is_word:
            for word in dict.fromkeys((token.stem, *map(root, _pieces(token)))):
                index.setdefault(word, []).append(place)
    for number, slot in enumerate(slots):
        found = _longest(list(_matches(reading, slot, number, index, own)))
        if slot.family == "choice" and not found:
            found = list(_fuzzy(reading, slot, number))
        if len(bound) > _MOST_MATCHES * 3:
            break
        bound += found
    return bound


def _match_hints(reading: Reading, slots: Sequence[Slot]) -> None:
    """Add what stands at the places of hints such as "party of N"."""
    for number, slot in enumerate(slots):
        for pattern in slot.patterns:
            for match in islice(pattern.finditer(reading.text), 3):
                if len(reading.candidates) < _MOST_MATCHES * 4:
                    _mark_hint(reading, number, match.start("value"), match.end("value"))


def _pieces(token: Token) -> list[str]:
    return re.split(r"['’\-]", token.lower) if "-" in token.lower else []


def _matches(
    reading: Reading, slot: Slot, number: int, index: Mapping[str, list[int]], own: frozenset[str]
) -> Iterator[Candidate]:
    """Yield the places where an instruction has the words of a choice or flag."""
    kind = "flag" if slot.family == "flag" else "choice"
    for words, value, weight in slot.phrases:
        if value is None or words[0] not in index or (weight in _WEAK and words[0] in own):
            continue
        for first in index[words[0]][:20]:
            last = _matched(reading, words, first)
            verb = len(words) == 1 and reading.tokens[first].stem in stemmed("verbs")
            if verb and kind == "choice" and str(value).lower() != _word_at(reading, first):
                continue  # to check is not the checking account
            if last is not None:
                told = _flagged(reading, value, first, last) if kind == "flag" else value
                start, end = reading.tokens[first].start, reading.tokens[last - 1].end
                match = "exact" if reading.taken[first] == "money" and "currency" in slot.name.lower() else weight
                yield Candidate(kind, told, start, end, first, last, slot=number, match=match)


_WEAK: Final = frozenset(("part", "head", "synonym"))
"""Matches that do not count for words that the endpoint uses for itself."""
_RANK: Final[Mapping[str, int]] = {"exact": 6, "hint": 5, "synonym": 4, "part": 3, "head": 2, "fuzzy": 1}


def _longest(found: list[Candidate]) -> list[Candidate]:
    """Drop matches inside of longer ones, and the weaker ones of the same words for the same value."""
    found.sort(key=lambda one: (one.first - one.last, -_RANK[one.match]))
    kept: list[Candidate] = []
    for one in found[:_MOST_MATCHES]:
        around = [other for other in kept if other.first <= one.first and one.last <= other.last]
        same = (other.value == one.value for other in around if other.last - other.first == one.last - one.first)
        if not any(same) and not any(other.last - other.first > one.last - one.first for other in around):
            kept.append(one)
    return kept


def _matched(reading: Reading, words: tuple[str, ...], first: int) -> int | None:
    """Return the end of the words at a place; a word in between and joined or split writing are forgiven."""
    tokens, at = reading.tokens, first
    if len(words) > 1 and [root(piece) for piece in _pieces(tokens[first])[: len(words)]] == list(words):
        return first + 1
    at = first + 1
    for word in words[1:]:
        while (
            at < min(len(tokens), first + 3 * len(words))
            and (tokens[at].text in "-/&" or tokens[at].lower in ("a", "the", "of", "and"))
            and tokens[at].stem != word
        ):
            at += 1
        if at >= len(tokens) or tokens[at].stem != word:
            return None
        at += 1
    return at


def _flagged(reading: Reading, value: Any, first: int, last: int) -> Any:
    """Turn a flag round if up to four words before it, in its clause, deny it."""
    negations = listed("negations")
    for at in range(first - 1, max(first - 5, -1), -1):
        token = reading.tokens[at]
        if token.lower in negations or token.lower.endswith(("n't", "n’t")):
            return not value
        if token.text in ",.;!?" or token.lower in ("but", "and", "with"):
            break
    free = _word_at(reading, last) in ("free", "less") or _word_at(reading, last - 1).endswith("-free")
    return not value if free else value


def _fuzzy(reading: Reading, slot: Slot, number: int) -> Iterator[Candidate]:
    """Yield a listed value that a word of the instruction almost spells."""
    words = [(at, one) for at, one in enumerate(reading.tokens) if len(one.stem) > 4][:100]
    for phrase in slot.phrases[:60]:
        name = phrase.words[0]
        if phrase.weight != "exact" or len(phrase.words) > 1 or len(name) < 5:
            continue
        for at, one in words:
            is_verb = one.stem in stemmed("verbs")  # what is checked is not the checking account
            if one.stem[0] == name[0] and not is_verb and _is_slip(one.stem, name):
                yield Candidate("choice", phrase.value, one.start, one.end, at, at + 1, slot=number, match="fuzzy")


def _is_slip(one: str, other: str) -> bool:
    """Return True if one letter is missing, added, changed or swapped with the next."""
    at = next(
        (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    swapped = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    return swapped or one[at + 1 :] in (other[at + 1 :], other[at:]) or one[at:] == other[at + 1 :]


def _mark_hint(reading: Reading, number: int, start: int, end: int) -> None:
    """Add what stands at the place of a hint's value: the candidate that begins there, else the words."""
    inside = [one for one in reading.candidates if one.start == start and one.end <= end + 20 and one.slot < 0]
    if inside:
        best = max(inside, key=lambda one: (one.kind not in ("phrase", "object", "modifier"), one.end))
        reading.candidates.append(replace(best, slot=number, match="hint"))
        return
    first = next((at for at, token in enumerate(reading.tokens) if token.start >= start), len(reading.tokens))
    last = first
    while last < len(reading.tokens) and reading.tokens[last].start < end and _continues(reading, last):
        last += 1
    if last > first:
        reading.candidates.append(replace(_made(reading, "phrase", first, last), slot=number, match="hint"))


@lru_cache(maxsize=4096)
def name_class(words: str) -> str:
    """Return whether a name is a listed place or begins with a listed first name or a title."""
    lower = words.lower()
    if lower in listed("places", "names.txt"):
        return "place"
    first, _, _ = lower.replace(".", "").partition(" ")
    if first in listed("honorifics", "names.txt"):
        return "person"
    return "person" if first.removesuffix("'s") in listed("first", "names.txt") else ""
