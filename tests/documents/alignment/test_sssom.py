"""SSSOM TSV holds everything, what has no column in `other`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.alignment.artifacts import ARTIFACT, alignments

from bespeak.contract.ontology.alignment import Alignment
from bespeak.documents.alignment.notation import read_sssom, write_sssom
from bespeak.documents.alignment.rules import BAD_IRI, CONFIDENCE, CONFLICT, MALFORMED, RELATION

HEADER = """#curie_map:
#  a: https://x.org/a#
#  b: https://x.org/b#
#subject_source: https://x.org/a
#object_source: https://x.org/b
#subject_source_version: 1.0
subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence\tpredicate_modifier
"""


def read(*rows: str) -> tuple[Alignment | None, list[tuple[str, int]]]:
    lines = "".join(row.replace(" ", "\t") + "\n" for row in rows)
    document = read_sssom((HEADER + lines).encode(), "a.tsv")
    return document.alignment, [(one.rule, one.location.line if one.location else 0) for one in document.findings]


@given(alignments)
def test_everything_but_an_empty_provenance_of_the_set_comes_back(alignment: Alignment) -> None:
    document = read_sssom(write_sssom(alignment), "a.tsv")
    assert document.findings == []
    found = document.alignment
    assert found is not None
    assert found.rules == alignment.rules
    assert (found.source, found.target, found.id, found.version) == (
        *(alignment.source, alignment.target, alignment.id, alignment.version),
    )
    assert found.given_confidence == alignment.given_confidence


def test_known_artifact_is_written_with_the_columns_of_sssom() -> None:
    text = write_sssom(ARTIFACT).decode()
    assert '#subject_source_version: "1.0"\n' in text
    assert (
        "n1:report-summary\tskos:broadMatch\tn2:note-summarize\tsemapv:ManualMappingCuration\t0.91\t0.88\tAnn\t" in text
    )
    found = read_sssom(text.encode(), "a.tsv").alignment
    assert found == ARTIFACT


def test_mappings_of_other_tools_are_read() -> None:
    alignment, findings = read("a:1 owl:equivalentClass b:1 semapv:LexicalSimilarityThresholdMatching 0.8")
    assert findings == []
    assert alignment is not None
    rule = alignment.rules[0]
    assert (rule.source, rule.relation, rule.justification) == ("https://x.org/a#1", "equivalent", "lexical")
    assert alignment.source.version == "1.0"


def test_negated_mapping_is_left_out() -> None:
    alignment, findings = read("a:1 skos:exactMatch b:1 semapv:LexicalMatching 0.8 Not")
    assert alignment is not None
    assert alignment.rules == ()
    assert findings == [(RELATION.id, 8)]


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        (("a:1 skos:exactMatch c1 x 0.8",), (BAD_IRI.id, 8)),
        (("a:1 skos:similar b:1 x 0.8",), (RELATION.id, 8)),
        (("a:1 skos:exactMatch b:1 x 1.8",), (CONFIDENCE.id, 8)),
        (("a:1 skos:exactMatch b:1 x nan",), (CONFIDENCE.id, 8)),
        (("a:1 skos:exactMatch b:1 x sure",), (CONFIDENCE.id, 8)),
        (("a:1 skos:exactMatch b:1 x 0.8", "a:1 skos:broadMatch b:1 x 0.8"), (CONFLICT.id, 9)),
    ],
)
def test_poisoned_artifact_is_refused_with_the_line(rows: tuple[str, ...], finding: tuple[str, int]) -> None:
    assert read(*rows) == (None, [finding])


def test_table_without_its_columns_is_refused() -> None:
    document = read_sssom(b"#subject_source: x:a\n#object_source: x:b\nfrom\tto\n", "a.tsv")
    assert document.alignment is None
    assert document.findings[0].rule == MALFORMED.id


@given(st.binary(max_size=300) | st.text(max_size=100).map(lambda text: f"#{text}\n{HEADER}{text}".encode()))
def test_any_bytes_end_in_an_artifact_or_a_finding(data: bytes) -> None:
    document = read_sssom(data, "a.tsv")
    assert (document.alignment is None) <= bool(document.findings)
