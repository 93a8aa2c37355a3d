"""Weights: how likely a candidate is the value of a slot, by features of both and of the words around.

The weights are fitted by `tools/arguments` on sentences that were written for it. A feature is a short text; the sum of
the weights of a pair is turned into a probability.
"""

from __future__ import annotations

import json
import math
import pkgutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from bespeak.agent.arguments.candidates import Candidate, Reading, Token, name_class
from bespeak.agent.arguments.slots import Slot, listed, similar, stem, word_roles
from bespeak.text.language.lexicon import lexicon

_GROUPS: Final = {"date": "when", "time": "when", "datetime": "when"}
_GENERIC: Final = frozenset(
    map(
        stem,
        [
            "id",
            "identifier",
            "number",
            "name",
            "code",
            "type",
            "of",
            "key",
            "no",
            "value",
            "to",
            "from",
            "in",
            "at",
            "on",
            "for",
            "by",
            "the",
        ],
    )
)
_WINDOW: Final = 4
_MEASURED: Final = frozenset({"date", "time", "datetime", "money", "duration", "number"})
_TEXTUAL: Final = frozenset({"name", "phrase", "modifier", "object", "tail", "task"})


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
        return f"{candidate.kind}:{candidate.match}"
    return f"text:{candidate.kind}" if slot.family == "text" else slot.family


def probability(features: Iterator[str], table: Mapping[str, float], kind: str) -> float:
    """Return the probability that features with these weights belong to a right pair of this kind."""
    total = sum(table.get(feature, 0.0) for feature in features)
    total = table.get(f"calibration={kind}|slope", 1.0) * total + table.get(f"calibration={kind}|shift", 0.0)
    return 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))


