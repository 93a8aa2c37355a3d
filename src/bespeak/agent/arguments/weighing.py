"""Weights: how likely a candidate is the value of a slot, by features of both and of the words around.

The weights are fitted by `tools/arguments` on sentences that were written for it. A feature is a short text; the sum of
the weights of a pair is turned into a probability.
"""

from __future__ import annotations

import json
import math
import pkgutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from bespeak.agent.arguments.candidates import Candidate, Reading, Token, name_class
from bespeak.agent.arguments.slots import Slot, listed, similar, stemmed, word_roles
from bespeak.text.language.lexicon import lexicon

_GROUPS: Final = {"date": "when", "time": "when", "datetime": "when"}
_WINDOW: Final = 4
_POSSESSIVES: Final = frozenset({"my", "our", "his", "her", "their"})
_CLOSED: Final = frozenset({"date", "time", "datetime", "money"})  # what stands before such a value belongs to it
_MEASURED: Final = frozenset({"date", "time", "datetime", "money", "duration", "number"})


@cache
def weights() -> Mapping[str, float]:
    """Return the fitted weight of each feature."""
    data = pkgutil.get_data("bespeak.agent.arguments", "data/weights.json")
    assert data is not None
    groups: dict[str, dict[str, float]] = json.loads(data)
    return {group + name: weight for group, names in groups.items() for name, weight in names.items()}


def kind_of(candidate: Candidate, slot: Slot) -> str:
    """Return the kind of a pair, for which the weights are calibrated."""
    if candidate.kind in ("choice", "flag"):
        return candidate.kind
    if slot.family != "text":
        return slot.family
    return "text:currency" if candidate.kind == "money" and "currency" in slot.words else f"text:{candidate.kind}"


class Pair(NamedTuple):
    """A candidate in a slot, with the probability that it is right."""

    candidate: Candidate
    slot: int
    value: Any
    fault: str
    kind: str  # that for which the weights are calibrated
    features: list[str]
    doubt: float  # a factor of the probability
    confidence: float = 0.0


def weigh(pairs: Sequence[Pair], slots: Sequence[Slot], table: Mapping[str, float]) -> list[Pair]:
    """Return the pairs with the probability that each is right, given its rivals."""
    totals = [sum(table.get(feature, 0.0) for feature in one.features) for one in pairs]
    found: list[Pair] = []
    for one, facts in zip(pairs, compare(pairs, slots, totals), strict=True):
        terms = zip(CALIBRATION, facts, strict=True)
        total = sum(table.get(f"calibration={one.kind}|{name}", usual) * fact for (name, usual), fact in terms)
        likely = 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))
        found.append(one._replace(confidence=likely * one.doubt))
    return found


CALIBRATION: Final = (("slope", 1.0), ("shift", 0.0), ("same-slot", 0.0), ("same-text", 0.0))
"""The fitted factors of each kind of pair for its weights, for one, and for its rivals; and their usual values."""
_NONE: Final = -20.0


def compare(pairs: Sequence[Pair], slots: Sequence[Slot], totals: Sequence[float]) -> list[tuple[float, ...]]:
    """Return the facts of each pair: its weights, one, and the weights of its best rivals for slot and text."""
    of_slot: dict[int, list[float]] = defaultdict(lambda: [_NONE, _NONE])
    of_token: dict[int, dict[int, float]] = defaultdict(dict)
    for one, total in zip(pairs, totals, strict=True):
        of_slot[one.slot] = sorted((*of_slot[one.slot], total))[1:]
        for token in _claimed(one, slots):
            of_token[token][one.slot] = max(total, of_token[token].get(one.slot, _NONE))
    # A moment has a date and a time, an amount a currency: such text is shared.
    kinds = ("datetime", "money")
    shared = {at for one in pairs if one.candidate.kind in kinds for at in _claimed(one, slots)}
    found: list[tuple[float, ...]] = []
    for one, total in zip(pairs, totals, strict=True):
        second, best = of_slot[one.slot]
        same = _NONE if slots[one.slot].many else second if total == best else best
        family = slots[one.slot].family
        others = [
            rival
            for at in _claimed(one, slots)
            for slot, rival in of_token[at].items()
            if slot != one.slot and (at not in shared or slots[slot].family == family)
        ]
        rivals = (same, max(others, default=_NONE))
        found.append((total, 1.0, *(math.log1p(math.exp(min(rival, 30.0))) for rival in rivals)))
    return found


def _claimed(pair: Pair, slots: Sequence[Slot]) -> range:
    """Return the tokens that a pair takes from other slots; flags share theirs."""
    one = pair.candidate
    return range(one.first, one.last) if slots[pair.slot].family != "flag" else range(0)


