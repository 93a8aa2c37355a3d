"""The notation of an artifact is recognized by its beginning."""

from __future__ import annotations

from typing import get_args

from tests.documents.alignment.artifacts import ARTIFACT

from bespeak.documents.alignment.notation import (
    AlignmentNotation,
    alignment_notation,
    is_alignment,
    read_alignment,
    write_alignment,
)


def test_every_notation_is_recognized_and_read() -> None:
    for notation in get_args(AlignmentNotation):
        data = write_alignment(ARTIFACT, notation)
        assert alignment_notation(b"\xef\xbb\xbf" + data) == notation
        assert is_alignment(data)
        found = read_alignment(data, "file").alignment
        assert found is not None
        assert [rule.target for rule in found.rules] == [rule.target for rule in ARTIFACT.rules]


def test_ontologies_are_not_taken_for_alignments() -> None:
    for data in (b"<rdf:RDF/>", b'{"@graph": []}', b"@prefix a: <x:> .", b""):
        assert not is_alignment(data)
