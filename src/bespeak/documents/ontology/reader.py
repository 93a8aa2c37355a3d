"""Reader of ontologies: a document to an `Ontology`, within limits, with findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, get_args

from bespeak.contract.ontology.namespace import DEFAULT, OBO, OWL, RDF, RDFS, SKOS, XSD, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.term import Kind, Scope, Synonym, Term
from bespeak.contract.ontology.version import parse_version
from bespeak.documents.ontology.contexts import Contexts
from bespeak.documents.ontology.core_context import shipped_contexts
from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.documents.ontology.graph import Graph
from bespeak.documents.ontology.limits import LIMITS, Limits
from bespeak.documents.ontology.notation import RdfNotation, notation_of
from bespeak.documents.ontology.rules import IDENTITY, LEFT_OUT, VERSION
from bespeak.documents.ontology.triples import read_triples
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.span import Location

_KINDS: Final[Mapping[str, Kind]] = {
    f"{OWL}Class": "class",
    f"{RDFS}Class": "class",
    f"{OWL}ObjectProperty": "object_property",
    f"{OWL}DatatypeProperty": "data_property",
}
_GENERIC: Final = frozenset(
    {
        f"{RDF}Property",
        *(f"{OWL}{kind}Property" for kind in ("Functional", "InverseFunctional", "Symmetric", "Transitive")),
    }
)
_NOT_TERMS: Final = frozenset(
    {f"{OWL}Ontology", f"{OWL}AnnotationProperty", f"{OWL}OntologyProperty", f"{RDFS}Datatype", f"{SKOS}ConceptScheme"}
)
_BUILT_IN: Final = (OWL, RDF, RDFS, OBO)
_LITERAL_RANGES: Final = (XSD, f"{RDFS}Literal", f"{RDF}langString", f"{RDF}PlainLiteral")
_SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
_MOST_FINDINGS: Final = 20


def read_ontology(
    data: bytes,
    file: str,
    notation: RdfNotation | None = None,
    *,
    id: str = "",  # noqa: A002 - the word of the draft
    version: str = "",
    namespace: Namespace = DEFAULT,
    contexts: Contexts | None = None,
    limits: Limits = LIMITS,
) -> tuple[Ontology | None, list[Diagnostic]]:
    """Read an ontology; None with an error in the findings if the document is refused.

    `id` and `version` override what the document declares; `contexts` are known beside the shipped ones.
    """
    known = {**shipped_contexts(namespace), **(contexts or {})}
    try:
        triples = read_triples(data, notation or notation_of(file, data), file, known, limits)
        graph = Graph(triples, namespace, file, limits)
        return _Reading(graph, file, limits).ontology(id, version)
    except DocumentRefused as refused:
        return None, [refused.finding]


class _Reading:
    """One document on its way to an ontology."""

    def __init__(self, graph: Graph, file: str, limits: Limits) -> None:
        self._graph, self._file, self._limits = graph, file, limits
        self._findings: list[Diagnostic] = []

    def ontology(self, given_id: str, given_version: str) -> tuple[Ontology, list[Diagnostic]]:
        graph = self._graph
        iris = {iri for iri in (*graph.nodes, *graph.names) if not iri.startswith("_:")}
        terms = {iri: term for iri in sorted(iris) if (term := self._term(iri)) is not None}
        headers = [iri for iri in sorted(iris) if f"{OWL}Ontology" in graph.named(iri, "types")]
        headers = headers or [iri for iri in sorted(iris) if f"{SKOS}ConceptScheme" in graph.named(iri, "types")]
        header = headers[0] if len(headers) == 1 else ""
        made = Ontology(
            id=given_id or header or self._assume_id(headers, terms),
            version=given_version or self._version(header),
            terms=terms,
            imports=graph.named(header, "imports"),
            agents=self._agents(),
        )
        if parse_version(made.version) is None:
            message = (
                f"the version of {brief(made.id)} must be numbers with points, or a date; got {brief(made.version)}"
            )
            self._report(VERSION.found(message, Location(self._file)))
        return made, self._findings

    def _assume_id(self, headers: list[str], terms: Mapping[str, Term]) -> str:
        """Take the most frequent namespace for the id of a document that does not declare exactly one."""
        spaces = Counter(iri[: len(iri) - len(term.local_name)].rstrip("#/") for iri, term in terms.items())
        assumed = max(spaces.items(), key=lambda one: (one[1], one[0]))[0] if spaces else ""
        count = "no ontology" if not headers else f"{len(headers)} ontologies"
        message = f"the document declares {count}; its id is assumed to be {brief(assumed)}"
        self._report(IDENTITY.found(message, Location(self._file)))
        return assumed

    def _version(self, header: str) -> str:
        said = self._graph.texts(header, "version")
        # OBO files write `releases/2026-03-01` or a comment; the IRI of a version ends in, or contains, its number.
        iris = [part for iri in self._graph.named(header, "version_iri") for part in reversed(iri.split("/"))]
        candidates = [part.removeprefix("releases/") for part in (*said, *iris)]
        return next((one for one in candidates if parse_version(one) is not None), said[0][:80] if said else "")

    def _agents(self) -> dict[str, tuple[str, ...]]:
        pairs: dict[str, set[str]] = {}
        for node, slots in self._graph.nodes.items():
            for capability in slots.get("has_capability", ()):
                pairs.setdefault(node, set()).add(capability)
            for agent in slots.get("provided_by", ()):
                pairs.setdefault(agent, set()).add(node)
        return {agent: tuple(sorted(found)) for agent, found in sorted(pairs.items())}

    def _term(self, iri: str) -> Term | None:
        graph = self._graph
        types = graph.named(iri, "types")
        kind = self._kind(iri, types)
        if kind is None:
            return None
        parents, fillers = graph.operands(iri, "parents")
        equivalents, more = graph.operands(iri, "equivalents")
        same = set(graph.named(iri, "equivalents"))
        # The named parts of an equivalent intersection stand above a class: all of its members are in each of them.
        parents |= equivalents - same
        return Term(
            iri=iri,
            kind=kind,
            types=tuple(one for one in types if not one.startswith(_BUILT_IN)),
            labels=self._bounded(iri, "label", graph.texts(iri, "labels")),
            synonyms=self._synonyms(iri),
            abbreviations=self._bounded(
                iri, "abbreviation", [*graph.texts(iri, "preferred_abbr"), *graph.texts(iri, "abbr")]
            ),
            comments=self._bounded(iri, "comment", graph.texts(iri, "comments"), quiet=True),
            parents=tuple(sorted(parents - {iri, f"{OWL}Thing"})),
            equivalents=tuple(sorted(same - {iri})),
            domains=tuple(sorted(graph.operands(iri, "domains")[0])),
            ranges=tuple(sorted(graph.operands(iri, "ranges")[0])),
            inverses=graph.named(iri, "inverses"),
            fillers=tuple(sorted(fillers | more)),
            in_domain=graph.named(iri, "in_domain"),
            above=graph.named(iri, "above"),
            requires=graph.named(iri, "requires"),
            applies_to=graph.named(iri, "applies_to"),
            inputs=self._bounded(iri, "input", graph.texts(iri, "inputs")),
            outputs=self._bounded(iri, "output", graph.texts(iri, "outputs")),
            deprecated="true" in graph.texts(iri, "deprecated"),
        )

    def _kind(self, iri: str, types: Iterable[str]) -> Kind | None:
        kinds = {_KINDS[one] for one in types if one in _KINDS}
        if kinds:
            # A class that is also used as an individual (punning) is a class.
            return next(kind for kind in get_args(Kind) if kind in kinds)
        if not _NOT_TERMS.isdisjoint(types):
            return None
        if not _GENERIC.isdisjoint(types):
            ranges = self._graph.named(iri, "ranges")
            literal = bool(ranges) and all(one.startswith(_LITERAL_RANGES) for one in ranges)
            return "data_property" if literal else "object_property"
        if f"{OWL}NamedIndividual" in types or any(not one.startswith(_BUILT_IN) for one in types):
            return "individual"
        return "class" if self._graph.nodes.get(iri, {}).get("parents") else None

    def _synonyms(self, iri: str) -> tuple[Synonym, ...]:
        found: dict[str, Scope] = {}
        for scope in _SCOPES:
            for text in self._bounded(iri, "synonym", self._graph.synonyms(iri, scope)):
                found.setdefault(text, scope)
        return tuple(Synonym(text, scope) for text, scope in found.items())

    def _bounded(self, iri: str, what: str, texts: list[str], *, quiet: bool = False) -> tuple[str, ...]:
        """Return texts in one line each; report those that are too long or too many, except comments, which are cut."""
        if not texts:
            return ()
        lines = list(dict.fromkeys(" ".join(text[: 2 * self._limits.label].split()) for text in texts))
        kept = [line[: self._limits.label] if quiet else line for line in lines]
        kept = [line for line in kept if 0 < len(line) <= self._limits.label][: self._limits.labels]
        if len(kept) < len(lines) and not quiet:
            most = f"{self._limits.labels} of {self._limits.label} characters"
            message = f"{brief(iri)} has {len(lines)} values of the kind {what}; {len(kept)} are kept, at most {most}"
            self._report(LEFT_OUT.found(message, Location(self._file)))
        return tuple(kept)

    def _report(self, finding: Diagnostic) -> None:
        if len(self._findings) < _MOST_FINDINGS:
            self._findings.append(finding)
