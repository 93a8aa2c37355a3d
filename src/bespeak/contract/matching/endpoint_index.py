"""Endpoints matched with a need in words, with the evidence for each match and how sure it is (AGIS 11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import nlargest
from typing import Final, NamedTuple

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import as_text
from bespeak.contract.matching.calibration import FLOOR, TIE, Signals, confidence
from bespeak.contract.matching.needs import Need, is_value, read_need, words
from bespeak.contract.matching.text_index import Field, TextIndex, hits, read_fields
from bespeak.contract.matching.vectors import SMALL, Backend, VectorIndex, usual_backend
from bespeak.text.bounded_cache import BoundedCache
from bespeak.text.identifiers import apart
from bespeak.text.language.injection import addressed, instruction, may_inject, sentences
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.names import stem
from bespeak.text.language.operation_class import fit, operation_classes
from bespeak.text.language.verb_form import lemmas

_VERB: Final = 0.3  # weight of the verb; as a filter it would cost 3 to 20 points
_NEUTRAL: Final = 0.5
_CONTRARY: Final = 0.1  # fit up to which a verb and a method contradict each other
_SAME: Final = 0.8  # fit from which a verb asks for a method
_LEAST: Final = (0.03, 0.03, 0.05)  # deviations of cosines, of shares of words and of verbs that are not noise
_LONGEST: Final = 2_000  # characters of each text of an endpoint that are read
_PARAMETERS: Final = 40
_SEEN: Final = 5  # places that the confidence depends on
_KEPT: Final = 20_000_000  # characters of endpoints whose words are kept for the next index


class Part(NamedTuple):
    """One part of the evidence: how much it says for the match, 0 to 1, and the words that say it."""

    value: float
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.value:.2f}" + (f" ({', '.join(self.words)})" if self.words else "")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a match, by the steps of AGIS 11; the confidence of the match is the last one."""

    verb: Part
    nouns: Part
    intent: Part
    parameters: Part
    vector: Part

    def __str__(self) -> str:
        named = ((name, getattr(self, name)) for name in self.__slots__)
        shown = [f"{name} {part}" for name, part in named if part.value]
        return "; ".join(shown) or "no evidence"


@dataclass(frozen=True, slots=True)
class Match:
    """An endpoint, or a text beside the endpoints, that may be what a need means."""

    place: int  # index of the endpoint; the texts beside the endpoints follow them
    score: float  # in (0, 1]: how much speaks for it
    confidence: float  # in [0, 1]: how often the best one of such a list is right; the others share the rest
    parts: Evidence


