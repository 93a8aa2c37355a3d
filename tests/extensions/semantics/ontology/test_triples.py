"""Hostile documents end in a finding with a place, and with bounded work."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.extensions.semantics.ontology.contexts import LIMITS, DocumentRefused, OntologyLimits
from bespeak.extensions.semantics.ontology.reader import read_ontology
from bespeak.extensions.semantics.ontology.triples import RdfNotation, check_xml, notation_of
from bespeak.text.diagnostics.diagnostic import Diagnostic

RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://x.example/">'


def refusal(text: str | bytes, notation: RdfNotation = "turtle", limits: OntologyLimits = LIMITS) -> Diagnostic:
    data = text if isinstance(text, bytes) else text.encode()
    ontology, [finding] = read_ontology(data, "file", notation, limits=limits)
    assert ontology is None
    assert finding.severity == "error"
    assert finding.location is not None
    return finding


def place(finding: Diagnostic) -> tuple[str, int, int]:
    return finding.rule, finding.location.line, finding.location.column


def test_syntax_error_and_too_many_bytes_are_reported_at_their_place() -> None:
    assert place(refusal("<x:a> <x:p> <x:b> .\n<x:a> <x:p>\n")) == ("I102", 3, 1)
    assert place(refusal(f"{RDF}\n<e:a></e:b></rdf:RDF>", "rdfxml")) == ("I102", 2, 8)
    assert place(refusal('{"a":\n [1, 2,,]}', "jsonld")) == ("D102", 2, 8)
    assert place(refusal(b"<x:a> <x:p> '\xff' .")) == ("I102", 1, 14)
    assert place(refusal("<x:a> <x:p> 1 .\n" * 100, limits=OntologyLimits(size=160))) == ("I101", 11, 1)
    assert refusal('{"a": 1}' + " " * 100, "jsonld", OntologyLimits(size=400)).rule == "I101"


@rows(
    "iri, rule",
    *(("x:\x01", "I102"), ("x:\\u0007", "I102"), ("x:\n", "I102"), ("x:a b", "I102"), ("relative", "I102")),
    *(("x:%0d%0aHost", "I103"), ("x:%00", "I103"), ("x:\x85", "I102"), ("x:" + "y" * 3_000, "I103")),
)
def test_iris_with_control_characters_or_endless_ones_are_refused(iri: str, rule: str) -> None:
    assert refusal(f"<x:a> <x:p> <{iri}> .").rule == rule


def test_triples_and_characters_are_counted() -> None:
    many = "".join(f"<x:{number}> <x:p> 1 .\n" for number in range(20))
    assert refusal(many, limits=OntologyLimits(triples=10)).message.endswith("more begin at 'x:10'")
    long = "@prefix p: <x:" + "y" * 500 + "> .\n" + "p:a p:b p:c .\n" * 50
    assert len(long) < 2_000
    assert refusal(long, limits=OntologyLimits(characters=20_000)).rule == "I101"


def test_growing_entities_and_other_encodings_are_refused() -> None:
    grown = "".join(f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 9))
    bomb = f'<!DOCTYPE r [<!ENTITY e0 "lol">{grown}]>\n{RDF}<e:a><e:p>&e8;</e:p></e:a></rdf:RDF>'
    assert place(refusal(bomb, "rdfxml"))[:2] == ("I109", 1)
    text = f'<!DOCTYPE r [<!ENTITY e "{"y" * 200}">]>{RDF}<e:a><e:p>{"&e;" * 2_000}</e:p></e:a></rdf:RDF>'
    assert refusal(text, "rdfxml", OntologyLimits(characters=100_000)).rule == "I109"
    text = f'<?xml version="1.0" encoding="UTF-16"?>{RDF}</rdf:RDF>'
    assert refusal(text.encode("utf-16"), "rdfxml").rule == "I102"
    assert refusal('{"@id": "x:a"}'.encode("utf-16"), "jsonld").rule == "D102"


@pytest.mark.parametrize(
    "declared", ['e SYSTEM "file:///etc/passwd"', '% e "x"', 'e "&#38;e;"', f'e "{"y" * 300}"', 'e "<e:p/>"']
)
def test_entities_that_read_files_or_hold_markup_are_refused(declared: str) -> None:
    text = f"<!DOCTYPE r [<!ENTITY {declared}>]>{RDF}<e:a><e:p>1</e:p></e:a></rdf:RDF>"
    assert refusal(text, "rdfxml").rule == "I109"


def test_deep_and_wide_documents_are_refused_before_a_parser_keeps_them() -> None:
    deep = 100_000
    assert refusal(f"{RDF}{'<e:a><e:p>' * deep}{'</e:p></e:a>' * deep}</rdf:RDF>", "rdfxml").rule == "I101"
    assert refusal('{"@id": "x:a", "x:p": ' + "[" * 500 + "]" * 500 + "}", "jsonld").pointer.startswith("/x:p/0/0/0")
    assert refusal('{"x:p": ' * deep + "1" + "}" * deep, "jsonld").rule == "D102"
    assert refusal(f"<x:a> <x:p> {'<<( <x:a> <x:p> ' * deep} 1 {')>> ' * deep} .").rule == "I101"
    attributes = " ".join(f'e:p{number}="1"' for number in range(300))
    assert place(refusal(f"{RDF}\n<e:a {attributes}/></rdf:RDF>", "rdfxml")) == ("I101", 2, 1)
    values = json.dumps({"@id": "x:a", "x:p": [1] * 100})
    assert refusal(values, "jsonld", OntologyLimits(triples=20)).pointer == "/x:p/57"
    assert refusal(b"<x:a> <x:p> '" + b"y" * (17 << 20) + b"' .").rule == "I101"


def test_triples_about_triples_are_skipped() -> None:
    ontology, _ = read_ontology(b"<x:a> a <x:T> ; <x:p> <<( <x:b> <x:p> 1 )>> .", "file", "turtle")
    assert list(ontology.terms) == ["x:a"]


@given(st.binary(max_size=200), st.sampled_from(["turtle", "rdfxml", "jsonld", "nquads"]))
def test_any_bytes_end_in_an_ontology_or_a_finding(data: bytes, notation: RdfNotation) -> None:
    ontology, findings = read_ontology(data, "file", notation)
    assert (ontology is None) == any(finding.severity == "error" for finding in findings)


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8), st.sampled_from(["x:a", "@type", "_:b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["@context", "@id", "@type", "@graph", "@list", "@value", "@reverse", "x:p", "p"]),
            inner,
            max_size=4,
        ),
    ),
)


@given(_JSON)
def test_any_json_ends_in_an_ontology_or_a_finding(value: object) -> None:
    ontology, findings = read_ontology(json.dumps(value).encode(), "file", "jsonld")
    assert (ontology is None) == any(finding.severity == "error" for finding in findings)


@rows(
    "file, data, notation",
    *(("a.ttl", b"{", "turtle"), ("a.RDF", b"", "rdfxml"), ("a.jsonld", b"", "jsonld"), ("a.nt", b"", "nquads")),
    *(("a.owl", b"\xef\xbb\xbf <?xml ?>", "rdfxml"), ("a.owl", b"<!DOCTYPE rdf:RDF>", "rdfxml")),
    *(
        ("a.owl", b"<rdf:RDF>", "rdfxml"),
        ("a.owl", b"@prefix : <x:> .", "turtle"),
        ("-", b"<x:a> a <x:b> .", "turtle"),
    ),
    *(("-", b' {"@id": 1}', "jsonld"), ("-", b'[ {"@id"', "jsonld"), ("-", b"[ a <x:b> ] .", "turtle")),
)
def test_notation_is_recognized(file: str, data: bytes, notation: str) -> None:
    assert notation_of(file, data) == notation


NESTED = b'<!DOCTYPE a [<!ENTITY owl "http://www.w3.org/2002/07/owl#">]>\n<a x="&owl;"><b><c/><c/></b><!-- <d> --></a>'


def test_plain_entities_and_shallow_elements_pass() -> None:
    check_xml(NESTED, "file", OntologyLimits(depth=3))


def test_refusal_names_line_and_column() -> None:
    with pytest.raises(DocumentRefused) as refused:
        check_xml(NESTED, "file", OntologyLimits(depth=2))
    assert str(refused.value.finding.location) == "file:2:17"
    with pytest.raises(DocumentRefused, match=r"file:1:4: error\[I102\]: this is not XML"):
        check_xml(b"<a>", "file", LIMITS)