_Name = tuple[frozenset[str], frozenset[str]]  # the telling words of the name of a slot, and all of them
_Fact = tuple[object, str]
"""A feature and whether it holds."""


class Weighing:
    """The features of pairs of one instruction and one endpoint."""

    def __init__(self, reading: Reading, slots: Sequence[Slot], own: frozenset[str]) -> None:
        free = sorted((one for one in reading.candidates if one.slot < 0), key=lambda one: one.start)
        bound = [one for one in reading.candidates if one.slot >= 0]
        self._reading, self._tokens, self._slots, self._own = reading, reading.tokens, slots, own
        self._kinds = Counter(one.kind for one in free)
        self._of_slot = Counter(index for index, _ in {(one.slot, repr(one.value)) for one in bound})
        self._families = Counter(slot.family for slot in slots)
        self._roles = Counter(role for slot in slots for role in slot.roles[:2])
        self._first = {role: slot for slot in reversed(slots) for role in slot.roles[:1]}
        whole = [frozenset(slot.words) for slot in slots]
        self._names = [(name - stemmed("generic") or name, name) for name in whole]
        self._claims = {
            at for one in bound if one.kind == "choice" and one.match in ("exact", "synonym", "hint")
            for at in range(one.first, one.last)
        }  # fmt: skip
        # What a request is about stands behind its verb: the first text that must be there.
        texts = [number for number, slot in enumerate(slots) if slot.family == "text"]
        self._main = next((number for number in texts if slots[number].required), texts[0] if texts else -1)
        seen: Counter[str] = Counter()
        self._rank = [_next(seen, slot.family) for slot in slots]
        self._order = {id(one): _next(seen, f" {one.kind}") for one in free}
        self._capitals = any(token.text[0].isupper() for token in reading.tokens[1:])
        self._names_said = len({one.first for one in free if one.kind in ("name", "quoted") and not one.part})
        self._places: dict[tuple[int, int], _Around] = {}

    def features(self, candidate: Candidate, number: int) -> Iterator[str]:
        """Yield the features of a pair."""
        slot, kind, place = self._slots[number], candidate.kind, (candidate.first, candidate.last)
        if place not in self._places:
            self._places[place] = _Around(self._reading, *place, self._own, self._names)
        near, group = self._places[place], _GROUPS.get(slot.family, slot.family)
        is_named = number in near.left_hits or self._is_named(near, number)
        facts = [
            (True, f"is={kind_of(candidate, slot)}|{kind}"),
            (candidate.match == "hint", "hint"),
            (slot.required, "required"),
            (candidate.certainty < 0.75, "unsure"),
            (True, f"p={near.before}"),
            (True, f"n={near.after}"),
            *self._names_near(near, number, slot),
        ]
        facts += [
            (slot.edge, f"e={slot.edge}|{near.before}"),
            (slot.edge and not is_named and near.leans, f"leans={near.leans}|{slot.edge}"),
        ]
        if kind in ("choice", "flag"):
            facts += self._choice(candidate, slot, near)
        else:
            main = slot.roles[0] if slot.roles else (slot.hinted[0] if slot.hinted else "none")
            facts += [(True, f"p={near.before}|{role}") for role in slot.roles[:3]]
            facts += [(True, f"p={near.before}~{role}") for role in slot.hinted[:2]]
            facts += [
                (True, f"kind={kind}|{main}"),
                (near.title and group == "text", f"title-fits={not set(slot.roles).isdisjoint(near.title)}"),
                (candidate.edge or slot.edge, f"edge={candidate.edge}|{slot.edge}"),
            ]
            if kind in ("email", "url", "phone"):
                facts += [
                    (True, f"{kind}-fits={kind in slot.roles}|{slot.schema.get('format') == kind}"),
                    (True, f"{kind}-only={self._kinds[kind] == 1}|{self._roles[kind] < 2}"),
                ]
            elif group == "text":
                facts += self._text(candidate, number, near, main)
            else:
                same, fields = self._kinds[kind], self._families[slot.family]
                ordered = self._order.get(id(candidate), 0) == self._rank[number]
                facts += [
                    (True, f"only={same == 1}|{fields == 1}"),
                    (fields > 1, f"order={ordered}|{same > 1}"),
                    *(self._number(candidate, slot, near) if group == "number" else ()),
                ]
        for holds, name in facts:
            if holds:
                yield f"{group}:{name}"

    def contradicts(self, candidate: Candidate, number: int) -> bool:
        """Return True if the words before a moment say that it is the other end of a range."""
        slot, near = self._slots[number], self._places.get((candidate.first, candidate.last))
        if near is None or not slot.edge or candidate.kind not in ("date", "time", "datetime"):
            return False
        word = next((word for word in near.left[:2] if word not in ("on", "at", "by", "for")), "")
        said = next((edge for edge in ("from", "to") if word in stemmed(edge)), candidate.edge)
        return said not in ("", slot.edge) and not any(similar(word, own) for own in slot.words)

    def _names_near(self, near: _Around, number: int, slot: Slot) -> Iterator[_Fact]:
        """Yield where the name of the slot, or that of another one, stands."""
        bare = number not in near.left_hits and number not in near.right_hits
        yield bare and self._is_named(near, number), "syn"
        for side, hits, words in (("left", near.left_hits, near.left), ("right", near.right_hits, near.right)):
            yield number in hits, f"{side}={hits.get(number)}"
            yield number not in hits and any(hit != "near" for hit in hits.values()), f"rival-{side}"
            yield bare and not slot.said.isdisjoint(words[:2]), f"{side}-said"

    def _is_named(self, near: _Around, number: int) -> bool:
        return any(similar(word, name) for word in near.left[:3] for name in self._names[number][0])

    def _choice(self, candidate: Candidate, slot: Slot, near: _Around) -> Iterator[_Fact]:
        words = [token.stem for token in self._tokens[candidate.first : candidate.last]]
        match = candidate.match
        yield any(word in self._own for word in words), f"own|{match}"
        yield all(word not in slot.said for word in words), "unsaid"
        yield candidate.first == 0 or words[0] in stemmed("verbs"), "verb"
        if slot.family == "flag":
            return
        yield True, f"values={min(self._of_slot[candidate.slot], 3)}"
        yield True, f"words={min(len(words), 2)}"
        yield near.before in ("not", "no", "without"), "denied"
        yield all(word.isdigit() for word in words), "digits"
        yield candidate.slot in near.left_hits or candidate.slot in near.right_hits, f"named|{match}"
        yield near.own_after, "own-after"

    def _number(self, candidate: Candidate, slot: Slot, near: _Around) -> Iterator[_Fact]:
        roles, unit = slot.roles[:3], candidate.unit.removesuffix("s").lower()
        main = roles[0] if roles else "none"
        yield unit, "unit" if unit in slot.units else "other-unit" if slot.units else "free-unit"
        yield unit and (unit in slot.said or unit in slot.words), "unit-said"
        shared = not set(roles).isdisjoint(near.head)
        yield isinstance(candidate.value, int) and candidate.value > 1_000, f"large|{main}"
        yield near.own_after, "own-after"
        yield near.right and not near.right_hits and not shared, f"counts-other|{bool(near.head)}"
        yield near.words == ("one",), "one"
        yield not (unit or near.right or near.left_hits), f"bare|{main}|{slot.required}"

    def _text(self, candidate: Candidate, number: int, near: _Around, main: str) -> Iterator[_Fact]:
        slot, tokens, kind = self._slots[number], self._tokens[candidate.first : candidate.last], candidate.kind
        size, said = sum(token.is_word for token in tokens), {token.stem for token in tokens}
        capital = tokens[0].text[:1].isupper() and tokens[0].is_word
        owned = sum(token.stem in self._own for token in tokens)
        alone = self._families["text"] == 1
        measured = not _MEASURED.isdisjoint(self._reading.taken[candidate.first : candidate.last])
        yield True, f"size={size if size < 4 else '4+' if size < 7 else '7+'}|{main}"
        yield from self._shape(tokens, slot, main, capital, kind)
        yield candidate.part, "part"
        yield kind in ("name", "quoted"), f"names={min(self._names_said, 3)}|{alone}"
        yield owned, "own=all" if owned == size else f"own|{capital}"
        yield measured, f"covers|{kind}|{main}"
        yield not self._claims.isdisjoint(range(candidate.first, candidate.last)), "claimed"
        yield not slot.said.isdisjoint(said), "said"
        yield not said.isdisjoint(slot.words), "named"
        yield near.own_after, "own-after"
        yield True, f"only={alone}|{self._roles[main] < 2}"
        yield self._roles[main] > 1, f"first={self._first.get(main) is slot}|{slot.edge}"
        yield True, f"end={near.ends}|{kind}"
        is_object = near.before in ("VERB", "OWN", "STOP", "^")
        yield True, f"main={number == self._main}|{slot.required}|{is_object}|{kind}"
        yield True, f"before={near.before}|{kind}"
        asked = candidate.first > 1 and self._tokens[candidate.first - 2].lower in ("me", "us")
        yield kind == "task", f"task={tokens[0].stem in self._own}|{asked}|{main}"  # remind me to call; I want to book
        yield slot.edge, f"e={slot.edge}|{near.before}|{main}"

    def _shape(self, tokens: list[Token], slot: Slot, main: str, capital: bool, kind: str) -> Iterator[_Fact]:
        """Yield what the words look like: a listed name, capitals, a verb."""
        known = name_class(" ".join(token.text for token in tokens))
        shape = f"known={known}" if known else "capital" if capital else "lower" if self._capitals else "small"
        yield True, f"{shape}|{main}"
        if known:
            fits = known in slot.roles or known in slot.hinted
            yield True, "known-fits" if fits else f"known-other|{self._roles[known] > 0}"
        if not capital and tokens[0].is_word:
            verb, noun, _ = lexicon().share(tokens[0].lower)
            yield verb > noun, f"verbal|{kind}"
            yield verb <= noun and not noun and len(tokens) == 1, "no-noun"
            yield len(tokens) == 1 and tokens[0].lower.endswith(("ing", "ed")), "participle"


