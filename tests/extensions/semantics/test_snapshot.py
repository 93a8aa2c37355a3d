"""One revision of the registry: versions, alignments, keys, and the vocabulary of the service itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.extensions.semantics.alignment.artifacts import ARTIFACT, RULE
from tests.extensions.semantics.test_calls import NOTE, clinic, summarize
from tests.meaning import ALIGNMENT, CLINICAL, CS, RAD, alignment, ontology, snapshot
from tests.service import build, echo, make_endpoint

from bespeak.contract.core_ontology import DEFAULT
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.alignment.artifact import JudgedAlignment, Trust
from bespeak.extensions.semantics.alignment.names import words_of
from bespeak.extensions.semantics.alignment.notation import write_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule, Policy, Provenance
from bespeak.extensions.semantics.knowledge import (
    OUTRANKED,
    CapabilityNames,
    Offer,
    Snapshot,
    judge_offer,
    open_registry,
)
from bespeak.extensions.semantics.layer import SemanticLayer, own_ontology, own_profile
from bespeak.extensions.semantics.ontology.registration import judge_registration
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import Meanings, Ontology, OntologyRef, Term
from bespeak.state.identity.jws import generate_key, key_id, public_jwk
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


def test_highest_version_that_serves_a_request_is_found() -> None:
    clinical = ontology("clinical")
    known = Snapshot([msgspec.structs.replace(clinical, version=version) for version in ("2.10", "3.0", "2.9")])
    serving = {wanted: known.serving(CLINICAL, wanted) for wanted in ("2.0", "2.10", "3.0", "2.11", "4")}
    found = {"2.0": "2.10", "2.10": "2.10", "3.0": "3.0", "2.11": None, "4": None}
    assert {wanted: one and one.version for wanted, one in serving.items()} == found
    assert known.serving(CLINICAL, "").version == "3.0"


def test_core_is_known_and_artifacts_map_only_terms_of_their_ontology() -> None:
    assert Snapshot().serving("https://ex.org/onto/agent-core", "1.0") is not None
    assert Snapshot().latest(CS) is None
    other = poisoned(id="https://0.example/1", source=OntologyRef("https://evil.example/o", "1.0"))
    known = snapshot(alignment(signer="key-1"), other)
    found = known.mappings.translate(f"{RAD}#report-summary", [RAD], CLINICAL, list(known.alignments))
    assert found.iri == f"{CLINICAL}#note-summarize"


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


@rows(
    "changes",
    {"id": "https://0.example/first"},
    {"id": "https://zz.example/last"},
    {"id": "https://zz.example/last", "version": "9.9"},
    {"id": "https://0.example/first", "version": "0.1", "given_confidence": 1.0},
    {"id": "https://0.example/old", "source": OntologyRef(RAD, "0.9")},
    {"id": "https://0.example/new", "target": OntologyRef(CLINICAL, "2.9")},
    {"id": "https://0.example/confirmed", "confirmed_by": "operator:ada"},
    {"id": ALIGNMENT, "version": "9.9"},
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


def test_higher_rank_comes_before_confidence() -> None:
    low = poisoned(id="https://0.example/1", signer="low")
    policy = Policy(ranks={"high": 2, "low": 1})
    known = snapshot(low, alignment(signer="high"), policy=policy)
    found = known.mappings.translate(f"{RAD}#report-summary", [RAD], CLINICAL, list(known.alignments))
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


def test_keys_are_parsed_when_the_registry_opens() -> None:
    keys = [generate_key(), generate_key()]
    settings = SemanticSettings(trusted_keys=tuple(public_jwk(key)["x"] for key in keys))
    assert list(open_registry(settings).trust.keys) == [key_id(key) for key in keys]


def test_ranks_are_kept_by_key_id_and_only_for_trusted_keys() -> None:
    first, second, stranger = (generate_key() for _ in range(3))
    texts = tuple(public_jwk(key)["x"] for key in (first, second))
    registry = open_registry(SemanticSettings(trusted_keys=texts, signer_ranks={texts[0]: 2}))
    assert registry.trust.ranks == {key_id(first): 2, key_id(second): 0}
    with pytest.raises(ConfigError, match=r"`signer_ranks` of .* is not in `trusted_keys`"):
        open_registry(SemanticSettings(trusted_keys=texts, signer_ranks={public_jwk(stranger)["x"]: 1}))


def test_missing_keys_and_packages_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="needs `trusted_keys`"):
        open_registry(SemanticSettings(require_signature=True))
    with pytest.raises(ConfigError, match=r"`trusted_keys` of \[semantic\]: short: "):
        open_registry(SemanticSettings(trusted_keys=("short",)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'bespeak\[semantic\]'"):
        open_registry(SemanticSettings())


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("memory")
    await opened.start()
    yield opened
    await opened.close()


async def register(store: Store, end: OntologyRef, iri: str) -> None:
    text = f"<{iri}> a <http://www.w3.org/2002/07/owl#Class> ."
    command = judge_registration(text.encode(), "x.ttl", id=end.id, version=end.version).command
    assert command is not None
    await store.do(command)


async def judge(store: Store, alignment: Alignment = ARTIFACT) -> JudgedAlignment:
    return await judge_offer(store, Offer(data=write_alignment(alignment, "json"), file="a.json"), Trust())


async def test_each_end_that_is_not_registered_is_named(store: Store) -> None:
    await register(store, ARTIFACT.source, RULE.source)
    await register(store, OntologyRef(ARTIFACT.target.id, "2.0"), RULE.target)
    judged = await judge(store)
    assert judged.alignment is None
    [finding] = judged.findings
    assert (finding.rule, finding.pointer) == ("I308", "/targetOntologyId")
    assert "clinical 2.1', which is not registered" in finding.message


async def test_document_without_versions_is_for_the_latest_ones_and_follows_the_latest_artifact(store: Store) -> None:
    await register(store, ARTIFACT.source, RULE.source)
    await register(store, ARTIFACT.target, RULE.target)
    vague = msgspec.structs.replace(ARTIFACT, target=OntologyRef(ARTIFACT.target.id, ""))
    judged = await judge(store, vague)
    assert judged.alignment == ARTIFACT
    await store.do(judged.command())
    older = await judge(store, msgspec.structs.replace(ARTIFACT, version="1.1"))
    assert [one.rule for one in older.findings] == ["I309"]


async def test_document_that_cannot_be_read_is_refused_before_the_store_is_asked(store: Store) -> None:
    judged = await judge_offer(store, Offer(data=b"{", file="a.json", notation="json"), Trust())
    assert (judged.alignment, len(judged.findings)) == (None, 1)


WEATHER = replace(make_endpoint("QUERY", "/weather", echo), description="Finds the weather forecast for a city.")
CAPABILITY, INTENT = "agtp://test.example/capability/summarize_note", "agtp://test.example/intent/summarize_note"


def test_each_listed_endpoint_is_a_capability_below_its_concepts_and_an_intent() -> None:
    routes = build(summarize()).routes
    made = own_ontology(routes.service, routes.endpoints.values(), "v-1", DEFAULT)
    assert (made.id, made.version) == ("agtp://test.example/", "v-1")
    assert sorted(made.terms) == [CAPABILITY, INTENT]
    assert made.terms[CAPABILITY].parents == (f"{CLINICAL}#note-summarize",)
    assert made.terms[INTENT].requires == (CAPABILITY,)


async def test_endpoint_is_called_with_the_profile_that_discovery_gives() -> None:
    async with clinic(WEATHER, summarize()) as bench:
        reply = await bench.send("DISCOVER", "/", {"criteria": "weather forecast"})
        [found] = reply.json["result"]["candidates"]
        assert found["semantic"]["ontologyId"] == "agtp://test.example/"
        assert (await bench.send("QUERY", "/weather", {"semantic": found["semantic"]})).status == 200
        other = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": found["semantic"]})
        assert [one["rule"] for one in other.error["violations"]] == ["I246"]
        changed = {**found["semantic"], "ontologyVersion": "v-0"}
        assert (await bench.send("QUERY", "/weather", {"semantic": changed})).error["violations"][0]["rule"] == "I231"


def test_profile_follows_the_version_of_the_manifest() -> None:
    routes = build(summarize()).routes
    layer = SemanticLayer(SemanticSettings(), lambda: routes)
    view = layer.view
    assert view.snapshot.own is not None
    profile = own_profile(routes.service, routes.endpoints["SUMMARIZE", "/note"], view.snapshot.own)
    view.snapshot = view.registry.with_own(msgspec.structs.replace(view.snapshot.own, version="v-before"))
    assert layer.negotiate(profile).match == "direct"  # the view is from before agents changed the manifest
    assert layer.view is not view