class Weighing:
    """The features of pairs of one instruction and one endpoint."""

    def __init__(self, reading: Reading, slots: Sequence[Slot], own: frozenset[str]) -> None:
        self._reading = reading
        self._tokens = reading.tokens
        self._taken = reading.taken
        self._slots = slots
        self._own = own
        self._kinds = Counter(one.kind for one in reading.candidates if one.slot < 0)
        self._of_slot = Counter((one.slot, repr(one.value)) for one in reading.candidates if one.slot >= 0)
        self._families = Counter(slot.family for slot in slots)
        self._roles = Counter(role for slot in slots for role in slot.roles[:2])
        self._names = [frozenset(slot.words) - _GENERIC or frozenset(slot.words) for slot in slots]
        self._claims: set[int] = {
            at for one in reading.candidates if one.slot >= 0 and one.match in ("exact", "synonym", "hint")
            and one.kind == "choice" for at in range(one.first, one.last)
        }  # fmt: skip
        ranks: Counter[str] = Counter()
        self._rank: list[int] = []
        for slot in slots:
            self._rank.append(ranks[slot.family])
            ranks[slot.family] += 1
        self._order: dict[int, int] = {}
        seen: Counter[str] = Counter()
        for one in sorted((one for one in reading.candidates if one.slot < 0), key=lambda one: one.start):
            group = "text" if one.kind in _TEXTUAL else one.kind
            self._order[id(one)] = seen[group]
            seen[group] += 1
        self._capitals = any(token.text[0].isupper() for token in reading.tokens[1:])
        self._names_said = len(
            {one.first for one in reading.candidates if one.kind in ("name", "quoted") and not one.part}
        )
        self._around: dict[tuple[int, int], _Around] = {}

    def around(self, candidate: Candidate) -> _Around:
        """Return the context of a candidate."""
        key = (candidate.first, candidate.last)
        found = self._around.get(key)
        if found is None:
            found = self._around[key] = _Around(self._reading, candidate.first, candidate.last, self._own, self._names)
        return found

    def features(self, candidate: Candidate, number: int) -> Iterator[str]:
        """Yield the features of a pair."""
        slot, near = self._slots[number], self.around(candidate)
        group = _GROUPS.get(slot.family, slot.family)
        kind = candidate.kind
        yield group
        yield f"{slot.family}:{kind}"
        yield from self._names_near(group, near, number, slot)
        if candidate.match == "hint":
            yield f"{group}:hint"
        if slot.required:
            yield f"{group}:required"
        if candidate.certainty < 0.75:
            yield f"{group}:unsure"
        if candidate.kind in ("choice", "flag"):
            yield from self._choice(candidate, slot, near, group)
            return
        yield f"{group}:p={near.before}"
        yield f"{group}:n={near.after}"
        for role in slot.roles[:3]:
            yield f"{group}:p={near.before}|{role}"
        main = slot.roles[0] if slot.roles else (slot.hinted[0] if slot.hinted else "none")
        yield f"{group}:{kind}|{main}"
        for role in slot.hinted[:2]:
            yield f"{group}:p={near.before}~{role}"
        yield f"{group}:e={slot.edge}|{near.before}"
        if candidate.edge or slot.edge:
            yield f"{group}:edge={candidate.edge}|{slot.edge}"
        if slot.edge and slot.edge != candidate.edge and near.leans:
            yield f"{group}:leans={near.leans}|{slot.edge}"
        if kind in ("email", "url", "phone"):
            yield f"{kind}:fits={kind in slot.roles}|{slot.schema.get('format') == kind}"
            yield f"{kind}:only={self._kinds[kind] == 1}|{self._roles[kind] < 2}"
        elif group == "text":
            yield from self._text(candidate, slot, near, main)
        else:
            yield from self._typed(candidate, slot, near, number, group)

    def _names_near(self, group: str, near: _Around, number: int, slot: Slot) -> Iterator[str]:
        left, right = near.left_hits.get(number), near.right_hits.get(number)
        if left:
            yield f"{group}:left={left}"
        if right:
            yield f"{group}:right={right}"
        if not left and near.left_hits and any(hit != "near" for hit in near.left_hits.values()):
            yield f"{group}:rival-left"
        if not right and near.right_hits and any(hit != "near" for hit in near.right_hits.values()):
            yield f"{group}:rival-right"
        elif not right and near.right_hits:
            yield f"{group}:rival-near"
        if not left and not right:
            if any(similar(word, name) for word in near.left[:3] for name in self._names[number]):
                yield f"{group}:left-syn"
            if any(similar(word, name) for word in near.right[:2] for name in self._names[number]):
                yield f"{group}:right-syn"
            if not slot.said.isdisjoint(near.left[:2]):
                yield f"{group}:left-said"
            if not slot.said.isdisjoint(near.right[:2]):
                yield f"{group}:right-said"

    def _choice(self, candidate: Candidate, slot: Slot, near: _Around, group: str) -> Iterator[str]:
        words = [token.stem for token in self._tokens[candidate.first : candidate.last]]
        yield f"{group}:match={candidate.match}"
        yield f"{group}:p={near.before}"
        yield f"{group}:n={near.after}"
        owned = sum(word in self._own for word in words)
        if owned:
            yield f"{group}:own|{candidate.match}"
        if group == "choice" and " ".join(near.words) != str(candidate.value).lower().replace("_", " ").replace(
            "-", " "
        ):
            yield f"{group}:inflected|{candidate.match}"
        if not slot.words or all(word not in slot.said for word in words):
            yield f"{group}:unsaid"
        if candidate.first == 0 or words[0] in _verb_stems():
            yield f"{group}:verb"
        if group == "flag":
            yield f"{group}:{candidate.value}|{candidate.match}"
            yield f"{group}:asks" if near.asks else f"{group}:tells"
            return
        rivals = len({value for index, value in self._of_slot if index == candidate.slot})
        yield f"{group}:values={min(rivals, 3)}"
        yield f"{group}:words={min(len(words), 2)}"
        if near.before in ("not", "no", "without"):
            yield f"{group}:denied"
        if all(word.isdigit() for word in words):
            yield f"{group}:digits"
        if near.left_hits.get(candidate.slot) or near.right_hits.get(candidate.slot):
            yield f"{group}:named|{candidate.match}"
        if near.own_after:
            yield f"{group}:own-after"

    def _typed(self, candidate: Candidate, slot: Slot, near: _Around, number: int, group: str) -> Iterator[str]:
        same, fields = self._kinds[candidate.kind], self._families[slot.family]
        yield f"{group}:only={same == 1}|{fields == 1}"
        if fields > 1 and same > 1:
            yield f"{group}:order={self._order.get(id(candidate), 0) == self._rank[number]}"
        if group == "number":
            yield from self._number(candidate, slot, near)

    def _number(self, candidate: Candidate, slot: Slot, near: _Around) -> Iterator[str]:
        roles = slot.roles[:3]
        unit = candidate.unit.removesuffix("s").lower()
        if unit:
            yield "number:unit" if unit in slot.units else ("number:other-unit" if slot.units else "number:free-unit")
            if unit in slot.said or unit in slot.words:
                yield "number:unit-said"
        heads = near.heads
        for head in heads:
            shared = [role for role in roles if role in head]
            if shared:
                yield f"number:head={shared[0]}"
            elif head:
                yield f"number:head-other={roles[0] if roles else 'none'}"
        if not heads:
            yield f"number:bare|{roles[0] if roles else 'none'}"
        if isinstance(candidate.value, int) and candidate.value > 1_000:
            yield f"number:large|{roles[0] if roles else 'none'}"
        if near.own_after:
            yield "number:own-after"
        if near.right and not near.right_hits and not any(role in head for head in heads for role in roles):
            yield f"number:counts-other|{bool(heads)}"
        if near.words == ("one",):
            yield "number:one"

    def _text(self, candidate: Candidate, slot: Slot, near: _Around, main: str) -> Iterator[str]:
        tokens = self._tokens[candidate.first : candidate.last]
        size = len(tokens)
        yield f"text:size={size if size < 4 else '4+' if size < 7 else '7+'}|{main}"
        yield f"text:{candidate.kind}|p={near.before}"
        capital = tokens[0].text[:1].isupper() and tokens[0].is_word
        yield from self._shape(tokens, slot, main, capital)
        if candidate.part:
            yield "text:part"
        if candidate.kind in ("name", "quoted"):
            yield f"text:names={min(self._names_said, 3)}|{self._families['text'] == 1}"
        owned = sum(token.stem in self._own for token in tokens)
        if owned:
            yield "text:own=all" if owned == size else f"text:own|{capital}"
        if not _MEASURED.isdisjoint(self._taken[candidate.first : candidate.last]):
            yield f"text:covers|{candidate.kind}|{main}"
        if not self._claims.isdisjoint(range(candidate.first, candidate.last)):
            yield "text:claimed"
        said = {token.stem for token in tokens}
        if not slot.said.isdisjoint(said):
            yield "text:said"
        if not said.isdisjoint(slot.words):
            yield "text:named"
        if near.own_after:
            yield f"text:own-after|{main}"
        if near.verb:
            yield f"text:v={near.verb}|{main}"
        yield f"text:only={self._families['text'] == 1}|{self._roles[main] < 2}"
        yield f"text:end={near.ends}|{candidate.kind}"

    def _shape(self, tokens: list[Token], slot: Slot, main: str, capital: bool) -> Iterator[str]:
        """Yield what the words look like: a listed name, capitals, a verb."""
        known = name_class(" ".join(token.text for token in tokens))
        if known:
            yield f"text:known={known}|{main}"
            for role in slot.hinted[:2]:
                yield f"text:known={known}~{role}"
            fits = known in slot.roles or known in slot.hinted
            yield "text:known-fits" if fits else f"text:known-other|{self._roles[known] > 0}"
        elif capital:
            yield f"text:capital|{main}"
        else:
            yield f"text:{'lower' if self._capitals else 'small'}|{main}"
        if not capital and tokens[0].is_word:
            verb, noun, _ = lexicon().share(tokens[0].lower)
            if verb > noun:
                yield "text:verbal"
            elif not noun and len(tokens) == 1:
                yield "text:no-noun"
            if len(tokens) == 1 and tokens[0].lower.endswith(("ing", "ed")):
                yield "text:participle"


