"""The notation of a document is known by its ending, else by its beginning."""

from __future__ import annotations

import pytest

from bespeak.documents.ontology.triples import notation_of


@pytest.mark.parametrize(
    ("file", "data", "notation"),
    [
        *(("a.ttl", b"{", "turtle"), ("a.RDF", b"", "rdfxml"), ("a.jsonld", b"", "jsonld"), ("a.nt", b"", "nquads")),
        *(("a.owl", b"\xef\xbb\xbf <?xml ?>", "rdfxml"), ("a.owl", b"<!DOCTYPE rdf:RDF>", "rdfxml")),
        *(
            ("a.owl", b"<rdf:RDF>", "rdfxml"),
            ("a.owl", b"@prefix : <x:> .", "turtle"),
            ("-", b"<x:a> a <x:b> .", "turtle"),
        ),
        *(("-", b' {"@id": 1}', "jsonld"), ("-", b'[ {"@id"', "jsonld"), ("-", b"[ a <x:b> ] .", "turtle")),
    ],
)
def test_notation_is_recognized(file: str, data: bytes, notation: str) -> None:
    assert notation_of(file, data) == notation
