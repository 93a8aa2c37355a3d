"""Properties agree if their domains and ranges do."""

from __future__ import annotations

import pytest
from tests.checks.alignment.terms import A, B, ontology, term

from bespeak.checks.alignment.aligner import PropertyStage
from bespeak.checks.alignment.signals import Hierarchy
from bespeak.contract.ontology.core import XSD
from bespeak.contract.ontology.ontology import Term

STAGE = PropertyStage(
    {"a:Paper": "b:Paper", "a:Person": "b:Person"},
    {"a:Room": {"b:Hall": 0.6}},
    Hierarchy(ontology(A, terms=(term("a:Author", parents=("a:Person",)),))),
    Hierarchy(ontology(B, terms=(term("b:Poster", parents=("b:Paper",)),))),
)


def link(iri: str, domain: str, range_: str) -> Term:
    return term(iri, kind="object_property", domains=tuple(domain.split()), ranges=tuple(range_.split()))


def factor(one: Term, other: Term) -> float:
    return STAGE.agreement(one, other)[0]


@pytest.mark.requirement("IOA-7.4-2")
def test_aligned_domain_and_range_agree() -> None:
    assert factor(link("a:by", "a:Paper", "a:Person"), link("b:by", "b:Paper", "b:Person")) == 1.0


def test_part_of_a_union_and_related_classes_agree_too() -> None:
    assert factor(link("a:by", "a:Talk a:Paper", "a:Person"), link("b:by", "b:Paper", "b:Person")) == 1.0
    assert 0.8 < factor(link("a:by", "a:Paper", "a:Author"), link("b:by", "b:Poster", "b:Person")) < 1.0


def test_inverse_direction_does_not_agree() -> None:
    assert factor(link("a:by", "a:Paper", "a:Person"), link("b:of", "b:Person", "b:Paper")) < 0.3


def test_property_that_declares_nothing_is_neither_supported_nor_excluded() -> None:
    assert 0.7 < factor(link("a:by", "", ""), link("b:by", "b:Paper", "b:Person")) < 1.0


def test_domain_of_data_counts_more_than_its_type() -> None:
    def data(iri: str, domain: str, kind: str) -> Term:
        return term(iri, kind="data_property", domains=(domain,), ranges=(f"{XSD}{kind}",))

    same_type = factor(data("a:size", "a:Paper", "int"), data("b:size", "b:Person", "integer"))
    same_domain = factor(data("a:size", "a:Paper", "int"), data("b:size", "b:Paper", "string"))
    assert same_type < 0.7 < same_domain
