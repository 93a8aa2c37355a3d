"""Canonical N-Quads: the same for every notation and order, refused where they would take exponential work."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyld import jsonld
from tests.extensions.semantics.ontology.figures import FIGURE_3, FIGURE_6

from bespeak.extensions.semantics.knowledge import read_artifact
from bespeak.extensions.semantics.ontology.contexts import LIMITS, OntologyLimits, inline_contexts, shipped_contexts
from bespeak.extensions.semantics.ontology.publication import publish_core
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.ontology.registration import (
    canonical_quads,
    canonical_work,
    content_digest,
)
from bespeak.extensions.semantics.store import Artifact, ArtifactRow
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic


def canonical(text: str, file: str = "f.ttl") -> bytes:
    found = canonical_quads(text.encode(), file)
    assert isinstance(found, bytes), found
    return found


def refused(text: str, limits: OntologyLimits = LIMITS) -> str:
    found = canonical_quads(text.encode(), "f.ttl", limits=limits)
    assert isinstance(found, Diagnostic)
    return found.rule


def test_notation_order_and_names_of_blank_nodes_do_not_matter() -> None:
    core = publish_core()
    assert canonical(core["core.ttl"]) == canonical(core["core.jsonld"], "f.jsonld")
    assert canonical("_:x <x:p> _:y . _:y <x:q> 1 .") == canonical("_:b <x:q> 1 . _:a <x:p> _:b .")
    assert canonical(canonical(core["core.ttl"]).decode(), "f.nq") == canonical(core["core.ttl"])
    assert canonical(FIGURE_3) != canonical(FIGURE_3.replace('"LLM"', '"LM"'))


def test_digest_is_sha_256_of_the_quads_on_which_another_implementation_agrees() -> None:
    document = json.dumps({**FIGURE_6, "ioa:providedBy": {"label": "somebody", "ioa:hasIntent": [{}, {"label": "x"}]}})
    inlined = inline_contexts(document.encode(), "f", shipped_contexts(), LIMITS)
    options = {"algorithm": "URDNA2015", "format": "application/n-quads"}
    assert canonical(document, "f.jsonld").decode() == jsonld.normalize(json.loads(inlined), options)
    assert canonical("<x:a> <x:p> 'b' .") == b'<x:a> <x:p> "b" .\n'
    assert content_digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("size", [12, 40])
def test_poisoned_graphs_are_refused_without_the_work(size: int) -> None:
    complete = [f"_:b{a} <x:p> _:b{b} ." for a in range(size) for b in range(size) if a != b]
    assert refused("\n".join(complete)) == "I110"
    assert refused("\n".join(f"_:b{number} <x:p> _:b{number + 1} ." for number in range(100 * size))) == "I110"


def test_ordinary_blank_nodes_cost_little_and_unlike_nodes_nothing() -> None:
    owl = "@prefix o: <http://www.w3.org/2002/07/owl#> . @prefix r: <http://www.w3.org/2000/01/rdf-schema#> ."
    restriction = "[ a o:Restriction ; o:onProperty <x:part> ; o:someValuesFrom <x:body> ]"
    classes = "\n".join(
        f"<x:{n}> r:subClassOf {restriction} ; o:disjointUnionOf ( <x:a> <x:b> <x:c> ) ." for n in range(50)
    )
    assert canonical(f"{owl}\n{classes}").count(b"\n") == 50 * 11
    assert canonical_work([]) == 0


def test_faults_of_the_document_are_findings() -> None:
    assert refused("<x:a> <x:p>") == "I102"
    assert refused("<x:a> <x:p> 1, 2, 3 .", OntologyLimits(triples=2)) == "I101"


_NODES = st.sampled_from(["_:a", "_:b", "_:c", "_:d", "<x:n>"])


@given(st.lists(st.tuples(_NODES, st.sampled_from(["<x:p>", "<x:q>"]), _NODES), max_size=8))
def test_any_small_graph_has_one_form(triples: list[tuple[str, str, str]]) -> None:
    lines = [" ".join(triple) + " ." for triple in triples]
    renamed = "\n".join(reversed(lines)).translate(str.maketrans("abcd", "dacb"))
    assert canonical_quads("\n".join(lines).encode(), "f.ttl") == canonical_quads(renamed.encode(), "f.ttl")


CS = "https://ex.org/onto/cs"


def artifact(content: bytes, digest: str = "") -> Artifact:
    digest = digest or content_digest(content)
    return Artifact(ArtifactRow("ontology", CS, "1.0", digest, (), "", "", "", "", "", 1, 0.0), content)


def test_terms_survive_the_registry_and_changed_or_malformed_content_is_a_fault() -> None:
    content = canonical_quads(FIGURE_3.encode(), "f.ttl")
    assert isinstance(content, bytes)
    original, _ = read_ontology(FIGURE_3.encode(), "f.ttl", id=CS, version="1.0")
    assert read_artifact(artifact(content)) == original
    changed = read_artifact(artifact(b"<x:a> <x:p> <x:b> .\n", "00" * 32))
    assert isinstance(changed, Fault)
    assert "was changed" in changed.message
    assert isinstance(read_artifact(artifact(b"<x:a>")), Fault)
