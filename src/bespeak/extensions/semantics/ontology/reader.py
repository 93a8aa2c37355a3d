"""Reader of ontologies: a document or a file to an `Ontology`, within limits, with findings."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from bespeak.contract.core_ontology import DEFAULT, OBO, OWL, RDF, RDFS, SKOS, XSD, Namespace
from bespeak.extensions.semantics.ontology.contexts import (
    LIMITS,
    Contexts,
    DocumentRefused,
    OntologyLimits,
    shipped_contexts,
)
from bespeak.extensions.semantics.ontology.triples import RdfNotation, Triple, notation_of, read_triples, refuse_size
from bespeak.extensions.semantics.rules import IDENTITY, LEFT_OUT, TOO_LARGE, VERSION
from bespeak.extensions.semantics.terms import Kind, Ontology, Scope, Synonym, Term, parse_version
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief
from bespeak.text.reading.rules import UNREADABLE
from bespeak.text.source.tree import Location

_IAO: Final = "http://purl.obolibrary.org/obo/IAO_"
_SLOTS: Final[Mapping[str, str]] = {
    f"{RDF}type": "types",
    f"{RDF}first": "first",
    f"{RDF}rest": "rest",
    **dict.fromkeys((f"{RDFS}label", f"{SKOS}prefLabel"), "labels"),
    **dict.fromkeys((f"{SKOS}altLabel", f"{OBO}hasExactSynonym", f"{_IAO}0000118"), "exact"),
    **dict.fromkeys((f"{OBO}hasRelatedSynonym", f"{OBO}hasSynonym"), "related"),
    f"{OBO}hasBroadSynonym": "broad",
    f"{OBO}hasNarrowSynonym": "narrow",
    f"{SKOS}hiddenLabel": "hidden",
    **dict.fromkeys((f"{RDFS}comment", f"{SKOS}definition", f"{_IAO}0000115"), "comments"),
    **dict.fromkeys((f"{RDFS}subClassOf", f"{RDFS}subPropertyOf", f"{SKOS}broader"), "parents"),
    f"{RDFS}domain": "domains",
    f"{RDFS}range": "ranges",
    f"{OWL}inverseOf": "inverses",
    **dict.fromkeys((f"{OWL}equivalentClass", f"{OWL}equivalentProperty"), "equivalents"),
    f"{OWL}someValuesFrom": "some",
    **dict.fromkeys((f"{OWL}unionOf", f"{OWL}intersectionOf"), "members"),
    f"{OWL}deprecated": "deprecated",
    f"{OWL}versionInfo": "version",
    f"{OWL}versionIRI": "version_iri",
}
_CORE_SLOTS: Final[Mapping[str, str]] = {
    "inDomain": "in_domain",
    "subDomainOf": "above",
    "requiresCapability": "requires",
    "appliesToDomain": "applies_to",
    "inputs": "inputs",
    "outputs": "outputs",
    "abbr": "abbr",
    "preferredAbbr": "preferred_abbr",
    "hasCapability": "has_capability",
    "providedBy": "provided_by",
}
_LITERAL: Final = frozenset(
    {"labels", "comments", "abbr", "preferred_abbr", "version", "deprecated", "inputs", "outputs"}
)
_NOTHING: Final[Mapping[str, Any]] = {}
_SYNONYMS: Final = frozenset(get_args(Scope))


class Graph:
    """Nodes of a document. Names are kept with their languages, references as IRIs or blank nodes."""

    def __init__(self, triples: Iterable[Triple], namespace: Namespace, file: str, limits: OntologyLimits) -> None:
        self.nodes: dict[str, dict[str, list[str]]] = {}  # resources and plain values by node and slot
        self.names: dict[str, dict[str, list[tuple[str, str]]]] = {}  # languages and texts by node and slot
        self._file, self._limits, self._work = file, limits, 0
        slots = {**_SLOTS, **{namespace(name): slot for name, slot in _CORE_SLOTS.items()}}
        nodes, names = self.nodes, self.names
        for subject, predicate, value, language in triples:
            slot = slots.get(predicate)
            if slot is None:
                continue
            if language is None:
                if slot not in _LITERAL:  # a label that is not a literal names nothing
                    nodes.setdefault(subject, {}).setdefault(slot, []).append(value)
            elif slot in _LITERAL or slot in _SYNONYMS:
                names.setdefault(subject, {}).setdefault(slot, []).append((language, value))

    def texts(self, node: str, slot: str) -> list[str]:
        """Return the texts of a slot: those without a language or in English first, then by text."""
        given = self.names.get(node, _NOTHING).get(slot, ())
        if len(given) < 2:
            return [text for _, text in given]
        english = {language for language, _ in given if language in ("", "en") or language.startswith("en-")}
        ranked = sorted((language not in english, language, text) for language, text in set(given))
        return list(dict.fromkeys(text for _, _, text in ranked))

    def synonyms(self, node: str, slot: str) -> list[str]:
        """Return the synonyms of a slot. In old OBO files a synonym is a node with a label."""
        texts = self.texts(node, slot)
        for other in sorted(self.nodes.get(node, _NOTHING).get(slot, ())):
            texts += self.texts(other, "labels")
        return texts

    def named(self, node: str, slot: str) -> tuple[str, ...]:
        found = self.nodes.get(node, _NOTHING).get(slot, ())
        return tuple(sorted({one for one in found if not one.startswith("_:")}))

    def operands(self, node: str, slot: str) -> tuple[set[str], set[str]]:
        """Return the named classes of a slot, also inside unions and intersections, and the fillers of restrictions."""
        named: set[str] = set()
        fillers: set[str] = set()
        seen: set[str] = set()
        waiting = list(self.nodes.get(node, _NOTHING).get(slot, ()))
        while waiting:
            one = waiting.pop()
            if not one.startswith("_:"):
                named.add(one)
            elif one not in seen:
                seen.add(one)
                self._spend()
                inside = self.nodes.get(one, {})
                fillers.update(some for some in inside.get("some", ()) if not some.startswith("_:"))
                for head in inside.get("members", ()):
                    waiting.extend(self._items(head))
        return named, fillers

    def _items(self, head: str) -> Iterator[str]:
        """Yield the items of an RDF list, which may be circular."""
        seen: set[str] = set()
        waiting = [head]
        while waiting:
            cell = waiting.pop()
            if cell not in seen:
                seen.add(cell)
                self._spend()
                inside = self.nodes.get(cell, {})
                yield from inside.get("first", ())
                waiting.extend(inside.get("rest", ()))

    def _spend(self) -> None:
        """Count the visit of a blank node: many classes may share one long list."""
        self._work += 1
        if self._work > 4 * self._limits.triples:
            message = "the class expressions share so many blank nodes that they cannot be read with bounded work"
            raise DocumentRefused(TOO_LARGE.found(message, Location(self._file)))


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


def read_ontology(
    data: bytes,
    file: str,
    notation: RdfNotation | None = None,
    *,
    id: str = "",  # noqa: A002 - the word of the draft
    version: str = "",
    namespace: Namespace = DEFAULT,
    contexts: Contexts | None = None,
    limits: OntologyLimits = LIMITS,
) -> tuple[Ontology | None, list[Diagnostic]]:
    """Read an ontology; None with an error in the findings if the document is refused.

    `id` and `version` override what the document declares; `contexts` are known beside the shipped ones.
    """
    known = {**shipped_contexts(namespace), **(contexts or {})}
    try:
        triples = read_triples(data, notation or notation_of(file, data), file, known, limits)
        return _OntologyBuilder(Graph(triples, namespace, file, limits), file, limits).ontology(id, version)
    except DocumentRefused as refused:
        return None, [refused.finding]


class _OntologyBuilder:
    def __init__(self, graph: Graph, file: str, limits: OntologyLimits) -> None:
        self._graph, self._file, self._limits = graph, file, limits
        self._findings: list[Diagnostic] = []

    def ontology(self, given_id: str, given_version: str) -> tuple[Ontology, list[Diagnostic]]:
        graph = self._graph
        iris = sorted({iri for iri in (*graph.nodes, *graph.names) if not iri.startswith("_:")})
        terms = {iri: term for iri in iris if (term := self._term(iri)) is not None}
        headers = [iri for iri in iris if f"{OWL}Ontology" in graph.named(iri, "types")]
        headers = headers or [iri for iri in iris if f"{SKOS}ConceptScheme" in graph.named(iri, "types")]
        header = headers[0] if len(headers) == 1 else ""
        made = Ontology(
            id=given_id or header or self._assume_id(headers, terms),
            version=given_version or self._version(header),
            terms=terms,
            agents=self._agents(),
        )
        if parse_version(made.version) is None:
            shown = f"got {brief(made.version)}"
            message = f"the version of {brief(made.id)} must be numbers with points, or a date; {shown}"
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
        short = [*graph.texts(iri, "preferred_abbr"), *graph.texts(iri, "abbr")]
        synonyms: dict[str, Scope] = {}
        for scope in get_args(Scope):
            for text in self._bounded(iri, "synonym", graph.synonyms(iri, scope)):
                synonyms.setdefault(text, scope)
        # The named parts of an equivalent intersection stand above a class: all of its members are in each of them.
        parents |= equivalents - same
        return Term(
            iri=iri,
            kind=kind,
            types=tuple(one for one in types if not one.startswith(_BUILT_IN)),
            labels=self._bounded(iri, "label", graph.texts(iri, "labels")),
            synonyms=tuple(Synonym(text, scope) for text, scope in synonyms.items()),
            abbreviations=self._bounded(iri, "abbreviation", short),
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
        if len(self._findings) < 20:
            self._findings.append(finding)


def read_bytes(path: Path, limits: OntologyLimits = LIMITS) -> bytes | Diagnostic:
    reason = "is not a regular file"
    try:
        # Non-blocking: opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                data = bytearray()
                while chunk := os.read(descriptor, min(1024 * 1024, limits.size + 1 - len(data))):
                    data += chunk
                    if len(data) > limits.size:
                        refuse_size(str(path), data.count(b"\n") + 1, limits)
                return bytes(data)
        finally:
            os.close(descriptor)
    except DocumentRefused as refused:
        return refused.finding
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return UNREADABLE.found(f"the file {reason}", Location(str(path)))


def load_ontology(path: Path, **given: Any) -> tuple[Ontology | None, list[Diagnostic]]:
    """Read the ontology of a file. `given` are the other arguments of `read_ontology`."""
    data = read_bytes(path)
    return (None, [data]) if isinstance(data, Diagnostic) else read_ontology(data, str(path), **given)
