"""Content of the registry at one revision: what profiles are understood with. It never changes."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bespeak.checks.alignment.policy import Policy
from bespeak.checks.alignment.resolution import DEFAULT as DEFAULT_POLICY
from bespeak.contract.ontology.alignment import Alignment
from bespeak.contract.ontology.core import CORE_VERSION
from bespeak.contract.ontology.meanings import Meanings
from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.version import Version, compare_versions, parse_version
from bespeak.runtime.semantic.translation import Mappings

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
        revision: int = 0,
        namespace: Namespace = DEFAULT,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        self.revision = revision
        self.namespace = namespace
        self.contexts = contexts or {}
        self.ontologies: dict[str, list[Ontology]] = {}
        # Every service speaks the core: its profiles may use the terms of all registered ontologies (Figure 5).
        core = Ontology(id=namespace.core, version=CORE_VERSION, terms={})
        for ontology in sorted((core, *ontologies), key=lambda one: _order(one.version)):
            self.ontologies.setdefault(ontology.id, []).append(ontology)
        self.alignments: dict[str, Alignment] = {}
        """Latest version of each artifact by its id."""
        for alignment in sorted(alignments, key=lambda one: _order(one.version)):
            self.alignments[alignment.id] = alignment
        self.mappings = Mappings((one for _, one in sorted(self.alignments.items())), policy)
        self.meanings = Meanings((versions[-1] for versions in self.ontologies.values()), namespace)
        """Index over the latest versions."""
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
        found = (one.id for one in self._latest() if not wanted.isdisjoint(one.terms))
        return tuple(sorted(found))

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
            others = (one for one in self._latest() if one.id != ontology.id)
            self._older[key] = Meanings((ontology, *others), self.namespace)
        return self._older[key]

    def _latest(self) -> Iterator[Ontology]:
        return (versions[-1] for versions in self.ontologies.values() if versions[-1] is not self.own)


def _order(version: str) -> tuple[bool, Version]:
    parsed = parse_version(version)
    return parsed is not None, parsed or Version(dated=False, parts=(0,))
