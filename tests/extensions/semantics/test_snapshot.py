"""Versions, alignments and indexes of one revision of the registry."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.meaning import ALIGNMENT, CLINICAL, CS, RAD, alignment, ontology, snapshot

from bespeak.checks.alignment.names import words_of
from bespeak.checks.alignment.policy import Policy
from bespeak.contract.ontology.alignment import Alignment, MappingRule, Provenance
from bespeak.contract.ontology.core import DEFAULT
from bespeak.contract.ontology.ontology import Meanings, Ontology, OntologyRef, Term
from bespeak.extensions.semantics.knowledge import OUTRANKED, CapabilityNames, Snapshot


def test_highest_version_that_serves_a_request_is_found() -> None:
    clinical = ontology("clinical")
    known = Snapshot([msgspec.structs.replace(clinical, version=version) for version in ("2.10", "3.0", "2.9")])
    serving = {wanted: known.serving(CLINICAL, wanted) for wanted in ("2.0", "2.10", "3.0", "2.11", "4")}
    assert {wanted: one and one.version for wanted, one in serving.items()} == {
        "2.0": "2.10",
        "2.10": "2.10",
        "3.0": "3.0",
        "2.11": None,
        "4": None,
    }
    latest = known.serving(CLINICAL, "")
    assert latest is not None
    assert latest.version == "3.0"


def test_core_is_always_known() -> None:
    assert Snapshot().serving("https://ex.org/onto/agent-core", "1.0") is not None
    assert Snapshot().latest(CS) is None


def test_index_has_the_asked_version_and_the_latest_of_all_others() -> None:
    old = msgspec.structs.replace(ontology("clinical"), version="1.0", terms={})
    known = Snapshot([ontology("clinical"), old, ontology("radiology")])
    assert f"{CLINICAL}#note-summarize" in known.meanings
    older = known.meanings_with(old)
    assert f"{CLINICAL}#note-summarize" not in older
    assert f"{RAD}#report-summary" in older
    assert known.meanings_with(old) is older
    assert known.meanings_with(ontology("radiology")) is not known.meanings


def test_newest_version_of_an_alignment_counts() -> None:
    newer = alignment(version="1.1", rules=())
    known = snapshot(newer, alignment())
    assert known.alignments[newer.id].version == "1.1"
    assert known.mappings.translator([newer.id]).translate(f"{RAD}#report-summary", RAD, CLINICAL) is None
    assert known.declaring([f"{RAD}#report-summary", f"{CLINICAL}#Medicine"]) == (RAD, CLINICAL)


REFS = {name: OntologyRef(f"https://{name}.example/o", "1.0") for name in "abc"}


def term(name: str, number: int) -> str:
    return f"{REFS[name].id}#{number}"


@st.composite
def artifacts(draw: st.DrawFn) -> Alignment:
    """Any artifact between two of three ontologies: every part that its author chooses is arbitrary."""
    source, target = draw(st.sampled_from(list(permutations("abc", 2))))
    numbers = st.integers(0, 1)
    rule = st.builds(
        lambda one, other, relation, confidence, override, by: MappingRule(
            source=term(source, one),
            target=term(target, other),
            relation=relation,
            confidence=confidence,
            override=override,
            confirmed_by=by,
            provenance=Provenance(author="board"),
        ),
        *(numbers, numbers, st.sampled_from(["equivalent", "broader", "narrower"])),
        *(st.sampled_from([0.8, 0.9, 1.0]), st.booleans(), st.sampled_from(["", "ada"])),
    )
    return Alignment(
        id=f"https://{draw(st.sampled_from('0azé~'))}.example/{draw(st.integers(0, 3))}",
        version=draw(st.sampled_from(["0.1", "1.0", "9.9", "2030-01-01"])),
        source=OntologyRef(REFS[source].id, draw(st.sampled_from(["1.0", "1.1", "2.0"]))),
        target=OntologyRef(REFS[target].id, draw(st.sampled_from(["1.0", "1.1", "2.0"]))),
        rules=tuple(draw(st.lists(rule, min_size=1, max_size=4))),
        signer=draw(st.sampled_from(["", "", "key-1", "key-2"])),
        confirmed_by=draw(st.sampled_from(["", "operator:ada"])),
    )


@given(
    known_artifacts=st.lists(artifacts(), max_size=8),
    order=st.permutations(("policy", "confidence", "override")),
    priority=st.integers(0, 5),
    ranks=st.dictionaries(st.sampled_from(["key-1", "key-2"]), st.integers(0, 3)),
)
@settings(max_examples=300)
def test_unsigned_artifact_is_never_used_where_a_signed_one_is(
    known_artifacts: list[Alignment], order: list[Any], priority: int, ranks: dict[str, int]
) -> None:
    ontologies = [
        Ontology(id=ref.id, version="1.0", terms={term(name, n): Term(iri=term(name, n), kind="class") for n in (0, 1)})
        for name, ref in REFS.items()
    ]
    policy = Policy(order=tuple(order), priorities={"board": priority, "override": priority}, ranks=ranks)
    known = Snapshot(ontologies, known_artifacts, policy=policy)
    by_id = known.alignments
    signed = {frozenset((one.source.id, one.target.id)) for one in by_id.values() if one.signer}
    assert all(by_id[one.id].signer for one in known_artifacts if one.signer)
    # Callers may choose artifacts, but not make an unsigned one count.
    for ids in ([*by_id], [id_ for id_, one in by_id.items() if not one.signer]):
        for (one, source), (other, target), number in product(REFS.items(), REFS.items(), (0, 1)):
            if one == other:
                continue
            found = known.mappings.translate(term(one, number), [source.id], target.id, ids)
            for step in () if found is None else found.steps:
                artifact = by_id[step.alignment]
                pair = frozenset((artifact.source.id, artifact.target.id))
                assert artifact.signer or not signed & {pair, frozenset((source.id, target.id))}
                assert step.trust == (1 + ranks.get(artifact.signer, 0) if artifact.signer else 0)


def poisoned(**changes: Any) -> Alignment:
    """Lead what is wanted to another capability, with all the confidence there is."""
    wrong = MappingRule(
        source=f"{RAD}#report-summary",
        target=f"{CLINICAL}#patient-lookup",
        confidence=1.0,
        override=True,
        confirmed_by="ada",
        justification="manual",
    )
    return alignment(rules=(wrong,), provenance=alignment().provenance, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "https://0.example/first"},
        {"id": "https://zz.example/last"},
        {"id": "https://zz.example/last", "version": "9.9"},
        {"id": "https://0.example/first", "version": "0.1", "given_confidence": 1.0},
        {"id": "https://0.example/old", "source": OntologyRef(RAD, "0.9")},
        {"id": "https://0.example/new", "target": OntologyRef(CLINICAL, "2.9")},
        {"id": "https://0.example/confirmed", "confirmed_by": "operator:ada"},
        {"id": ALIGNMENT, "version": "9.9"},
    ],
)
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_poisoned_artifact_does_not_outrank_a_signed_one(changes: dict[str, Any], inverse: bool, first: bool) -> None:
    good, bad = alignment(signer="key-1"), poisoned(**changes)
    if inverse:
        [rule] = bad.rules
        turned = msgspec.structs.replace(rule, source=rule.target, target=rule.source)
        bad = msgspec.structs.replace(bad, source=bad.target, target=bad.source, rules=(turned,))
    known = snapshot(*((bad, good) if first else (good, bad)))
    found = known.mappings.translate(f"{RAD}#report-summary", [RAD], CLINICAL, list(known.alignments))
    assert found is not None
    assert (found.iri, found.steps[0].alignment) == (f"{CLINICAL}#note-summarize", ALIGNMENT)
    if bad.id != ALIGNMENT:
        assert known.unused[bad.id] == OUTRANKED


def test_unsigned_detour_does_not_outrank_a_signed_artifact() -> None:
    middle = OntologyRef("https://m.example/o", "1.0")
    steps = (
        Alignment(
            id="https://0.example/1",
            source=OntologyRef(RAD, "1.0"),
            target=middle,
            rules=(MappingRule(source=f"{RAD}#report-summary", target=f"{middle.id}#x", confidence=1.0),),
        ),
        Alignment(
            id="https://0.example/2",
            source=middle,
            target=OntologyRef(CLINICAL, "2.1"),
            rules=(MappingRule(source=f"{middle.id}#x", target=f"{CLINICAL}#patient-lookup", confidence=1.0),),
        ),
    )
    for good in (alignment(signer="key-1"), alignment(signer="key-1", rules=alignment().rules[1:])):
        known = snapshot(good, *steps)
        found = known.mappings.translate(f"{RAD}#report-summary", [RAD], CLINICAL, list(known.alignments))
        assert found is None or found.iri == f"{CLINICAL}#note-summarize"


def test_artifact_of_another_ontology_does_not_map_a_term_that_it_declares_too() -> None:
    other = poisoned(id="https://0.example/1", source=OntologyRef("https://evil.example/o", "1.0"))
    known = snapshot(alignment(signer="key-1"), other)
    found = known.mappings.translate(f"{RAD}#report-summary", [RAD], CLINICAL, list(known.alignments))
    assert found is not None
    assert found.iri == f"{CLINICAL}#note-summarize"


def test_higher_rank_comes_before_confidence() -> None:
    low = poisoned(id="https://0.example/1", signer="low")
    policy = Policy(ranks={"high": 2, "low": 1})
    known = snapshot(low, alignment(signer="high"), policy=policy)
    found = known.mappings.translate(f"{RAD}#report-summary", [RAD], CLINICAL, list(known.alignments))
    assert found is not None
    assert found.steps[0].alignment == ALIGNMENT


def test_later_ontology_does_not_change_what_terms_of_another_mean() -> None:
    wanted, other = f"{CLINICAL}#note-summarize", f"{CLINICAL}#patient-lookup"
    bent = Term(iri=other, kind="individual", parents=(wanted,))
    for id_, version in (("https://0.example/o", "0.1"), (f"{CLINICAL}#", "9.9"), ("https://y.org/onto", "1.0")):
        poisoned = Ontology(id=id_, version=version, terms={other: bent})
        old = msgspec.structs.replace(poisoned, version="0.0")
        known = Snapshot([ontology("clinical"), old, poisoned])
        for meanings in (known.meanings, known.meanings_with(old), known.meanings_with(ontology("clinical"))):
            assert not meanings.subsumes(wanted, other)


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
    monkeypatch.setattr("bespeak.extensions.semantics.knowledge._MOST_COMPARED", 10)
    assert len(list(names(*(f"note {number}" for number in range(50))).find("note"))) <= 5
