"""Names of capabilities: which capability a text means, by the words of labels, synonyms and abbreviations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from bespeak.checks.alignment.words import words_of
from bespeak.contract.ontology.meanings import Meanings
from bespeak.contract.ontology.ontology import Ontology
from bespeak.contract.ontology.term import Term

_LEAST_SHARE: Final = 0.6
"""Lowest share of common words of a label that names a capability."""
_MOST_NAMED: Final = 5
"""Most capabilities that a text may name."""
_MOST_COMPARED: Final = 5_000
"""Labels that one text is compared with: agents write labels, and a search must not take long."""


class CapabilityNames:
    """Immutable index, built beside the event loop, so that a search looks only at labels with common words."""

    def __init__(self, ontologies: Iterable[Ontology], meanings: Meanings) -> None:
        self.terms: Mapping[str, Term] = {
            iri: term for one in ontologies for iri, term in one.terms.items() if iri in meanings.capabilities
        }
        self._iris: dict[tuple[str, ...], list[str]] = {}
        self._labels: dict[str, list[tuple[str, ...]]] = {}
        """Labels by each of their words."""
        for iri, term in self.terms.items():
            names = (*term.labels, *(one.text for one in term.synonyms), *term.abbreviations, term.local_name)
            for words in {words_of(name) for name in names}:
                if words not in self._iris:
                    for word in set(words):
                        self._labels.setdefault(word, []).append(words)
                self._iris.setdefault(words, []).append(iri)
        self.intents: dict[str, str] = {}
        """Intent that requires a capability."""
        for intent in sorted(meanings.intents, reverse=True):
            self.intents |= dict.fromkeys(meanings.requires.get(intent, ()), intent)

    def find(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield the capabilities that a text names, with the share of its words that agree."""
        if text in self.terms:
            yield text, 1.0
            return
        words = set(words_of(text[:200]))
        scored = []
        for label in islice(self._candidates(words), _MOST_COMPARED):
            share = len(words & set(label)) / len(words | set(label))
            if share >= _LEAST_SHARE:
                scored += [(share, iri) for iri in self._iris[label]]
        for share, iri in sorted(scored, key=lambda one: (-one[0], one[1]))[:_MOST_NAMED]:
            yield iri, share

    def _candidates(self, words: set[str]) -> Iterator[tuple[str, ...]]:
        """Yield labels that may have enough of the words: they have one of the rarest."""
        rarest = sorted(words, key=lambda word: (len(self._labels.get(word, ())), word))
        enough = len(words) - int(_LEAST_SHARE * len(words)) + 1
        seen: set[tuple[str, ...]] = set()
        for word in rarest[:enough]:
            for label in self._labels.get(word, ()):
                if label not in seen:
                    seen.add(label)
                    yield label
