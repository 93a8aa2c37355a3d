"""Content of the registry at one revision: what profiles are understood with. It never changes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bespeak.checks.alignment.policy import Policy
from bespeak.checks.alignment.resolution import DEFAULT as DEFAULT_POLICY
from bespeak.checks.alignment.resolution import pair_of, signed_pairs
from bespeak.contract.ontology.alignment import Alignment
from bespeak.contract.ontology.core import CORE_VERSION
from bespeak.contract.ontology.meanings import Meanings
from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.version import Version, compare_versions, parse_version
from bespeak.runtime.semantic.capability_names import CapabilityNames
from bespeak.runtime.semantic.translation import Mappings

OUTRANKED: Final = "it is unsigned, and a signed artifact is for the same ontologies"
_MOST_INDEXES: Final = 8
"""Indexes with an older version of an ontology that are kept."""


class Snapshot:
    """Ontologies by id, the latest version last; alignments; contexts."""

    def __init__(
        self,
        ontologies: Iterable[Ontology] = (),
        alignments: Iterable[Alignment] = (),
        contexts: Mapping[str, Any] | None = None,
        *,
        unused: Mapping[str, str] | None = None,
        revision: int = 0,
        namespace: Namespace = DEFAULT,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """Index what is registered; `unused` says why other artifacts are left out, by id."""
        self.revision = revision
        self.namespace = namespace
        self.contexts = contexts or {}
        # Every service speaks the core: its profiles may use the terms of all registered ontologies (Figure 5).
        core = Ontology(id=namespace.core, version=CORE_VERSION, terms={})
        given = (core, *ontologies)
        # In the order of registration: no later one may say what the terms of an earlier one mean.
        self.ontologies: dict[str, list[Ontology]] = {one.id: [] for one in given}
        for ontology in sorted(given, key=lambda one: _order(one.version)):
            self.ontologies[ontology.id].append(ontology)
        latest: dict[str, Alignment] = {}
        for alignment in sorted(alignments, key=lambda one: (bool(one.signer), _order(one.version))):
            latest[alignment.id] = alignment
        signed = signed_pairs(latest.values())
        outranked = (id_ for id_, one in latest.items() if not one.signer and pair_of(one) in signed)
        self.unused = {**(unused or {}), **dict.fromkeys(outranked, OUTRANKED)}
        """Why artifacts are not used, by id."""
        self.alignments = {id_: one for id_, one in latest.items() if self.unused.get(id_) != OUTRANKED}
        """Latest version of each artifact by its id."""
        self.mappings = Mappings((one for _, one in sorted(self.alignments.items())), policy)
        self.meanings = Meanings((versions[-1] for versions in self.ontologies.values()), namespace)
        """Index over the latest versions."""
        self.names = CapabilityNames((versions[-1] for versions in self.ontologies.values()), self.meanings)
        """Names of the capabilities of the latest versions."""
        self._older: dict[tuple[str, str], Meanings] = {}
        self.own: Ontology | None = None
        """Vocabulary of the service itself, which is not registered."""

    def with_own(self, own: Ontology) -> Snapshot:
        """Return the same registry beside the vocabulary of a service. The index with its terms is built when used."""
        extended = copy.copy(self)
        extended.own = own
        extended.ontologies = {**self.ontologies, own.id: [own]}
        extended._older = {}
        return extended

    def latest(self, id: str) -> Ontology | None:  # noqa: A002 - the word of the draft
        """Return the latest version of an ontology."""
        return self.ontologies[id][-1] if id in self.ontologies else None

    def serving(self, id: str, version: str) -> Ontology | None:  # noqa: A002
        """Return the highest version of an ontology that serves a requested one; an artifact may not name one."""
        if not version:
            return self.latest(id)
        versions = self.ontologies.get(id, ())
        return next((one for one in reversed(versions) if compare_versions(one.version, version) == "compatible"), None)

    def declaring(self, iris: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of the ontologies that declare any of the terms."""
        wanted = frozenset(iris)
        found = (one.id for one in self._latest() if any(iri in one.terms for iri in wanted))
        return tuple(sorted(found))

    def is_below(self, iri: str, others: Iterable[str]) -> bool:
        """Return True if a term is one of others, or stands below one."""
        return any(self.meanings.subsumes(one, iri) for one in others)

    def meanings_with(self, ontology: Ontology) -> Meanings:
        """Return the index over one version of an ontology and the latest ones of all others.

        A term may have a sense in another ontology than that of the profile, which is how conflicts are noticed.
        """
        if ontology is self.latest(ontology.id) and ontology is not self.own:
            return self.meanings
        key = (ontology.id, ontology.version)
        if key not in self._older:
            if len(self._older) >= _MOST_INDEXES:
                self._older.pop(next(iter(self._older)))
            if ontology is self.own:
                # It has names of its own, so that what is known already stays as it is.
                self._older[key] = self.meanings.beside(ontology)
            else:
                versions = (ontology if one.id == ontology.id else one for one in self._latest())
                self._older[key] = Meanings(versions, self.namespace)
        return self._older[key]

    def _latest(self) -> Iterator[Ontology]:
        return (versions[-1] for versions in self.ontologies.values() if versions[-1] is not self.own)


def _order(version: str) -> tuple[bool, Version]:
    parsed = parse_version(version)
    return parsed is not None, parsed or Version(dated=False, parts=(0,))
