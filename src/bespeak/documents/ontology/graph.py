"""Statements about the nodes of a document that matter here, by node and slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bespeak.contract.ontology.namespace import OBO, OWL, RDF, RDFS, SKOS, Namespace
from bespeak.documents.ontology.fault import DocumentRefused
from bespeak.documents.ontology.limits import Limits
from bespeak.documents.ontology.rules import TOO_LARGE
from bespeak.documents.ontology.triples import Triple
from bespeak.text.source.span import Location

_IAO: Final = "http://purl.obolibrary.org/obo/IAO_"

_SLOTS: Final[Mapping[str, str]] = {
    f"{RDF}type": "types",
    f"{RDF}first": "first",
    f"{RDF}rest": "rest",
    f"{RDFS}label": "labels",
    f"{SKOS}prefLabel": "labels",
    f"{SKOS}altLabel": "exact",
    f"{SKOS}hiddenLabel": "hidden",
    f"{OBO}hasExactSynonym": "exact",
    f"{OBO}hasRelatedSynonym": "related",
    f"{OBO}hasSynonym": "related",
    f"{OBO}hasBroadSynonym": "broad",
    f"{OBO}hasNarrowSynonym": "narrow",
    f"{_IAO}0000118": "exact",
    f"{RDFS}comment": "comments",
    f"{SKOS}definition": "comments",
    f"{_IAO}0000115": "comments",
    f"{RDFS}subClassOf": "parents",
    f"{RDFS}subPropertyOf": "parents",
    f"{SKOS}broader": "parents",
    f"{RDFS}domain": "domains",
    f"{RDFS}range": "ranges",
    f"{OWL}inverseOf": "inverses",
    f"{OWL}equivalentClass": "equivalents",
    f"{OWL}equivalentProperty": "equivalents",
    f"{OWL}someValuesFrom": "some",
    f"{OWL}unionOf": "members",
    f"{OWL}intersectionOf": "members",
    f"{OWL}deprecated": "deprecated",
    f"{OWL}imports": "imports",
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
_SYNONYMS: Final = frozenset({"exact", "related", "broad", "narrow", "hidden"})


class Graph:
    """Nodes of a document. Names are kept with their languages, references as IRIs or blank nodes."""

    def __init__(self, triples: Iterable[Triple], namespace: Namespace, file: str, limits: Limits) -> None:
        self.nodes: dict[str, dict[str, list[str]]] = {}
        """Resources and plain values by node and slot."""
        self.names: dict[str, dict[str, list[tuple[str, str]]]] = {}
        """Language and text of labels, synonyms and comments by node and slot."""
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
        found = set(given)
        return list(dict.fromkeys(text for _, _, text in sorted((_rank(one), one, text) for one, text in found)))

    def synonyms(self, node: str, slot: str) -> list[str]:
        """Return the synonyms of a slot. In old OBO files a synonym is a node with a label."""
        texts = self.texts(node, slot)
        for other in sorted(self.nodes.get(node, _NOTHING).get(slot, ())):
            texts += self.texts(other, "labels")
        return texts

    def named(self, node: str, slot: str) -> tuple[str, ...]:
        """Return the named resources of a slot, sorted."""
        found = self.nodes.get(node, _NOTHING).get(slot)
        if found is None:
            return ()
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


def _rank(language: str) -> int:
    return 0 if language in ("", "en") or language.startswith("en-") else 1
