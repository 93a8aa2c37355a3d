"""Everything guessed about a candidate, for any kind of upstream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.semantic import Semantic
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.claims import Claim, claim_places
from bespeak.documents.adoption.guess import Guess
from bespeak.documents.adoption.impact_guess import guess_impact
from bespeak.documents.adoption.naming import words
from bespeak.documents.adoption.path_choice import PathChoice
from bespeak.documents.adoption.sentences import write_sentences

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
    guess = Guess(
        at="/required_scopes",
        text=f"scope {scope}",
        why="it changes something" if impact != "informational" else "it uses the operator's own credential",
        confidence=0.5,
        otherwise="a narrower scope",
        risk="medium" if impact != "informational" else "low",
    )
    return (scope,), [guess]


def _judge(candidate: Candidate, claim: Claim, catalog: Catalog) -> Judgement:
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
