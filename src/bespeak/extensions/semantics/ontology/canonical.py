"""Canonical N-Quads of a document: one text for one meaning, whatever the notation (RDFC-1.0)."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.contract.core_ontology import DEFAULT, Namespace
from bespeak.extensions.semantics.ontology.contexts import (
    LIMITS,
    Contexts,
    DocumentRefused,
    OntologyLimits,
    shipped_contexts,
)
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.ontology.triples import RdfNotation, notation_of, parse_quads
from bespeak.extensions.semantics.rules import BLANK_NODES, TOO_LARGE
from bespeak.extensions.semantics.store import MOST_CONTENT, Artifact
from bespeak.extensions.semantics.terms import Ontology
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.tree import Location

_MOST_WORK: Final = 3e7  # steps of the canonicalization; about two seconds
_Role = tuple[str, str]  # side of a blank node in a triple, and the predicate


def canonical_quads(
    data: bytes,
    file: str,
    notation: RdfNotation | None = None,
    *,
    namespace: Namespace = DEFAULT,
    contexts: Contexts | None = None,
    limits: OntologyLimits = LIMITS,
) -> bytes | Diagnostic:
    """Return the sorted N-Quads of a document with canonical names for blank nodes, or why there are none."""
    from pyoxigraph import CanonicalizationAlgorithm, Dataset  # noqa: PLC0415 - an extra

    known = {**shipped_contexts(namespace), **(contexts or {})}
    quads: list[Any] = []
    try:
        for quad in parse_quads(data, notation or notation_of(file, data), file, known, limits):
            quads.append(quad)
            if len(quads) > limits.triples:
                return TOO_LARGE.found(f"an ontology may have {limits.triples} triples", Location(file))
    except DocumentRefused as refused:
        return refused.finding
    if canonical_work(quads) > _MOST_WORK:
        message = "there are so many blank nodes alike that they cannot be told apart with bounded work"
        return BLANK_NODES.found(message, Location(file))
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    # RDFC-1.0 sorts by code points, as Python does.
    return "".join(sorted(str(dataset).splitlines(keepends=True))).encode()


def content_digest(canonical: bytes) -> str:
    return hashlib.sha256(canonical).hexdigest()


def canonical_work(quads: Iterable[Any]) -> float:
    """Estimate the steps that RDFC-1.0 needs, from above.

    It tries every order of neighbours that look alike, again for each node of a group of blank nodes that hang
    together. Blank nodes whose own triples already tell them apart cost nothing.
    """
    from pyoxigraph import BlankNode  # noqa: PLC0415 - an extra

    signs: defaultdict[str, list[tuple[str, ...]]] = defaultdict(list)
    links: defaultdict[str, list[tuple[_Role, str]]] = defaultdict(list)
    for quad in quads:
        sides = {"s": quad.subject, "o": quad.object, "g": quad.graph_name}
        nodes = {side: node.value for side, node in sides.items() if type(node) is BlankNode}
        for side, name in nodes.items():
            signs[name].append(
                tuple(
                    ("_:a" if node.value == name else "_:z") if type(node) is BlankNode else str(node)
                    for node in (quad.subject, quad.predicate, quad.object, quad.graph_name)
                )
            )
            near = ((other, neighbour) for other, neighbour in nodes.items() if neighbour != name)
            links[name] += [((side + other, quad.predicate.value), neighbour) for other, neighbour in near]
    looks = {name: hash(tuple(sorted(found))) for name, found in signs.items()}
    counts = Counter(looks.values())
    alike = {name for name, look in looks.items() if counts[look] > 1}
    return sum(_group_work(group, links, looks) for group in _groups(alike, links))


def _groups(alike: set[str], links: Mapping[str, list[tuple[_Role, str]]]) -> Iterable[set[str]]:
    """Yield the sets of look-alikes that are linked with each other."""
    rest = set(alike)
    while rest:
        group, waiting = set(), [rest.pop()]
        while waiting:
            name = waiting.pop()
            group.add(name)
            near = {other for _, other in links.get(name, ())} & rest
            rest -= near
            waiting += near
        yield group


def _group_work(group: set[str], links: Mapping[str, list[tuple[_Role, str]]], looks: Mapping[str, int]) -> float:
    """Return the cube of the size, which a chain costs, times the orders of neighbours that look alike."""
    orders = 0.0
    for name in group:
        near = Counter((role, looks[other]) for role, other in set(links.get(name, ())) if other in group)
        orders += sum(math.lgamma(count + 1) for count in near.values())
    return len(group) ** 3 * math.exp(min(orders, 100.0))


# What was admitted to the registry is read whole, even if the default limits have become lower since.
_LIMITS = OntologyLimits(size=MOST_CONTENT, triples=10_000_000, characters=4 * MOST_CONTENT)


def read_registered(artifact: Artifact, namespace: Namespace = DEFAULT) -> Ontology | Fault:
    """Read a registered ontology, or say why it must not be used."""
    row = artifact.row
    if content_digest(artifact.content) != row.digest:
        return Fault(f"the content of {row.id} {row.version} was changed: it does not have the registered digest")
    file, id_, version = f"{row.id} {row.version}", row.id, row.version
    ontology, findings = read_ontology(
        artifact.content, file, "nquads", id=id_, version=version, namespace=namespace, limits=_LIMITS
    )
    return ontology if ontology is not None else Fault(findings[0].message)
