"""Capabilities by their names: exact IRIs, labels, and labels that agree in part."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.meaning import CLINICAL, ontology

from bespeak.checks.alignment.names import words_of
from bespeak.contract.ontology.core import DEFAULT
from bespeak.contract.ontology.ontology import Meanings, Ontology, Term
from bespeak.runtime.semantic.knowledge import CapabilityNames

WORDS = ["note", "patient", "summary", "report", "lookup", "archive"]


def names(*labels: str) -> CapabilityNames:
    terms = {
        f"x:{number}": Term(iri=f"x:{number}", kind="individual", types=(DEFAULT("Capability"),), labels=(label,))
        for number, label in enumerate(labels)
    }
    known = Ontology(id="x:", version="1.0", terms=terms)
    return CapabilityNames([known], Meanings([known]))


@pytest.mark.parametrize(
    ("text", "share"),
    [(f"{CLINICAL}#note-summarize", 1.0), ("clinical note summarize", 1.0), ("one clinical note summarize", 0.75)],
)
def test_capability_is_found_by_iri_and_by_words(text: str, share: float) -> None:
    clinical = ontology("clinical")
    assert (f"{CLINICAL}#note-summarize", share) in list(CapabilityNames([clinical], Meanings([clinical])).find(text))


@given(
    labels=st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=12),
    text=st.lists(st.sampled_from([*WORDS, "other"]), min_size=1, max_size=5).map(" ".join),
)
def test_index_finds_what_a_comparison_with_every_label_finds(labels: list[str], text: str) -> None:
    wanted = set(words_of(text))
    known = {f"x:{number}": set(words_of(one)) for number, one in enumerate(labels)}
    shares = {iri: len(wanted & words) / len(wanted | words) for iri, words in known.items()}
    best = sorted(((share, iri) for iri, share in shares.items() if share >= 0.6), key=lambda one: (-one[0], one[1]))
    assert list(names(*labels).find(text)) == [(iri, share) for share, iri in best[:5]]


def test_search_compares_a_bounded_number_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.runtime.semantic.knowledge._MOST_COMPARED", 10)
    assert len(list(names(*(f"note {number}" for number in range(50))).find("note"))) <= 5
