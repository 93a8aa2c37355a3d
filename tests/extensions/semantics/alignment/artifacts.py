"""Alignments for the tests of their notations."""

from __future__ import annotations

from hypothesis import strategies as st

from bespeak.extensions.semantics.alignment.policy import Alignment, Justification, MappingRule, Provenance, Relation
from bespeak.extensions.semantics.terms import OntologyRef

RULE = MappingRule(
    source="https://x.org/onto/rad#report-summary",
    target="https://y.org/onto/clinical#note-summarize",
    relation="broader",
    confidence=0.91,
    score=0.88,
    justification="manual",
    signals={"lexical": 0.3},
    override=True,
    confirmed_by="Ann | Bob",
    provenance=Provenance(author="Ann", tool="bespeak", created="2026-03-01T10:00:00Z"),
)
ARTIFACT = Alignment(
    source=OntologyRef("https://x.org/onto/rad", "1.0"),
    target=OntologyRef("https://y.org/onto/clinical", "2.1"),
    rules=(RULE,),
    id="https://ex.org/align/X-Y-2026",
    version="1.2",
    given_confidence=0.9,
    provenance=Provenance(author="Ann", tool="bespeak", source="hospital", created="2026-03-01"),
)

_names = st.text(st.characters(codec="utf-8", categories=("L", "N")) | st.sampled_from("-_.~"), min_size=1, max_size=8)
_iris = st.builds("{}{}{}".format, st.sampled_from(("https://x.org/a#", "https://x.org/b/", "urn:c:")), _names, _names)
_texts = st.text(st.characters(codec="utf-8", exclude_categories=("C",)) | st.sampled_from('\t"|\\'), max_size=12)
_numbers = st.none() | st.floats(0, 1)
_relations: st.SearchStrategy[Relation] = st.sampled_from(("equivalent", "broader", "narrower", "related"))
_justifications: st.SearchStrategy[Justification | None] = st.sampled_from(
    (None, "lexical", "structural", "behavioral", "embedding", "composite", "manual", "review")
)
_provenances = st.none() | st.builds(
    Provenance, author=_texts, tool=_texts, tool_version=_texts, source=_texts, created=_texts
)
_rules = st.builds(
    MappingRule,
    source=_iris,
    target=_iris,
    relation=_relations,
    confidence=_numbers,
    score=_numbers,
    justification=_justifications,
    signals=st.dictionaries(_texts, st.floats(0, 1), max_size=3),
    override=st.booleans(),
    confirmed_by=_texts,
    provenance=_provenances,
)
alignments = st.builds(
    Alignment,
    source=st.builds(OntologyRef, _iris, _names),
    target=st.builds(OntologyRef, _iris, _names),
    rules=st.lists(_rules, max_size=4, unique_by=lambda rule: (rule.source, rule.target)).map(tuple),
    id=_iris | st.just(""),
    version=_names | st.just(""),
    given_confidence=_numbers,
    provenance=_provenances,
)
