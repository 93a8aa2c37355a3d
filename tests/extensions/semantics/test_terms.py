"""Ontologies and terms: selection by kind and type."""

from __future__ import annotations

import pytest
from tests.cases import rows
from tests.growth import assert_linear

from bespeak.contract.core_ontology import DEFAULT as IOA
from bespeak.extensions.semantics.terms import (
    Meanings,
    Ontology,
    OntologyRef,
    Term,
    compare_versions,
    parse_version,
    succession_fault,
)

TERMS = (
    Term(iri="https://ex.org/o#b", kind="class"),
    Term(iri="https://ex.org/o#a", kind="class"),
    Term(iri="https://ex.org/o/p/", kind="object_property"),
    Term(iri="https://ex.org/o#i", kind="individual", types=("https://ex.org/o#a",)),
)
ONTOLOGY = Ontology(id="https://ex.org/o", version="1.0", terms={term.iri: term for term in TERMS})


def test_reference_names_the_exact_version() -> None:
    assert ONTOLOGY.ref == OntologyRef("https://ex.org/o", "1.0")
    assert str(ONTOLOGY.ref) == "https://ex.org/o 1.0"


def individual(name: str, *types: str, **fields: tuple[str, ...]) -> Term:
    return Term(iri=name, kind="individual", types=tuple(IOA(one) for one in types), **fields)


def meanings(*terms: Term) -> Meanings:
    return Meanings([Ontology(id="x:o", version="1.0", terms={term.iri: term for term in terms})])


def test_terms_are_found_by_core_class_also_through_subclasses() -> None:
    index = meanings(
        Term(iri="x:Summary", kind="class", parents=(IOA("Capability"),)),
        Term(iri="x:ShortSummary", kind="class", parents=("x:Summary",)),
        Term(iri="x:s1", kind="individual", types=("x:ShortSummary",)),
        individual("x:goal", "Intent", requires=("x:s1",)),
    )
    assert (index.capabilities, index.intents) == ({"x:Summary", "x:ShortSummary", "x:s1"}, {"x:goal"})
    assert index.requires["x:goal"] == {"x:s1"}
    assert "x:goal" in index
    assert "x:other" not in index


def test_cycle_of_classes_ends() -> None:
    index = meanings(
        Term(iri="x:a", kind="class", parents=("x:b",)), Term(iri="x:b", kind="class", parents=("x:a", "x:c"))
    )
    assert list(index.ancestors("x:a")) == ["x:a", "x:b", "x:c"]
    assert index.subsumes("x:c", "x:a")
    assert not index.subsumes("x:a", "x:c")


def test_domain_contains_its_sub_domains_transitively_unless_strict() -> None:
    index = meanings(
        individual("x:cs", "Domain"),
        individual("x:ai", "Domain", above=("x:cs",)),
        individual("x:ml", "Domain", above=("x:ai",)),
    )
    assert index.contains("x:cs", "x:ml")
    assert not index.contains("x:ml", "x:cs")
    assert not index.contains("x:cs", "x:ml", strict=True)
    assert index.contains("x:ml", "x:ml", strict=True)


def test_term_of_two_ontologies_has_the_relations_of_both() -> None:
    first = Ontology(id="x:1", version="1", terms={"x:c": individual("x:c", "Concept", in_domain=("x:cs",))})
    second = Ontology(id="x:2", version="1", terms={"x:c": individual("x:c", in_domain=("x:law",))})
    assert Meanings([first, second]).in_domain["x:c"] == {"x:cs", "x:law"}


def test_chain_of_classes_costs_linear_work() -> None:
    def build(size: int) -> None:
        chain = [Term(iri=f"x:{n}", kind="class", parents=(f"x:{n + 1}",)) for n in range(size)]
        assert meanings(*chain).subsumes(f"x:{size}", "x:0")

    assert_linear(build, 500)


def test_index_beside_another_is_that_of_both_together() -> None:
    known = Ontology(
        id="x:o",
        version="1.0",
        terms={
            "x:Summary": Term(iri="x:Summary", kind="class", parents=(IOA("Capability"),)),
            "x:goal": individual("x:goal", "Intent", requires=("x:Summary",)),
        },
    )
    own = Ontology(
        id="y:o",
        version="1.0",
        terms={
            "y:do": individual("y:do", "Capability", parents=("x:Summary",)),
            "y:want": individual("y:want", "Intent", requires=("y:do",)),
        },
    )
    alone = Meanings([known])
    beside, together = alone.beside(own), Meanings([own, known])
    kinds = ("capabilities", "intents", "concepts", "domains", "agents", "tasks", "requires", "applies_to", "in_domain")
    assert {name: getattr(beside, name) for name in kinds} == {name: getattr(together, name) for name in kinds}
    assert beside.ontologies == together.ontologies
    assert beside.subsumes("x:Summary", "y:do")
    assert "y:do" in beside
    assert "y:do" not in alone
    assert alone.capabilities == {"x:Summary"}