class _Document(NamedTuple):
    fields: tuple[Field, ...]  # name, method and path; intent; description; parameters; their hints
    text: str  # what is embedded


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A need weighed against every text."""

    need: Need
    fused: Sequence[float]  # in units of deviations
    top: float  # what a text would have for which everything speaks
    places: Sequence[int]  # texts that may be meant, in no order
    words: Mapping[int, float]
    most: float
    terms: int  # words of the need that say with what
    cosines: Sequence[float]
    fits: Mapping[str, float]

    def score(self, place: int) -> float:
        return max(round(min(self.fused[place] / self.top, 1.0), 4), 0.0001)


class EndpointIndex:
    """Endpoints, and other texts beside them, that are ranked and matched for a need.

    What is read from an endpoint is kept by its content: an index over endpoints of which few are new is made quickly.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        names: Sequence[str] = (),
        others: Iterable[str] = (),
        *,
        backend: Backend | None = None,
    ) -> None:
        """Index endpoints, with the names that they have elsewhere. `others` are texts without a method.

        Without a `backend`, the best installed one compares meanings.
        """
        self._documents = [_read(*_texts(one, names[at] if names else "")) for at, one in enumerate(endpoints)]
        self._documents += [_read("", other[:_LONGEST]) for other in others]
        self._words = TextIndex([one.fields for one in self._documents])
        self._methods = [one.method.lower() for one in endpoints]
        self._places: dict[str, list[int]] = {}
        for place, method in enumerate(self._methods):
            self._places.setdefault(method, []).append(place)
        at = {one.key: place for place, one in enumerate(endpoints)}
        gone = ((place, one.deprecated) for place, one in enumerate(endpoints) if one.deprecated is not None)
        named = ((place, (one.successor_method or "", one.successor_path or "")) for place, one in gone)
        self._successors = {place: at[key] for place, key in named if at.get(key, place) != place}
        self._backend = backend

    @cached_property
    def _vectors(self) -> VectorIndex:
        # Loading vectors takes long, and most indexes are never asked.
        backend = self._backend or usual_backend(small=len(self._documents) <= SMALL)
        return VectorIndex(backend, [one.text for one in self._documents])

    def rank(self, need: str) -> list[tuple[float, int]]:
        """Return score and place of all that has something to do with a need, best first. Scores are in (0, 1]."""
        weighed = self._weigh(read_need(need))
        near = self._vectors.backend.near
        found = [one for one in weighed.places if one in weighed.words or weighed.cosines[one] >= near]
        return [(weighed.score(one), one) for one in sorted(found, key=lambda one: (-weighed.fused[one], one))]

    def best(self, need: str) -> tuple[int, Signals] | None:
        """Return the place of the best match and what its confidence is computed from; None without any."""
        weighed = self._weigh(read_need(need))
        best = nlargest(_SEEN, weighed.places, key=lambda place: (weighed.fused[place], -place))
        return (best[0], self._signals(weighed, best)) if best else None

    def match(
        self, need: str, limit: int = 5, *, floor: float = FLOOR, admits: Callable[[int], bool] | None = None
    ) -> list[Match]:
        """Return the best matches, or none if it is unlikely that one of them serves the need.

        `floor` is the least confidence of the best one. Only places that `admits` admits are considered.
        """
        weighed = self._weigh(read_need(need))
        places = weighed.places if admits is None else [place for place in weighed.places if admits(place)]
        best = nlargest(max(limit, _SEEN), places, key=lambda place: (weighed.fused[place], -place))
        if not best:
            return []
        sure = confidence(self._vectors.backend.name, self._signals(weighed, best[:_SEEN]))
        if sure < floor:
            return []
        shares = _share(sure, [weighed.fused[place] for place in best], weighed.top)
        return [
            Match(place, weighed.score(place), share, self._evidence(weighed, place))
            for place, share in zip(best[:limit], shares, strict=False)
        ]

    def _weigh(self, need: Need) -> _Weighed:
        said = [term for term in need.terms if self._words.has(term) or not is_value(term)]
        size, most = len(self._documents), self._words.most(said)
        words = self._words.scores(said)
        cosines = self._vectors.cosines(need.text) if need.terms and size else [0.0] * size
        fits = {method: _fit(method, need.verbs) for method in self._places}
        shares = [score / most for score in words.values()] if most else []
        verbs = [*(fits[method] - _NEUTRAL for method in self._methods), *[0.0] * (size - len(self._methods))]
        unit_cosine = 1.0 / max(_deviation(cosines, size), _LEAST[0])
        unit_words = self._vectors.backend.beside / max(_deviation(shares, size), _LEAST[1]) / (most or 1.0)
        unit_verb = _VERB / max(_deviation(verbs, size), _LEAST[2])
        fused = [cosine * unit_cosine + verb * unit_verb for cosine, verb in zip(cosines, verbs, strict=True)]
        for place, score in words.items():
            fused[place] += unit_words * score
        for place, successor in self._successors.items():
            # What speaks for a deprecated endpoint speaks for the one that replaces it.
            fused[successor], fused[place] = sorted((fused[place], fused[successor]), reverse=True)
            cosines[successor] = max(cosines[successor], cosines[place])
            if place in words:
                words[successor] = max(words.get(successor, 0.0), words[place])
        found = set(range(size)) if need.terms else set()
        for method in fits:
            if need.asks and _undoes(method, need):
                found.difference_update(self._places[method])
        top = unit_cosine + unit_words * most + unit_verb * (1.0 - _NEUTRAL)
        return _Weighed(need, fused, top or 1.0, list(found), words, most, len(said), cosines, fits)

    def _signals(self, weighed: _Weighed, best: Sequence[int]) -> Signals:
        first = best[0]
        others = [place for place in best[1:] if self._successors.get(place) != first]
        cover = [weighed.words.get(place, 0.0) / (weighed.most or 1.0) for place in (first, *others)]
        return Signals(
            cosine=weighed.cosines[first],
            cosine_margin=weighed.cosines[first] - max((weighed.cosines[one] for one in others), default=0.0),
            words=cover[0],
            words_margin=cover[0] - max(cover[1:], default=0.0),
            verb=self._verb(weighed, first),
            margin=weighed.fused[first] - weighed.fused[others[0]] if others else 2.0,
            lead=(weighed.fused[first] - weighed.fused[others[0]]) / weighed.top if others else 1.0,
            score=weighed.fused[first] / weighed.top,
            terms=weighed.terms,
            size=len(self._documents),
            object=self._vectors.cosines(weighed.need.object)[first],
            named=self._named(weighed.need, first),
            doubtful=weighed.need.refers or self._is_contrary(weighed, first) or self._is_far(weighed, first),
        )

    def _named(self, need: Need, place: int) -> float:
        """Return the share of what a need says beside its verb that a text has. "A good book" does not name BOOK."""
        method = stem(self._methods[place]) if place < len(self._methods) else ""
        terms = words(need.object)
        weights = {term: self._words.rarity(term) for term in terms if self._words.has(term) or not is_value(term)}
        fields = self._documents[place].fields
        found = (term for term in weights if term != method and any(hits(term, field) for field in fields))
        return sum(weights[term] for term in found) / sum(weights.values()) if weights else 1.0

    def _is_contrary(self, weighed: _Weighed, place: int) -> bool:
        """Return True if either of verb and method removes or ends what the other does not."""
        if self._verb(weighed, place) > _CONTRARY:
            return False
        return _removes(self._methods[place]) or any(map(_removes, weighed.need.verbs))

    def _is_far(self, weighed: _Weighed, place: int) -> bool:
        """Return True if neither words nor meanings have anything in common."""
        return place not in weighed.words and weighed.cosines[place] < self._vectors.backend.near

    def _verb(self, weighed: _Weighed, place: int) -> float:
        return weighed.fits[self._methods[place]] if place < len(self._methods) else _NEUTRAL

    def _evidence(self, weighed: _Weighed, place: int) -> Evidence:
        terms = weighed.need.terms
        weights = {term: self._words.rarity(term) for term in terms}
        whole = sum(weights.values()) or 1.0
        fields = self._documents[place].fields

        def part(*numbers: int) -> Part:
            found = [term for term in terms if any(hits(term, fields[at]) for at in numbers if at < len(fields))]
            return Part(round(sum(weights[term] for term in found) / whole, 4), tuple(found))

        verbs = weighed.need.verbs if place < len(self._methods) else ()
        return Evidence(
            verb=Part(round(self._verb(weighed, place), 4), verbs) if verbs else Part(0.0),
            nouns=part(0),
            intent=part(1, 2),
            parameters=part(3, 4),
            vector=Part(round(min(max(weighed.cosines[place], 0.0), 1.0), 4)),
        )


