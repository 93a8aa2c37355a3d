"""The method and path of each candidate: all pairs differ, and no two match one request equally well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.grammar.path_syntax import parse_template
from bespeak.contract.grammar.template_set import TemplateSet
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.guess import UNSURE, Guess
from bespeak.documents.adoption.named_path import named_paths
from bespeak.documents.adoption.path_choice import PathChoice, choose_path, other_paths, topic_of
from bespeak.documents.adoption.verb_choice import VerbChoice, choose_verb
from bespeak.protocol.fault import Fault

_OF_THE_METHOD: Final = {"PUT": "REPLACE", "PATCH": "MODIFY"}
"""What a method means where UPDATE is taken by the other one."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Verb and path of one candidate."""

    verb: VerbChoice
    path: PathChoice
    moved: str = ""
    """Endpoint that already had the first choice; empty if the first choice was free."""

    @property
    def confidence(self) -> float:
        """Confidence in the place; low if another endpoint has the first choice."""
        return min(self.verb.confidence, 0.5) if self.moved else self.verb.confidence

    def guesses(self, candidate: Candidate) -> Iterator[Guess]:
        """Yield the guesses about the verb and the path that a person has to confirm."""
        doubtful = self.confidence < UNSURE
        reads = candidate.claims_to_read and candidate.method != "OPTIONS"
        yield Guess(
            at="/method",
            text=self.verb.verb,
            why=f"{self.verb.why}{f', as {self.moved} is taken' if self.moved else ''}",
            confidence=self.confidence,
            otherwise=" or ".join(self.verb.others[:3]),
            risk="high" if doubtful and not reads else "medium" if doubtful else "low",
        )
        why = "; ".join((*self.path.reasons[:4], *([f"{self.moved} is taken"] if self.moved else ())))
        if candidate.path is None:
            yield Guess(at="/path", text=self.path.path, why=why, confidence=0.6)
        # Renamed parameters are not a guess: the URL of the handler shows the mapping.
        elif self.moved or self.path.path != self.path.url_path(candidate.path.partition("#")[0]):
            text = f"{self.path.path} for {candidate.path[:120]}"
            yield Guess(at="/path", text=text, why=why, confidence=0.8)


def claim_places(
    candidates: Sequence[Candidate], catalog: Catalog, occupied: Iterable[tuple[str, str]] = ()
) -> list[Claim]:
    """Claim a method and a path for each candidate, in order. Candidates that keep the described path choose first.

    `occupied` are pairs of a method and a path that endpoints have already.
    """
    wanted = []
    for candidate in candidates:
        verb = choose_verb(candidate, catalog)
        wanted.append(Claim(verb, _path(candidate, verb, catalog)))
    taken: dict[str, TemplateSet] = {}
    for method, path in occupied:
        template = parse_template(path)
        if not isinstance(template, Fault):
            taken.setdefault(method, TemplateSet()).add(template)
    claims: list[Claim | None] = [None] * len(wanted)
    for at in sorted(range(len(wanted)), key=lambda index: (bool(wanted[index].path.reasons), index)):
        claims[at] = _settle(candidates[at], wanted[at], catalog, taken)
    return [claim for claim in claims if claim is not None]


def _settle(candidate: Candidate, wanted: Claim, catalog: Catalog, taken: dict[str, TemplateSet]) -> Claim:
    rival = ""
    for verb, path in _choices(candidate, wanted, catalog):
        template = parse_template(path)
        if isinstance(template, Fault):
            continue
        standing = taken.setdefault(verb, TemplateSet()).add(template)
        if standing is None:
            if not rival:
                return wanted
            return Claim(replace(wanted.verb, verb=verb), replace(wanted.path, path=path), rival)
        rival = rival or f"{verb} {standing.path}"
    raise AssertionError("numbered paths never end")


def _choices(candidate: Candidate, wanted: Claim, catalog: Catalog) -> Iterator[tuple[str, str]]:
    verb = wanted.verb.verb
    yield verb, wanted.path.path
    own = _OF_THE_METHOD.get(candidate.method or "")
    if verb == "UPDATE" and own in catalog.names:
        yield own, wanted.path.path
    if candidate.path is None:
        yield from ((verb, other.path) for other in _named(candidate, wanted.verb, catalog))
    for path in other_paths(wanted.path, candidate.path or "", verb, catalog.names):
        yield verb, path


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