def test_ontology_alone_says_what_its_own_terms_mean() -> None:
    lookup = individual("https://y.org/o#lookup", "Capability")
    summary = individual("https://y.org/o#summary", "Capability")
    known = Ontology(id="https://y.org/o", version="1.0", terms={one.iri: one for one in (lookup, summary)})
    bent = individual(lookup.iri, "Capability", "Intent", parents=(summary.iri,), equivalents=(summary.iri,))
    for id_ in (
        "https://evil.example/o",
        "https://y.org",
        "https://y.org/",
        "https://y.org/o#",
        "https://y.org/o/",
        "",
    ):
        poisoned = Ontology(id=id_, version="9.9", terms={bent.iri: bent})
        orders = [(known, poisoned), *([(poisoned, known)] if "y.org" not in id_ else [])]
        for given in orders:  # whoever comes first has the names that begin with its id
            index = Meanings(given)
            assert not index.subsumes(summary.iri, lookup.iri)
            assert lookup.iri not in index.intents
    alone = Meanings([Ontology(id="https://evil.example/o", version="1.0", terms={bent.iri: bent})])
    assert alone.subsumes(summary.iri, lookup.iri)  # nobody else declares the term


@rows("provided, requested, result",
        *(("2.1", "2.1", "compatible"), ("2.1", "2.0", "compatible"), ("2.10", "2.9", "compatible")),
        *(("2.1.0", "2.1.7", "compatible"), ("v2.1", "2", "compatible"), (2.1, "2.1", "compatible")),
        (3, "3.0", "compatible"),
        *(("2.0", "2.1", "older"), ("1.9", "2.0", "other_major"), ("3.0", "2.9", "other_major")),
        *(("2026-03-01", "2026-02-28", "compatible"), ("2026-02-28", "2026-03-01", "older")),
        *(("2025-12-31", "2026-01-01", "other_major"), ("2026-03-01", "2026.3", "incomparable")),
        *(("draft-b", "draft-a", "incomparable"), ("draft-a", "draft-a", "compatible")),
        ("1.0-rc1", "1.0", "incomparable"),
)  # fmt: skip
@pytest.mark.requirement("IOA-5.3-4")
def test_provider_serves_the_same_major_and_no_higher_minor(provided: str, requested: str, result: str) -> None:
    assert compare_versions(provided, requested) == result


@pytest.mark.parametrize(
    "text", ["", "latest", "1.", ".1", "1..2", "1.2.3.4.5", "9" * 10, "²", "1e3", float("nan"), True]
)
def test_text_without_an_order_is_not_a_version(text: str | float) -> None:
    assert parse_version(text) is None


def test_trailing_zeros_do_not_make_another_version_and_a_newer_version_may_follow() -> None:
    assert parse_version("1") == parse_version("1.0") == parse_version("v1.0.0")
    assert succession_fault("2.1.1", "2.1") is None
    assert succession_fault("3.0", "2.9") is None


@rows(
    "version, latest, says",
    ("2.0", "2.1", "version '2.0' is older than '2.1'; register a newer version"),
    ("draft", "2.1", "version 'draft' does not compare with '2.1'; use numbers with points, or dates"),
    ("2026-01-01", "2.1", "version '2026-01-01' does not compare with '2.1'; use numbers with points, or dates"),
)
@pytest.mark.requirement("IOA-5.3-3")
def test_downgrade_and_unknown_order_are_refused(version: str, latest: str, says: str) -> None:
    assert succession_fault(version, latest) == says


@rows(
    "iri, name",
    ("https://ex.org/o#LLM", "LLM"),
    ("https://ex.org/o/LLM", "LLM"),
    ("https://ex.org/o/LLM/", "LLM"),
    ("urn:x", "urn:x"),
)
def test_local_name_is_the_end_of_the_iri(iri: str, name: str) -> None:
    assert Term(iri=iri, kind="class").local_name == name