def _deviation(values: Sequence[float], size: int) -> float:
    """Return the standard deviation of values; those that are left out are 0."""
    mean = sum(values) / size if size else 0.0
    squares = sum(value * value for value in values) / size if size else 0.0
    return math.sqrt(max(squares - mean * mean, 0.0))


def _share(sure: float, fused: Sequence[float], top: float) -> list[float]:
    """Return the confidence of each match: the others share what the first one leaves, by their distance.

    Those for which as much speaks as for the first one are as likely.
    """
    odds = [math.exp(min(one - fused[0], 0.0)) for one in fused[1:]]
    rest = sum(odds)
    left = [min((1.0 - sure) * one / (rest + 1.0), sure) for one in odds]
    equal = [sure * math.exp(min(one - fused[0], 0.0) / top / TIE) for one in fused[1:]]
    left = [max(pair) for pair in zip(left, equal, strict=True)]
    whole = sum(left)
    return [round(one, 4) for one in (sure, *(one * min((1.0 - sure) / (whole or 1.0), 1.0) for one in left))]


@lru_cache(maxsize=8192)
def _fit(method: str, verbs: tuple[str, ...]) -> float:
    """Return how well a method does what one of the verbs says; neutral if nothing is known."""
    return max((found for verb in verbs if (found := fit(method, verb)) is not None), default=_NEUTRAL)


