"""The aligner: quality on ontologies of two shapes, determinism, overrides, increments and bounds."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.extensions.semantics.alignment import anatomy, university
from tests.extensions.semantics.alignment.terms import A, B, capability, ontology, term

from bespeak.contract.core_ontology import DEFAULT, XSD
from bespeak.extensions.semantics.alignment import aligner
from bespeak.extensions.semantics.alignment.aligner import (
    Aligned,
    Base,
    Override,
    PropertyStage,
    TermPair,
    align,
    calibrate,
)
from bespeak.extensions.semantics.alignment.policy import Policy
from bespeak.extensions.semantics.alignment.signals import Hierarchy, History
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.terms import Ontology, Term
from bespeak.protocol.exchange.refusal import Fault


def run(one: Ontology, other: Ontology, **given: object) -> Aligned:
    aligned = align(one, other, **given)  # type: ignore[arg-type]
    assert isinstance(aligned, Aligned), aligned
    return aligned


def pairs(aligned: Aligned) -> dict[str, str]:
    return {rule.source: rule.target for rule in aligned.alignment.rules}


def quality(one: bytes, other: bytes, reference: set[tuple[str, str]], prefix: str) -> tuple[float, float]:
    """Return precision and recall of the mappings whose sources begin with a prefix."""
    read = [read_ontology(data, "o.owl")[0] for data in (one, other)]
    assert read[0] is not None
    assert read[1] is not None
    found = {pair for pair in pairs(run(read[0], read[1])).items() if pair[0].startswith(prefix)}
    right = len(found & reference)
    return right / len(found), right / len(reference)


def test_ontologies_with_synonyms_or_with_properties_are_aligned_well() -> None:
    precision, recall = quality(*anatomy.pair(600), "http://mouse.example#MA_")
    assert (precision > 0.85, recall > 0.95) == (True, True), (precision, recall)
    precision, recall = quality(*university.documents(), university.reference(), "http://campus.example/a#")
    assert (precision > 0.9, recall > 0.8) == (True, True), (precision, recall)


@cache
def rooms() -> tuple[Ontology, Ontology]:
    ours = ontology(A, "guest room", "booking", "night porter", "night shift")
    return ours, ontology(B, "room of guests", "booking", "porter")


@pytest.mark.requirement("IOA-7.4-4")
def test_score_confidence_and_reasons_are_with_each_rule() -> None:
    rule = next(one for one in run(*rooms()).alignment.rules if one.source == f"{A}#1")
    assert rule.score is not None
    assert rule.confidence is not None
    assert rule.score >= 0.95
    assert rule.confidence > 0.8
    assert rule.signals["lexical"] == 1.0
    assert not rule.override


@pytest.mark.requirement("IOA-7.4-5")
def test_candidates_between_the_thresholds_or_below_a_strict_acceptance_are_questions() -> None:
    aligned = run(*rooms())
    assert f"{A}#2" not in pairs(aligned)
    asking = run(*rooms(), policy=Policy(ask=0.1))
    assert [(one.source, one.band) for one in asking.questions] == [(f"{A}#2", "ask")]
    other = ontology(B, "guest room number", "booking")
    lenient, strict = run(rooms()[0], other), run(rooms()[0], other, policy=Policy(unconfirmed=False))
    assert strict.alignment.rules != lenient.alignment.rules or len(strict.questions) >= len(lenient.questions)
    assert all((rule.confidence or 0) >= Policy().accept for rule in strict.alignment.rules)


def test_override_is_recorded_and_does_not_change_the_score() -> None:
    plain = run(*rooms())
    decided = run(*rooms(), overrides=[Override(source=f"{A}#2", target=f"{B}#2", by="ann")])
    rule = next(one for one in decided.alignment.rules if one.source == f"{A}#2")
    assert rule.override
    assert (rule.confirmed_by, rule.justification) == ("ann", "manual")
    assert rule.score == plain.candidates[f"{A}#2"][f"{B}#2"].score


def test_override_may_say_that_a_term_has_no_counterpart_and_must_name_known_terms() -> None:
    assert f"{A}#1" not in pairs(run(*rooms(), overrides=[Override(source=f"{A}#1", by="ann")]))
    fault = align(*rooms(), overrides=[Override(source=f"{A}#1", target="b:none", by="ann")])
    assert isinstance(fault, Fault)
    assert "b:none" in fault.message


def test_abbreviations_alone_and_individuals_that_are_not_concepts_are_not_aligned() -> None:
    # LLM is a model in one domain and a degree in the other.
    terms = [
        msgspec.structs.replace(capability(iri, label), types=(DEFAULT("Concept"),), abbreviations=("LLM",))
        for iri, label in (("cs:1", "large language model"), ("law:1", "master of laws"))
    ]
    assert not run(ontology(A, terms=(terms[0],)), ontology(B, terms=(terms[1],))).alignment.rules
    plain = [ontology(iri, terms=(term(f"{iri}#i", "Paris", "individual", types=(f"{iri}#City",)),)) for iri in (A, B)]
    assert not run(*plain).alignment.rules
    concepts = [ontology(iri, terms=(capability(f"{iri}#i", "Translate"),)) for iri in (A, B)]
    assert run(*concepts).alignment.rules


def test_rules_of_a_base_are_kept_where_both_terms_are_unchanged() -> None:
    source, target = rooms()
    first = run(source, target, overrides=[Override(source=f"{A}#0", target=f"{B}#2", by="ann")])
    kept = next(rule for rule in first.alignment.rules if rule.source == f"{A}#0")
    changed = ontology(B, "room of guests", "ticket", "porter", version="1.1")
    base = Base(alignment=first.alignment, source=source, target=target)
    second = run(source, changed, base=base)
    assert kept in second.alignment.rules
    assert pairs(second) == {f"{A}#0": f"{B}#2"}
    # A new decision about the term replaces what was kept.
    third = run(source, changed, base=base, overrides=[Override(source=f"{A}#0", target=f"{B}#0", by="bob")])
    assert pairs(third)[f"{A}#0"] == f"{B}#0"


def test_decision_of_a_base_without_its_ontologies_holds_for_other_versions_too() -> None:
    source, target = rooms()
    first = run(source, target, overrides=[Override(source=f"{A}#0", target=f"{B}#2", by="ann")]).alignment
    assert pairs(run(source, target, base=Base(alignment=first)))[f"{A}#0"] == f"{B}#2"
    newer = msgspec.structs.replace(target, version="2.0")
    kept = pairs(run(source, newer, base=Base(alignment=first)))
    assert kept[f"{A}#0"] == f"{B}#2"  # the decision of a person


def test_too_many_terms_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aligner, "MOST_TERMS", 2)
    fault = align(*rooms())
    assert isinstance(fault, Fault)
    assert "4" in fault.message


_SCRIPT = """
import msgspec
from tests.extensions.semantics.alignment import university
from bespeak.extensions.semantics.alignment.aligner import align
from bespeak.extensions.semantics.ontology.reader import read_ontology
one, other = (read_ontology(data, "o.owl")[0] for data in university.documents())
aligned = align(one, other)
print(msgspec.json.encode(aligned.alignment).decode(), [one.names for one in aligned.questions])
"""


@pytest.mark.process
def test_result_does_not_depend_on_the_order_of_sets() -> None:
    results = {
        subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(results) == 1


def candidate(one: Ontology, other: Ontology, pair: tuple[str, str], **given: Any) -> TermPair:
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
    assert candidate(source, fitting, ("a:1", "b:1")).band == "policy"
    unfit = candidate(source, other, ("a:1", "b:1"))
    assert unfit.signals["behavioral"] == 0.0
    assert unfit.confidence < candidate(source, fitting, ("a:1", "b:1")).confidence


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


STAGE = PropertyStage(
    {"a:Paper": "b:Paper", "a:Person": "b:Person"},
    {"a:Room": {"b:Hall": 0.6}},
    Hierarchy(ontology(A, terms=(term("a:Author", parents=("a:Person",)),))),
    Hierarchy(ontology(B, terms=(term("b:Poster", parents=("b:Paper",)),))),
)


def factor(one: Term, other: Term) -> float:
    return STAGE.agreement(one, other)[0]


@pytest.mark.requirement("IOA-7.4-2")
@rows(
    "ours, theirs, least, most",
    (("a:Paper", "a:Person"), ("b:Paper", "b:Person"), 1.0, 1.0),
    (("a:Talk a:Paper", "a:Person"), ("b:Paper", "b:Person"), 1.0, 1.0),  # a part of a union
    (("a:Paper", "a:Author"), ("b:Poster", "b:Person"), 0.601, 0.7),  # related classes, neither of them the same
    (("a:Paper", "a:Person"), ("b:Person", "b:Paper"), 0.0, 0.299),  # the inverse direction
    (("a:Author", "a:Paper"), ("b:Person", "b:Paper"), 0.801, 0.999),  # one of them is
    (("", ""), ("b:Paper", "b:Person"), 0.701, 0.999),  # nothing is declared
)
def test_domain_and_range_agree_by_aligned_classes(ours: Any, theirs: Any, least: float, most: float) -> None:
    one, other = (
        term(f"{iri}:by", kind="object_property", domains=tuple(domain.split()), ranges=tuple(range_.split()))
        for iri, (domain, range_) in (("a", ours), ("b", theirs))
    )
    assert least <= factor(one, other) <= most


def test_domain_of_data_counts_more_than_its_type() -> None:
    def data(iri: str, domain: str, kind: str) -> Term:
        return term(iri, kind="data_property", domains=(domain,), ranges=(f"{XSD}{kind}",))

    same_type = factor(data("a:size", "a:Paper", "int"), data("b:size", "b:Person", "integer"))
    same_domain = factor(data("a:size", "a:Paper", "int"), data("b:size", "b:Paper", "string"))
    assert same_type < 0.7 < same_domain


SCORES = st.floats(-1, 2, allow_nan=False)


@given(SCORES, SCORES, st.booleans())
def test_higher_score_never_has_a_lower_confidence(one: float, other: float, of_property: bool) -> None:
    low, high = sorted((one, other))
    assert 0 <= calibrate(low, of_property=of_property) <= calibrate(high, of_property=of_property) <= 1


def test_confidence_says_how_often_such_a_mapping_is_right() -> None:
    assert calibrate(0.98) < calibrate(0.98, supported=True)
    assert 0.2 < calibrate(0.73) < calibrate(0.73, supported=True) < 0.6
    assert calibrate(0.55) < 0.3
    assert calibrate(1.0, of_property=True) < calibrate(1.0)


def embed_all_alike(texts: Any) -> Any:
    import numpy

    return numpy.ones((len(texts), 1))


def test_embeddings_add_questions_and_never_change_what_names_have_shown() -> None:
    ours, theirs = ontology(A, "room", "till", "guest"), ontology(B, "room", "cash desk", "visitor")
    plain, embedded = run(ours, theirs), run(ours, theirs, embed=embed_all_alike)
    assert embedded.alignment.rules == plain.alignment.rules
    added = [found for all_ in embedded.candidates.values() for found in all_.values() if "embedding" in found.signals]
    assert added
    assert {found.rule().justification for found in added} == {"embedding"}
    assert {found.band for found in added} <= {"ask", "reject"}


def test_capability_is_never_mapped_to_an_intent() -> None:
    source = service(A, capability("a:1", "summarize report"))
    intent = msgspec.structs.replace(capability("b:1", "summarize report"), types=(DEFAULT("Intent"),))
    assert run(source, service(B, intent)).candidates == {}


def test_homonyms_below_different_things_are_doubts() -> None:
    def bank(base: str, above: str) -> Ontology:
        parents = {"river": "Landform", "company": "Organization"}
        names = {name: term(f"{base}#{name}", name) for name in (*parents.values(), *parents)}
        for name, parent in parents.items():
            names[name] = msgspec.structs.replace(names[name], parents=(f"{base}#{parent}",))
        bank = term(f"{base}#bank", "bank", parents=(f"{base}#{above}",))
        return ontology(base, terms=(*names.values(), bank))

    same = candidate(bank(A, "Landform"), bank(B, "Landform"), (f"{A}#bank", f"{B}#bank"))
    other = candidate(bank(A, "Landform"), bank(B, "Organization"), (f"{A}#bank", f"{B}#bank"))
    assert (same.band, other.band) == ("accept", "ask")


def test_numerals_and_single_letters_tell_names_apart() -> None:
    aligned = run(
        ontology(A, "hepatitis A", "hepatitis B", "thoracic vertebra 4", "sacral vertebra 4"),
        ontology(B, "Hepatitis_B", "Hepatitis_A", "S4_vertebra", "T4_vertebra"),
    )
    assert pairs(aligned) == {f"{A}#0": f"{B}#1", f"{A}#1": f"{B}#0", f"{A}#2": f"{B}#3", f"{A}#3": f"{B}#2"}


def test_confidences_are_those_of_the_tool() -> None:
    folder = Path(__file__).parents[4] / "tools" / "alignment"
    tool = runpy.run_path(str(folder / "fit.py"))
    fitted = tool["tables"]()
    assert fitted == {name: getattr(aligner, f"_{name.upper()}") for name in fitted}