def _next(seen: Counter[str], group: str) -> int:
    """Return how many there were of a group before."""
    seen[group] += 1
    return seen[group] - 1


class _Around:
    """What stands before and behind a candidate."""

    def __init__(self, reading: Reading, first: int, last: int, own: frozenset[str], names: Sequence[_Name]) -> None:
        tokens, taken = reading.tokens, reading.taken
        fillers = listed("fillers")
        at = first - 1
        while at >= 0 and first - at < 4 and (tokens[at].lower in fillers or taken[at] == "choice"):
            at -= 1  # find a white lamp
        self.title = word_roles().get(tokens[at].stem, ()) if at >= 0 else ()  # of the word before: doctor Martinez
        if at > 0 and tokens[at].is_word and tokens[at - 1].lower in _POSSESSIVES and not taken[at]:
            at = max(at - 2, 0)  # to my son Leo
        self.before = _class(tokens[at], own) if at >= 0 else "^"
        self.after, self.ends = _what_follows(reading, last, own)
        self.words = tuple(token.lower for token in tokens[first:last])
        letters = {word for _, whole in names for word in whole if len(word) == 1}  # "a" in "a 6 and b 7"
        self.left: list[str] = []
        for place in range(first - 1, max(first - 1 - 2 * _WINDOW, -1), -1):
            if tokens[place].text in ".;!?" or len(self.left) >= _WINDOW or taken[place] in _CLOSED:
                break
            if not self.left and place and taken[place - 1] == "number" and tokens[place].is_word and not taken[place]:
                break  # in "1 room, 3 stars" the room belongs to the number before it
            if tokens[place].is_word and (tokens[place].lower not in fillers or tokens[place].stem in letters):
                self.left.append(tokens[place].stem)
        self.right: list[str] = []
        for place in range(last, min(last + 4, len(tokens))):
            if tokens[place].text in ".;!?," or tokens[place].lower in listed("prepositions"):
                break
            if tokens[place].is_word and tokens[place].lower not in fillers:
                self.right.append(tokens[place].stem)
        self.left_hits = _hits(self.left, names)
        self.right_hits = _hits(self.right[:2], names)
        self.own_after = bool(self.right) and self.right[0] in own
        self.head = next((roles for word in self.right[:2] if (roles := word_roles().get(word, ()))), ())
        self.leans = next((edge for word in self.left[:3] for edge in ("from", "to") if word in stemmed(edge)), "")