def _removes(verb: str) -> bool:
    classes = operation_classes(verb)
    return classes is not None and classes.main in ("DELETE", "END")


@lru_cache(maxsize=8192)
def _undoes(method: str, need: Need) -> bool:
    """Return True if a method removes or ends something that a question does not speak of."""
    if not _removes(method):
        return False
    said = {one.verb for word in need.words for one in lemmas(word)}
    return not any((fit(method, verb) or 0.0) >= _SAME for verb in said if lexicon().share(verb)[0] >= 0.5)


def _texts(endpoint: Endpoint, name: str) -> tuple[str, ...]:
    """Return the texts of an endpoint, by the fields of a document."""
    semantic, schema = endpoint.semantic, endpoint.input_schema
    path = " ".join(part for part in endpoint.path.split("/") if not part.startswith("{"))
    properties = schema.get("properties", {})
    named = list(properties.items())[:_PARAMETERS] if isinstance(properties, dict) else []
    told = (one.get("description", "") for _, one in named if isinstance(one, dict))
    # A request rarely speaks of what it may leave out, or of the ids in a path.
    asked = required if isinstance(required := schema.get("required"), list) else properties
    main = (one for one, _ in named if one in asked and f"{{{one}}}" not in endpoint.path)
    hints = as_text(dict(semantic.parameter_hints)) if semantic.parameter_hints else ""
    more = endpoint.description if endpoint.description != semantic.intent and semantic.intent else ""
    return (
        f"{name} {endpoint.method.lower()} {path}"[:_LONGEST],
        (semantic.intent or endpoint.description)[:_LONGEST],
        f"{more} {semantic.outcome}"[:_LONGEST],
        " ".join(one for one, _ in named)[:_LONGEST],
        f"{' '.join(one for one in told if isinstance(one, str))} {hints}"[:_LONGEST],
        " ".join(main)[:_LONGEST],
    )


_documents: Final = BoundedCache["_Document"](_KEPT)


def _read(name: str, *told: str) -> _Document:
    """Read the texts of an endpoint: name, intent, description, parameters, their hints, and the main parameters."""
    if (known := _documents.get((name, *told))) is not None:
        return known
    written = (name, *told, *[""] * (5 - len(told)))
    texts = [apart(_without_orders(text)) for text in written]
    embedded = f"{texts[0]}. {texts[1]} {texts[5]}" if name else texts[1]
    found = _Document(read_fields(texts), " ".join(embedded.replace("-", " ").replace("_", " ").split()))
    return _documents.put((name, *told), found)


def _without_orders(text: str) -> str:
    """Leave out sentences that tell a model what to do: nothing is found for them."""
    if not may_inject(text):
        return text
    parts = [part for _, part in sentences(text)]
    return " ".join(part for part in parts if instruction(part) is None and addressed(part) is None)
