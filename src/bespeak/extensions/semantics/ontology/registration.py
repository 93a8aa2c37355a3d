"""Registration of an ontology (IoA 5.4): canonical N-Quads, one text for one meaning (RDFC-1.0), or why not."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace, is_iri
from bespeak.extensions.semantics.ontology.contexts import LIMITS, DocumentRefused, OntologyLimits, shipped_contexts
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.ontology.triples import RdfNotation, notation_of, parse_quads
from bespeak.extensions.semantics.rules import BAD_IRI, BLANK_NODES, CAPABILITY_RANGE, IDENTITY, TOO_LARGE, VERSION
from bespeak.extensions.semantics.store import MOST_CONTENT, RegisterArtifact, compress
from bespeak.extensions.semantics.terms import Meanings, Ontology
from bespeak.state.identity.signed_document import ArtifactStatement
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors
from bespeak.text.source.tree import Location

_MOST_WORK: Final = 3e7  # steps of the canonicalization; about two seconds
_Role = tuple[str, str]  # side of a blank node in a triple, and the predicate


def canonical_quads(
    data: bytes,
    file: str,
    notation: RdfNotation | None = None,
    *,
    namespace: Namespace = DEFAULT,
    limits: OntologyLimits = LIMITS,
) -> bytes | Diagnostic:
    """Return the sorted N-Quads of a document with canonical names for blank nodes, or why there are none."""
    from pyoxigraph import CanonicalizationAlgorithm, Dataset  # noqa: PLC0415 - an extra

    quads: list[Any] = []
    try:
        for quad in parse_quads(data, notation or notation_of(file, data), file, shipped_contexts(namespace), limits):
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
            others = ((other, neighbour) for other, neighbour in nodes.items() if neighbour != name)
            links[name] += [((side + other, quad.predicate.value), neighbour) for other, neighbour in others]
    looks = {name: hash(tuple(sorted(found))) for name, found in signs.items()}
    counts = Counter(looks.values())
    alike = {name for name, look in looks.items() if counts[look] > 1}
    work = 0.0
    for group in _groups(alike, links):
        # The cube of the size, which a chain costs, times the orders of neighbours that look alike.
        orders = 0.0
        for name in group:
            near = Counter((role, looks[other]) for role, other in set(links.get(name, ())) if other in group)
            orders += sum(math.lgamma(count + 1) for count in near.values())
        work += len(group) ** 3 * math.exp(min(orders, 100.0))
    return work


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


def _check_agents(ontology: Ontology, meanings: Meanings) -> Iterator[Diagnostic]:
    """Yield what breaks the range of hasCapability. Terms that are not declared here may be declared elsewhere."""
    for agent, capabilities in ontology.agents.items():
        provided = ((one, meanings.capabilities, "an ioa:Capability") for one in capabilities)
        for iri, known, wanted in ((agent, meanings.agents, "an ioa:Agent"), *provided):
            if iri in meanings and iri not in known:
                wrong = CAPABILITY_RANGE.message.format(value=brief(iri), other=wanted)
                yield CAPABILITY_RANGE.found(f"ioa:hasCapability of {brief(agent)} {wrong}")


_DECISIVE = frozenset({IDENTITY.id, VERSION.id})  # rules that are advice for a reader, and conditions for the registry


class Judged(msgspec.Struct, frozen=True):
    findings: list[Diagnostic]
    ontology: Ontology | None = None
    command: RegisterArtifact | None = None  # command to run, without signer and actor; None if the document is refused

    @property
    def statement(self) -> ArtifactStatement:
        assert self.command is not None, "only a document that is not refused can be signed"
        return ArtifactStatement(self.command.kind, self.command.id, self.command.version, self.command.digest)


def judge_registration(
    data: bytes,
    file: str,
    notation: RdfNotation | None = None,
    *,
    id: str = "",  # noqa: A002 - the word of the draft
    version: str = "",
    namespace: Namespace = DEFAULT,
    limits: OntologyLimits = LIMITS,
) -> Judged:
    """Read an ontology and prepare its registration. Only a document without errors is registered."""
    ontology, findings = read_ontology(data, file, notation, id=id, version=version, namespace=namespace, limits=limits)
    if ontology is None:
        return Judged(findings)
    findings = [replace(one, severity="error") if one.rule in _DECISIVE else one for one in findings]
    if not is_iri(ontology.id):  # it may come from the caller instead of the document
        message = f"the id of an ontology must be an absolute IRI; got {brief(ontology.id)}"
        findings.append(BAD_IRI.found(message, Location(file)))
    findings += _check_agents(ontology, Meanings([ontology], namespace))
    if has_errors(findings):
        return Judged(findings, ontology)
    content = canonical_quads(data, file, notation, namespace=namespace, limits=limits)
    if isinstance(content, bytes) and len(content) > MOST_CONTENT:
        message = f"canonical N-Quads may have {MOST_CONTENT} bytes; got {len(content)}"
        content = TOO_LARGE.found(message, Location(file))
    if isinstance(content, Diagnostic):
        return Judged([*findings, content], ontology)
    command = RegisterArtifact(
        kind="ontology",
        id=ontology.id,
        version=ontology.version,
        digest=content_digest(content),
        content=compress(content),
        size=len(content),
        source=file[:500],
    )
    return Judged(findings, ontology, command)
