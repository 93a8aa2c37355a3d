"""Nodes in Turtle and JSON-LD: every kind of value survives a parser."""

from __future__ import annotations

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from bespeak.documents.ontology.publication import Iri, Value, write_jsonld, write_turtle


@pytest.mark.parametrize(
    "value",
    [
        *(
            "plain",
            'quotes " and \\ strokes',
            'two\n"""lines"""',
            "ü",
            7,
            True,
            False,
            Iri("x:a"),
            Iri("https://ex.org/a"),
        ),
        *({"x:p": ("a", "b"), "a": Iri("x:T")}, [Iri("x:a"), {"x:p": 1}, "text"], {"x:p": {"x:q": [1, 2]}}),
    ],
)
def test_both_notations_say_the_same(value: Value) -> None:
    prefixes, nodes = {"x": "https://x.example/"}, {"x:s": {"a": (Iri("x:T"), Iri("x:U")), "x:p": value}}
    found = [
        Dataset(parse(write_turtle(prefixes, nodes), RdfFormat.TURTLE)),
        Dataset(parse(write_jsonld(prefixes, nodes), RdfFormat.JSON_LD)),
    ]
    for graph in found:
        graph.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    assert found[0] == found[1]
    assert len(found[0]) > 2
