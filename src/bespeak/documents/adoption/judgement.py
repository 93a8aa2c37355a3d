"""Everything guessed about a candidate, for any kind of upstream: method, path, impact and sentences.

All pairs of method and path differ, and no two match one request equally well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Semantic
from bespeak.contract.grammar.syntax import TemplateSet, leaking_segment, parse_template
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.guess import UNSURE, Guess, Risk
from bespeak.documents.adoption.impact_guess import guess_impact
from bespeak.documents.adoption.naming import plural, words
from bespeak.documents.adoption.path_choice import RELATING, PathChoice, choose_path, other_paths, topic_of
from bespeak.documents.adoption.sentences import write_sentences
from bespeak.documents.adoption.verb_choice import VerbChoice, choose_verb
from bespeak.documents.adoption.verb_words import LIGHT, bare_words, heads_of, is_verb
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.language.phrases import object_places
from bespeak.text.language.sentence import words as sentence_words

_AUXILIARY: Final = frozenset({"is", "are", "was", "one", "more", "several", "multiple"})
_MOST_WORDS: Final = 3  # words of a sentence that name a thing


def named_paths(candidate: Candidate, word: str, verbs: frozenset[str], *, says_all: bool) -> list[str]:
    """Return paths, the best first; `word` is the verb in the name. What the verb does not say, the path says."""
    whole, parts = words(candidate.name), bare_words(candidate)
    things = list(dropwhile(RELATING.__contains__, _things(parts, word)))
    short = "-".join(takewhile(lambda part: part not in RELATING, things))
    found = [short, "-".join(things), "-".join(whole)] if short else []
    found += [word] if not short and not says_all and word in parts else []
    found += ["-".join(_object(candidate)), *candidate.tags[:1]]
    names = dict.fromkeys(name for name in found if name)
    before = f"/{candidate.service}" if candidate.service else ""
    nouns = (name if leaking_segment(f"/{name}", verbs) is None else plural(name) for name in names)
    return [f"{before}/{noun}" for noun in nouns] or [before]


def _things(parts: Sequence[str], word: str) -> list[str]:
    """Return a name without the verbs at its beginning: what follows the chosen one, else what precedes it."""
    start = 0
    while start < len(parts) and (parts[start] in (word, "or", "and") or is_verb(parts[start])):
        start += 1
    if not start and parts[:1] and parts[0] in LIGHT and parts[1:2] == (word,):
        start = 2
    rest = list(parts[start:])
    if not start and word in rest[1:]:
        at = rest.index(word, 1)
        return rest[at + 1 :] or rest[:at]
    return rest


def _object(candidate: Candidate) -> Iterator[str]:
    """Yield the words for the object of the first sentence: `changes` in "Records changes to the repository"."""
    for text in (candidate.summary, candidate.description):
        heads = heads_of(text)
        if not heads:
            continue
        sentence = sentence_words(text)
        at = next((place for place, one in enumerate(sentence) if one.end == heads[0].end), 0)
        places = object_places([one.lower for one in sentence], at + 1)
        # Only words that follow each other name one thing.
        joined = [place for index, place in enumerate(places) if place == places[0] + index]
        named = [sentence[place].lower for place in joined if sentence[place].lower not in _AUXILIARY]
        if 0 < len(named) <= _MOST_WORDS and all(part.replace("-", "").isalnum() for part in named):
            yield from named
            return


_OF_THE_METHOD: Final = {"PUT": "REPLACE", "PATCH": "MODIFY"}  # meaning of a method if the other one has UPDATE


@dataclass(frozen=True, slots=True)
class EndpointClaim:
    verb: VerbChoice
    path: PathChoice
    moved: str = ""  # endpoint that already had the first choice; empty if the first choice was free

    @property
    def confidence(self) -> float:
        """Confidence in the place; low if another endpoint has the first choice."""
        return min(self.verb.confidence, 0.5) if self.moved else self.verb.confidence

    def guesses(self, candidate: Candidate) -> Iterator[Guess]:
        """Yield the guesses about the verb and the path that a person has to confirm."""
        doubtful = self.confidence < UNSURE
        reads = candidate.claims_to_read and candidate.method != "OPTIONS"
        why = f"{self.verb.why}{f', as {self.moved} is taken' if self.moved else ''}"
        risk: Risk = "high" if doubtful and not reads else "medium" if doubtful else "low"
        yield Guess("/method", self.verb.verb, why, self.confidence, " or ".join(self.verb.others[:3]), risk)
        why = "; ".join((*self.path.reasons[:4], *([f"{self.moved} is taken"] if self.moved else ())))
        if candidate.path is None:
            yield Guess("/path", self.path.path, why, 0.6)
        # Renamed parameters are not a guess: the URL of the handler shows the mapping.
        elif self.moved or self.path.path != self.path.url_path(candidate.path.partition("#")[0]):
            yield Guess("/path", f"{self.path.path} for {candidate.path[:120]}", why, 0.8)


def claim_places(
    candidates: Sequence[Candidate], catalog: Catalog, occupied: Iterable[tuple[str, str]] = ()
) -> list[EndpointClaim]:
    """Claim a method and a path for each candidate; those that keep the described path choose first."""
    verbs = [choose_verb(candidate, catalog) for candidate in candidates]
    wanted = [EndpointClaim(verb, _path(one, verb, catalog)) for one, verb in zip(candidates, verbs, strict=True)]
    taken: dict[str, TemplateSet] = {}
    for method, path in occupied:
        template = parse_template(path)
        if not isinstance(template, Fault):
            taken.setdefault(method, TemplateSet()).add(template)
    order = sorted(range(len(wanted)), key=lambda at: bool(wanted[at].path.reasons))
    claims = {at: _settle(candidates[at], wanted[at], catalog, taken) for at in order}
    return [claims[at] for at in range(len(wanted))]


def _settle(
    candidate: Candidate, wanted: EndpointClaim, catalog: Catalog, taken: dict[str, TemplateSet]
) -> EndpointClaim:
    rival = ""
    for verb, path in _choices(candidate, wanted, catalog):
        template = parse_template(path)
        if isinstance(template, Fault):
            continue
        standing = taken.setdefault(verb, TemplateSet()).add(template)
        if standing is None:
            if not rival:
                return wanted
            return EndpointClaim(replace(wanted.verb, verb=verb), replace(wanted.path, path=path), rival)
        rival = rival or f"{verb} {standing.path}"
    raise AssertionError("numbered paths never end")


def _choices(candidate: Candidate, wanted: EndpointClaim, catalog: Catalog) -> Iterator[tuple[str, str]]:
    verb = wanted.verb.verb
    yield verb, wanted.path.path
    own = _OF_THE_METHOD.get(candidate.method or "")
    if verb == "UPDATE" and own in catalog.names:
        yield own, wanted.path.path
    if candidate.path is None:
        yield from ((verb, other.path) for other in _named(candidate, wanted.verb, catalog))
    yield from ((verb, path) for path in other_paths(wanted.path, candidate.path or "", verb, catalog.names))


def _path(candidate: Candidate, verb: VerbChoice, catalog: Catalog) -> PathChoice:
    if candidate.path is None:
        return next(_named(candidate, verb, catalog))
    chosen = {"name": candidate.name, "topic": topic_of(candidate, catalog.names), "word": verb.word}
    return choose_path(candidate.path, verb.verb, catalog.names, **chosen, says_all=verb.says_all)


def _named(candidate: Candidate, verb: VerbChoice, catalog: Catalog) -> Iterator[PathChoice]:
    """Yield the paths for a candidate without one. A word that its verb does not say stays in the path."""
    word = verb.word if verb.says_all else ""
    topic = candidate.tags[0] if candidate.tags else ""
    reasons = (f"no path is described; {candidate.name_kind} names the subject",)
    for described in named_paths(candidate, verb.word, catalog.names, says_all=verb.says_all):
        choice = choose_path(described, verb.verb, catalog.names, name=candidate.name, topic=topic, word=word)
        yield replace(choice, reasons=reasons)


_LONGEST_DOMAIN: Final = 24


@dataclass(frozen=True, slots=True)
class Judgement:
    """Contract of a candidate, except for the parts that depend on how its upstream is called."""

    candidate: Candidate
    method: str
    path: PathChoice
    description: str
    semantic: Semantic
    guesses: tuple[Guess, ...]


def judge_all(
    candidates: Sequence[Candidate], catalog: Catalog, occupied: Iterable[tuple[str, str]] = ()
) -> list[Judgement]:
    """Judge the candidates of one upstream, in their order. `occupied` are methods with paths that are taken."""
    claims = claim_places(candidates, catalog, occupied)
    return [_judge(candidate, claim, catalog) for candidate, claim in zip(candidates, claims, strict=True)]


def choose_scopes(title: str, impact: str, *, has_credential: bool) -> tuple[tuple[str, ...], list[Guess]]:
    """Choose the scopes of an endpoint. Changes and the operator's credential are never open to everyone."""
    if impact == "informational" and not has_credential:
        return (), []
    domain = "-".join(words(title))[:_LONGEST_DOMAIN].strip("-") or "upstream"
    scope = f"{domain}:{'read' if impact == 'informational' else 'write'}"
    why = "it changes something" if impact != "informational" else "it uses the operator's own credential"
    risk: Risk = "medium" if impact != "informational" else "low"
    return (scope,), [Guess("/required_scopes", f"scope {scope}", why, 0.5, "a narrower scope", risk)]


def _judge(candidate: Candidate, claim: EndpointClaim, catalog: Catalog) -> Judgement:
    verb = claim.verb.verb
    impact = guess_impact(candidate, claim.verb, catalog)
    said = write_sentences(candidate, verb, claim.path.path, impact=impact.impact)
    semantic = Semantic(
        intent=said.intent,
        actor="agent",
        outcome=said.outcome,
        capability=impact.capability,
        confidence=impact.confidence,
        impact=impact.impact,
        is_idempotent=impact.is_idempotent,
    )
    guesses = (*claim.guesses(candidate), *impact.guesses, *said.guesses)
    return Judgement(candidate, verb, claim.path, said.description, semantic, guesses)