@cache
def _verb_stems() -> frozenset[str]:
    return frozenset(map(stem, listed("verbs")))


class _Around:
    """What stands before and behind a candidate."""

    def __init__(
        self, reading: Reading, first: int, last: int, own: frozenset[str], names: Sequence[frozenset[str]]
    ) -> None:
        tokens, taken = reading.tokens, reading.taken
        fillers = listed("fillers")
        at = first - 1
        while at >= 0 and first - at < 4 and tokens[at].lower in fillers:
            at -= 1
        self.before = _class(tokens[at], own) if at >= 0 else "^"
        self.after = _class(tokens[last], own) if last < len(tokens) else "$"
        self.ends = last >= len(tokens) or tokens[last].text in ".,;!?"
        self.words = tuple(token.lower for token in tokens[first:last])
        self.asks = bool(tokens) and tokens[0].lower in (
            "is",
            "are",
            "does",
            "do",
            "has",
            "have",
            "what",
            "which",
            "who",
        )
        self.left: list[str] = []
        for place in range(first - 1, max(first - 1 - 2 * _WINDOW, -1), -1):
            if tokens[place].text in ".;!?" or len(self.left) >= _WINDOW:
                break
            if not self.left and place and taken[place - 1] == "number" and tokens[place].is_word and not taken[place]:
                break  # in "1 room, 3 stars" the room belongs to the number before it
            if tokens[place].is_word and tokens[place].lower not in fillers:
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
        self.heads = [roles for word in self.right[:2] if (roles := word_roles().get(word, ()))][:1]
        self.verb = next((word for word in self.left[:3] if word in _verb_stems()), "")
        self.leans = next((edge for word in self.left[:3] for edge in ("from", "to") if word in _leaning(edge)), "")


def _class(token: Token, own: frozenset[str]) -> str:
    if not token.is_word:
        return token.text if token.text in ".,:;!?=#\"'" else "mark"
    if token.lower in listed("prepositions") or token.lower in listed("negations"):
        return token.lower
    if token.lower in listed("stops"):
        return token.lower if token.lower in ("and", "or", "that", "because", "is") else "STOP"
    if token.stem in own:
        return "OWN"
    return "VERB" if token.lower in listed("verbs") else "w"


def _hits(words: list[str], names: Sequence[frozenset[str]]) -> dict[int, str]:
    """Return how near the name of each slot stands: adj for all of it or its nearest word, near for some of it."""
    found: dict[int, str] = {}
    present = set(words)
    for number, name in enumerate(names):
        shared = name & present
        if shared:
            adjacent = words[0] in name
            found[number] = ("adj-full" if len(shared) > 1 or len(name) == 1 else "adj") if adjacent else "near"
    return found


@cache
def _leaning(edge: str) -> frozenset[str]:
    return frozenset(map(stem, listed(edge)))
