"""The method and path of each candidate: all pairs differ, and no two match one request equally well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.grammar.path_syntax import leaking_segment, parse_template
from bespeak.contract.grammar.template_set import TemplateSet
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.guess import UNSURE, Guess
from bespeak.documents.adoption.naming import plural, words
from bespeak.documents.adoption.path_choice import RELATING, PathChoice, choose_path, other_paths, topic_of
from bespeak.documents.adoption.verb_choice import VerbChoice, choose_verb
from bespeak.documents.adoption.verb_words import is_verb
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

    def guesses(self, candidate: Candidate) -> Iterator[Guess]:
        """Yield the guesses about the verb and the path that a person has to confirm."""
        doubtful = self.verb.confidence < UNSURE
        reads = candidate.claims_to_read and candidate.method != "OPTIONS"
        yield Guess(
            at="/method",
            text=self.verb.verb,
            why=f"{self.verb.why}{f', as {self.moved} is taken' if self.moved else ''}",
            confidence=self.verb.confidence,
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


def claim_places(candidates: Sequence[Candidate], catalog: Catalog) -> list[Claim]:
    """Claim a method and a path for each candidate, in order. Candidates that keep the described path choose first."""
    wanted = []
    for candidate in candidates:
        verb = choose_verb(candidate, catalog)
        wanted.append(Claim(verb, _path(candidate, verb, catalog)))
    taken: dict[str, TemplateSet] = {}
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
            sure = round(min(wanted.verb.confidence, 0.5), 2)
            chosen = replace(wanted.verb, verb=verb, confidence=sure)
            return Claim(chosen, replace(wanted.path, path=path), rival)
        rival = rival or f"{verb} {standing.path}"
    raise AssertionError("numbered paths never end")


def _choices(candidate: Candidate, wanted: Claim, catalog: Catalog) -> Iterator[tuple[str, str]]:
    verb = wanted.verb.verb
    yield verb, wanted.path.path
    own = _OF_THE_METHOD.get(candidate.method or "")
    if verb == "UPDATE" and own in catalog.names:
        yield own, wanted.path.path
    for path in other_paths(wanted.path, candidate.path or "", verb, catalog.names):
        yield verb, path


def _path(candidate: Candidate, verb: VerbChoice, catalog: Catalog) -> PathChoice:
    word = verb.word if verb.says_all else ""
    described = _named_path(candidate, word, catalog.names) if candidate.path is None else candidate.path
    topic = topic_of(candidate, catalog.names)
    chosen = {"name": candidate.name, "topic": topic, "word": verb.word}
    choice = choose_path(described, verb.verb, catalog.names, **chosen, says_all=verb.says_all)
    if candidate.path is None:
        return replace(choice, reasons=(f"no path is described; {candidate.name_kind} names the subject",))
    return choice


def _named_path(candidate: Candidate, word: str, verbs: frozenset[str]) -> str:
    """Return a path for the noun in a name: /user for `acme_get_user_by_id` and `create_or_update_user`."""
    parts = words(candidate.name)
    doing = [index for index, part in enumerate(parts) if part == word or is_verb(part)]
    start = doing[0] if doing else 0
    thing = list(dropwhile(lambda part: part in RELATING or part == word or is_verb(part), parts[start:]))
    name = "-".join(takewhile(lambda part: part not in RELATING, thing)) or "-".join(parts[:start])
    return f"/{name if leaking_segment(f'/{name}', verbs) is None else plural(name)}"