def _what_follows(reading: Reading, last: int, own: frozenset[str]) -> tuple[str, str]:
    """Return the class of the next word, and whether what stands before it ends there: yes, no, or at a joint."""
    if last >= len(reading.tokens):
        return "$", "yes"
    token, is_value = reading.tokens[last], reading.taken[last] in _CLOSED
    after = "VALUE" if is_value else _class(token, own)
    if after in ("w", "VERB", "OWN") and token.text[0].isupper():
        after = "CAPITAL"
    is_joint = is_value or token.lower in listed("prepositions")  # call mom tomorrow
    return after, "yes" if token.text in ".,;!?" else "joint" if is_joint else "no"


def _class(token: Token, own: frozenset[str]) -> str:
    if not token.is_word:
        return token.text if token.text in ".,:;!?=#\"'" else "mark"
    if token.lower in listed("prepositions") or token.lower in listed("negations"):
        return token.lower
    if token.lower in listed("stops"):
        return token.lower if token.lower in ("and", "or", "that", "because", "is") else "STOP"
    if token.stem in own:
        return "OWN"
    if token.lower in listed("generic"):
        return token.lower
    return "VERB" if token.lower in listed("verbs") else "w"


def _hits(words: list[str], names: Sequence[_Name]) -> dict[int, str]:
    """Return how near the name of each slot stands: adj for all of it or its nearest word, near for some of it."""
    found: dict[int, str] = {}
    present = set(words)
    for number, (name, whole) in enumerate(names):
        shared = name & present
        if shared:
            adjacent = words[0] in whole
            found[number] = ("adj-full" if len(shared) > 1 or len(name) == 1 else "adj") if adjacent else "near"
    return found
