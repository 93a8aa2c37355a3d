"""Candidates carry all signals, each under its name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.alignment.terms import A, B, capability, ontology, term

from bespeak.checks.alignment.aligner import Candidate, align
from bespeak.checks.alignment.signals import History
from bespeak.contract.ontology.ontology import Ontology, Term
from bespeak.protocol.exchange.refusal import Fault


def candidate(one: Ontology, other: Ontology, pair: tuple[str, str], **given: Any) -> Candidate:
    aligned = align(one, other, **given)
    assert not isinstance(aligned, Fault)
    return aligned.candidates[pair[0]][pair[1]]


def with_parent(iri: str, parent: str) -> Ontology:
    return ontology(iri, terms=(term(f"{iri}#p", parent), term(f"{iri}#c", "study room large", parents=(f"{iri}#p",))))


@pytest.mark.requirement("IOA-7.4-2")
def test_neighbors_raise_or_lower_what_the_names_leave_open() -> None:
    base = ontology(B, terms=(term(f"{B}#p", "building"), term(f"{B}#c", "study room", parents=(f"{B}#p",))))
    near = candidate(with_parent(A, "building"), base, (f"{A}#c", f"{B}#c"))
    far = candidate(with_parent(A, "library catalog"), base, (f"{A}#c", f"{B}#c"))
    assert near.score > near.signals["lexical"] > far.score
    assert near.signals["structural"] == 1.0
    assert near.rule().justification == "composite"


def service(iri: str, *terms: Term) -> Ontology:
    return ontology(iri, terms=terms)


@pytest.mark.requirement("IOA-7.4-3")
def test_behavior_of_capabilities_is_a_signal() -> None:
    source = service(A, capability("a:1", "summarize report", ("text/plain",), ("text/plain",)))
    fitting = service(B, capability("b:1", "summarize report", ("text/*",), ("text/plain",)))
    other = service(B, capability("b:1", "summarize report", ("image/png",), ("audio/wav",)))
    assert candidate(source, fitting, ("a:1", "b:1")).band == "accept"
    unfit = candidate(source, other, ("a:1", "b:1"))
    assert unfit.signals["behavioral"] == 0.0
    assert unfit.band == "policy"


@pytest.mark.requirement("IOA-7.4-3")
def test_history_of_success_raises_a_pair_and_failures_lower_it() -> None:
    source = service(A, capability("a:1", "summarize radiology report"))
    target = service(B, capability("b:1", "summarize report"))
    plain = candidate(source, target, ("a:1", "b:1")).score
    good = candidate(source, target, ("a:1", "b:1"), histories={("a:1", "b:1"): History(50, 0)})
    bad = candidate(source, target, ("a:1", "b:1"), histories={("a:1", "b:1"): History(0, 50)})
    assert bad.score < plain < good.score
    assert good.signals["history"] > 0.9


def link(iri: str, inverse: str = "", **more: Any) -> Term:
    return term(iri, kind="object_property", inverses=(inverse,) if inverse else (), **more)


def test_inverse_of_an_aligned_property_is_aligned_too() -> None:
    source = ontology(A, "Paper", "Person", terms=(link(f"{A}#written", f"{A}#creates"), link(f"{A}#creates")))
    target = ontology(B, "Paper", "Person", terms=(link(f"{B}#is_written"), link(f"{B}#authors", f"{B}#is_written")))
    found = candidate(source, target, (f"{A}#creates", f"{B}#authors"))
    assert set(found.signals) == {"inverse"}
    assert found.band == "policy"
