"""Files of ontologies: large, special and missing ones end in a finding."""

from __future__ import annotations

import os
from pathlib import Path

from tests.documents.ontology.figures import FIGURE_3

from bespeak.documents.ontology.contexts import OntologyLimits
from bespeak.documents.ontology.reader import load_ontology, read_bytes
from bespeak.text.diagnostics.diagnostic import Diagnostic


def test_ontology_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "cs.ttl"
    file.write_text(FIGURE_3)
    ontology, findings = load_ontology(file, id="https://ex.org/onto/cs", version="1.0")
    assert ontology is not None
    assert len(ontology.terms) == 4
    assert findings == []


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "huge.ttl"
    with file.open("wb") as huge:
        huge.write(b"<x:a> <x:p> 1 .\n" * 10)
        huge.truncate(100 * 1024 * 1024)  # sparse: a file of 100 MB that takes no space
    found = read_bytes(file, OntologyLimits(size=4_096))
    assert isinstance(found, Diagnostic)
    assert found.rule == "I101"
    assert str(found.location) == f"{file}:11:1"


def test_missing_and_special_files_are_findings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ttl")
    for path in (tmp_path / "missing.ttl", tmp_path / "pipe.ttl", tmp_path, Path("a\0b")):
        ontology, [finding] = load_ontology(path)
        assert ontology is None
        assert finding.rule == "D101"
