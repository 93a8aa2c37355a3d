"""Registered ontologies are read back; changed content is not used."""

from __future__ import annotations

from tests.documents.ontology.figures import FIGURE_3

from bespeak.documents.ontology.canonical import canonical_quads, content_digest, read_registered
from bespeak.documents.ontology.reader import read_ontology
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.store.commands.semantics import Artifact, ArtifactRow

CS = "https://ex.org/onto/cs"


def artifact(content: bytes, digest: str = "") -> Artifact:
    digest = digest or content_digest(content)
    return Artifact(ArtifactRow("ontology", CS, "1.0", digest, (), "", "", "", "", "", 1, 0.0), content)


def test_terms_survive_the_registry() -> None:
    content = canonical_quads(FIGURE_3.encode(), "f.ttl")
    assert isinstance(content, bytes)
    original, _ = read_ontology(FIGURE_3.encode(), "f.ttl", id=CS, version="1.0")
    assert read_registered(artifact(content)) == original


def test_changed_or_malformed_content_is_a_fault() -> None:
    changed = read_registered(artifact(b"<x:a> <x:p> <x:b> .\n", "00" * 32))
    assert isinstance(changed, Fault)
    assert "was changed" in changed.message
    assert isinstance(read_registered(artifact(b"<x:a>")), Fault)
