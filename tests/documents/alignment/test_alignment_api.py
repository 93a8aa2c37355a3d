"""The Alignment API format holds ontologies, relations and measures; XML is read without entities."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.alignment.artifacts import alignments

from bespeak.contract.ontology.alignment import Alignment, MappingRule
from bespeak.documents.alignment.notation import read_alignment_api, write_alignment_api
from bespeak.documents.alignment.rules import BAD_IRI, CONFIDENCE, CONFLICT, MALFORMED, RELATION, TOO_LARGE

# As files of the field are written: another form of the namespace, single quotes, the ontology as a text.
REFERENCE = """<?xml version='1.0' encoding='utf-8'?>
<rdf:RDF xmlns='http://knowledgeweb.semanticweb.org/heterogeneity/alignment'
  xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:xsd='http://www.w3.org/2001/XMLSchema#'>
<Alignment><xml>yes</xml><level>0</level><type>??</type>
<onto1>http://one.example</onto1><onto2><Ontology rdf:about="http://two.example"><location>x</location></Ontology></onto2>
<map>
%s
</map></Alignment></rdf:RDF>"""
CELL = (
    "<Cell><entity1 rdf:resource='http://one.example#A'/><entity2 rdf:resource='http://two.example#B'/>"
    "<measure rdf:datatype='xsd:float'>1.0</measure><relation>=</relation></Cell>"
)


def read(cells: str) -> tuple[Alignment | None, list[tuple[str, int]]]:
    document = read_alignment_api((REFERENCE % cells).encode(), "a.rdf")
    return document.alignment, [(one.rule, one.location.line if one.location else 0) for one in document.findings]


def what_it_holds(alignment: Alignment) -> Alignment:
    rules = tuple(
        MappingRule(
            source=one.source, target=one.target, relation=one.relation, confidence=alignment.confidence_of(one)
        )
        for one in alignment.rules
    )
    refs = [msgspec.structs.replace(ref, version="") for ref in (alignment.source, alignment.target)]
    return Alignment(source=refs[0], target=refs[1], rules=rules, id=alignment.id)


@given(alignments)
def test_what_the_format_holds_comes_back(alignment: Alignment) -> None:
    document = read_alignment_api(write_alignment_api(alignment), "a.rdf")
    assert document.findings == []
    assert document.alignment is not None
    assert msgspec.structs.replace(document.alignment, provenance=None) == what_it_holds(alignment)


def test_reference_of_a_campaign_is_read() -> None:
    alignment, findings = read(CELL)
    assert findings == []
    assert alignment is not None
    assert (alignment.source.id, alignment.target.id) == ("http://one.example", "http://two.example")
    rule = MappingRule(source="http://one.example#A", target="http://two.example#B", confidence=1.0)
    assert alignment.rules == (rule,)


@pytest.mark.parametrize(
    ("cells", "finding"),
    [
        (CELL.replace(">=<", ">%<"), (RELATION.id, 7)),
        (CELL.replace("1.0", "7"), (CONFIDENCE.id, 7)),
        (CELL.replace("1.0", "high"), (CONFIDENCE.id, 7)),
        (CELL.replace("http://two.example#B", "B"), (BAD_IRI.id, 7)),
        (CELL + "\n" + CELL.replace(">=<", ">&lt;<"), (CONFLICT.id, 8)),
        ("<a>" * 20 + "</a>" * 20, (TOO_LARGE.id, 7)),
        (CELL.replace("1.0", "1" * 5_000), (TOO_LARGE.id, 7)),
        ("<Cell>", (MALFORMED.id, 8)),
    ],
)
def test_poisoned_artifact_is_refused_with_the_line(cells: str, finding: tuple[str, int]) -> None:
    assert read(cells) == (None, [finding])


def test_entities_are_refused_before_they_are_expanded() -> None:
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><r>&b;</r>'
    document = read_alignment_api(bomb.encode(), "a.rdf")
    assert document.alignment is None
    assert [one.rule for one in document.findings] == [MALFORMED.id]


def test_other_document_is_refused() -> None:
    assert read_alignment_api(b"<rdf/>", "a.rdf").alignment is None
    assert read_alignment_api(b"<?xml version='1.0' encoding='none'?><a/>", "a.rdf").findings


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: (REFERENCE % text).encode()))
def test_any_bytes_end_in_an_artifact_or_a_finding(data: bytes) -> None:
    document = read_alignment_api(data, "a.rdf")
    assert (document.alignment is None) <= bool(document.findings)
