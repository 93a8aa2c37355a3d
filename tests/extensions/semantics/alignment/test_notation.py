"""The notation of an artifact is recognized by its beginning."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.extensions.semantics.alignment.artifacts import ARTIFACT, alignments

from bespeak.extensions.semantics.alignment.notation import (
    AlignmentNotation,
    alignment_notation,
    is_alignment,
    read_alignment,
    read_alignment_api,
    read_sssom,
    write_alignment,
    write_alignment_api,
    write_sssom,
)
from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule, Provenance, Unmapped
from bespeak.extensions.semantics.rules import (
    ALIGNMENT_IRI,
    ALIGNMENT_TOO_LARGE,
    BAD_ARTIFACT,
    CONFIDENCE,
    CONFLICT,
    RELATION,
)
from bespeak.extensions.semantics.terms import OntologyRef


def test_every_notation_is_recognized_and_read() -> None:
    for notation in get_args(AlignmentNotation):
        data = write_alignment(ARTIFACT, notation)
        assert alignment_notation(b"\xef\xbb\xbf" + data) == notation
        assert is_alignment(data)
        found = read_alignment(data, "file").alignment
        assert [rule.target for rule in found.rules] == [rule.target for rule in ARTIFACT.rules]


def test_reference_of_a_campaign_is_read_and_ontologies_are_not_taken_for_alignments() -> None:
    for data in (b"<rdf:RDF/>", b'{"@graph": []}', b"@prefix a: <x:> .", b""):
        assert not is_alignment(data)
    alignment, findings = read(CELL)
    assert findings == []
    assert (alignment.source.id, alignment.target.id) == ("http://one.example", "http://two.example")
    rule = MappingRule(source="http://one.example#A", target="http://two.example#B", confidence=1.0)
    assert alignment.rules == (rule,)


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


@rows(
    "cells, finding",
    (CELL.replace(">=<", ">%<"), (RELATION.id, 7)),
    (CELL.replace("1.0", "7"), (CONFIDENCE.id, 7)),
    (CELL.replace("1.0", "high"), (CONFIDENCE.id, 7)),
    (CELL.replace("http://two.example#B", "B"), (ALIGNMENT_IRI.id, 7)),
    (CELL + "\n" + CELL.replace(">=<", ">&lt;<"), (CONFLICT.id, 8)),
    ("<a>" * 20 + "</a>" * 20, (ALIGNMENT_TOO_LARGE.id, 7)),
    (CELL.replace("1.0", "1" * 5_000), (ALIGNMENT_TOO_LARGE.id, 7)),
    ("<Cell>", (BAD_ARTIFACT.id, 8)),
)
def test_poisoned_artifact_is_refused_with_the_line(cells: str, finding: tuple[str, int]) -> None:
    assert read(cells) == (None, [finding])


def test_entities_and_other_documents_are_refused() -> None:
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><r>&b;</r>'
    document = read_alignment_api(bomb.encode(), "a.rdf")
    assert document.alignment is None
    assert [one.rule for one in document.findings] == [BAD_ARTIFACT.id]
    assert read_alignment_api(b"<rdf/>", "a.rdf").alignment is None
    assert read_alignment_api(b"<?xml version='1.0' encoding='none'?><a/>", "a.rdf").findings


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: (REFERENCE % text).encode()))
def test_any_bytes_end_in_an_artifact_or_a_finding(data: bytes) -> None:
    document = read_alignment_api(data, "a.rdf")
    assert (document.alignment is None) <= bool(document.findings)


HEADER = """#curie_map:
#  a: https://x.org/a#
#  b: https://x.org/b#
#subject_source: https://x.org/a
#object_source: https://x.org/b
#subject_source_version: 1.0
subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence\tpredicate_modifier
"""


def sssom_read(*rows: str) -> tuple[Alignment | None, list[tuple[str, int]]]:
    lines = "".join(row.replace(" ", "\t") + "\n" for row in rows)
    document = read_sssom((HEADER + lines).encode(), "a.tsv")
    return document.alignment, [(one.rule, one.location.line if one.location else 0) for one in document.findings]


@given(alignments)
def test_everything_but_an_empty_provenance_of_the_set_comes_back(alignment: Alignment) -> None:
    document = read_sssom(write_sssom(alignment), "a.tsv")
    assert document.findings == []
    found = document.alignment
    assert found.rules == alignment.rules
    assert (found.source, found.target, found.id, found.version) == (
        *(alignment.source, alignment.target, alignment.id, alignment.version),
    )
    assert found.given_confidence == alignment.given_confidence


def test_known_artifact_is_written_with_the_columns_of_sssom() -> None:
    text = write_sssom(ARTIFACT).decode()
    assert '#subject_source_version: "1.0"\n' in text
    assert (
        "rad:report-summary\tskos:broadMatch\tclinical:note-summarize\tsemapv:ManualMappingCuration\t0.91\t0.88\tAnn\t"
        in text
    )
    found = read_sssom(text.encode(), "a.tsv").alignment
    assert found == ARTIFACT


def test_what_a_validator_of_sssom_takes_for_uris_are_uris() -> None:
    origin = Provenance(author="Zoë|Ann", source="notes of the meeting")
    rule = MappingRule(source="https://ü.example/a#größe", target="https://y.org/onto#size(m)", provenance=origin)
    unmapped = (Unmapped(source="https://ü.example/a#farbe", confirmed_by="ann|bob"),)
    refs = {"source": OntologyRef("https://x.org/a", "1"), "target": OntologyRef("https://y.org/onto", "1")}
    artifact = Alignment(
        **refs, id="https://x.org/m", version="1.0", rules=(rule,), unmapped=unmapped, provenance=origin
    )
    text = write_sssom(artifact).decode()
    assert "mapping_set_source" not in text
    header, *rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    for row in rows:
        said = dict(zip(header, row, strict=True))
        assert all(re.fullmatch(r"[!-~]+:[!-~]+", said[name]) for name in ("subject_id", "predicate_id", "object_id"))
        assert said["mapping_source"] == ""
    assert rows[1][2] == "sssom:NoTermFound"
    assert read_sssom(text.encode(), "a.tsv").alignment == artifact


def test_mappings_of_other_tools_are_read() -> None:
    alignment, findings = sssom_read("a:1 owl:equivalentClass b:1 semapv:LexicalSimilarityThresholdMatching 0.8")
    assert findings == []
    rule = alignment.rules[0]
    assert (rule.source, rule.relation, rule.justification) == ("https://x.org/a#1", "equivalent", "lexical")
    assert alignment.source.version == "1.0"


def test_negated_mapping_is_left_out_and_a_table_without_its_columns_refused() -> None:
    alignment, findings = sssom_read("a:1 skos:exactMatch b:1 semapv:LexicalMatching 0.8 Not")
    assert alignment.rules == ()
    assert findings == [(RELATION.id, 8)]
    document = read_sssom(b"#subject_source: x:a\n#object_source: x:b\nfrom\tto\n", "a.tsv")
    assert (document.alignment, document.findings[0].rule) == (None, BAD_ARTIFACT.id)


@rows(
    "rows, finding",
    (("a:1 skos:exactMatch c1 x 0.8",), (ALIGNMENT_IRI.id, 8)),
    (("a:1 skos:similar b:1 x 0.8",), (RELATION.id, 8)),
    (("a:1 skos:exactMatch b:1 x 1.8",), (CONFIDENCE.id, 8)),
    (("a:1 skos:exactMatch b:1 x nan",), (CONFIDENCE.id, 8)),
    (("a:1 skos:exactMatch b:1 x sure",), (CONFIDENCE.id, 8)),
    (("a:1 skos:exactMatch b:1 x 0.8", "a:1 skos:broadMatch b:1 x 0.8"), (CONFLICT.id, 9)),
)
def test_sssom_poisoned_artifact_is_refused_with_the_line(rows: tuple[str, ...], finding: tuple[str, int]) -> None:
    assert sssom_read(*rows) == (None, [finding])


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: f"#{text}\n{HEADER}{text}".encode()))
def test_sssom_any_bytes_end_in_an_artifact_or_a_finding(data: bytes) -> None:
    document = read_sssom(data, "a.tsv")
    assert (document.alignment is None) <= bool(document.findings)
