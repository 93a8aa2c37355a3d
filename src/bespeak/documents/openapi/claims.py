"""Which method and path each operation gets: no two the same, no two that match one request equally well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.grammar.path_syntax import PathFault, parse_template
from bespeak.contract.grammar.template_set import TemplateSet
from bespeak.documents.openapi.description import Operation
from bespeak.documents.openapi.path_choice import PathChoice, choose_path, other_paths, topic_of
from bespeak.documents.openapi.verb_choice import VerbChoice, choose_verb, further_verbs

_OTHER_VERBS: Final = 2
"""Other verbs that are tried before another path is: a third one would hardly say the same."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Verb and path of one operation."""

    verb: VerbChoice
    path: PathChoice
    moved: str = ""
    """What stood in the way of the first choice."""


def claim_places(operations: Sequence[Operation], catalog: Catalog) -> list[Claim]:
    """A claim for each operation, in their order. Those whose path stays as it is described choose first."""
    wanted = []
    for operation in operations:
        verb = choose_verb(operation, catalog)
        topic = topic_of(operation, catalog.names)
        path = choose_path(operation.path, verb.verb, catalog.names, topic=topic, word=verb.word)
        wanted.append(Claim(verb, path))
    taken: dict[str, TemplateSet] = {}
    claims: list[Claim | None] = [None] * len(wanted)
    for at in sorted(range(len(wanted)), key=lambda index: (bool(wanted[index].path.reasons), index)):
        claims[at] = _settle(operations[at], wanted[at], catalog, taken)
    return [claim for claim in claims if claim is not None]


def _settle(operation: Operation, wanted: Claim, catalog: Catalog, taken: dict[str, TemplateSet]) -> Claim:
    rival = ""
    for verb, path in _choices(operation, wanted, catalog):
        template = parse_template(path)
        if isinstance(template, PathFault):
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


def _choices(operation: Operation, wanted: Claim, catalog: Catalog) -> Iterator[tuple[str, str]]:
    verb = wanted.verb.verb
    yield verb, wanted.path.path
    topic = topic_of(operation, catalog.names)
    for other in islice(further_verbs(wanted.verb, catalog), _OTHER_VERBS):
        yield other, choose_path(operation.path, other, catalog.names, topic=topic, word=wanted.verb.word).path
    for path in other_paths(wanted.path, operation.path, verb, catalog.names):
        yield verb, path
