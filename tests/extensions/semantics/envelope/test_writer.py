"""Written envelopes are those of the draft, and read back as they were."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extensions.semantics.envelope.ontologies import meanings
from tests.extensions.semantics.ontology.figures import FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9

from bespeak.contract.core_ontology import DEFAULT
from bespeak.extensions.semantics.envelope.reader import parse
from bespeak.extensions.semantics.envelope.writer import write_envelope
from bespeak.extensions.semantics.profile import ProfileContext, SemanticProfile, TermBinding, judge


@pytest.mark.requirement("IOA-6-1", "IOA-12-1")
def test_figures_of_the_draft_are_written_with_full_iris_and_mean_the_same() -> None:
    for figure in (FIGURE_5, FIGURE_8["semantic"], FIGURE_7):
        profile = parse(figure).profile
        assert profile is not None
        written = write_envelope(profile)
        assert written["@context"] == DEFAULT.context
        assert written.keys() == figure.keys()
        assert parse(written).profile == profile


def test_envelope_of_figure_9_is_rejected_for_the_reason_of_the_draft() -> None:
    sent = {name: value for name, value in FIGURE_9["semantic"].items() if name != "validation"}
    envelope = parse(sent)
    verdict = judge(envelope.profile, meanings(), found=envelope.violations)
    assert {"status": verdict.status, "reason": verdict.reason} == FIGURE_9["semantic"]["validation"]


iris = st.sampled_from(
    ["https://ex.org/onto/cs#A", "https://ex.org/onto/cs#", "cs:literal", "urn:a:b", "https://x.org//y"]
)
texts = st.text(max_size=20)
profiles = st.builds(
    SemanticProfile,
    id=st.none() | iris,
    ontology_id=iris,
    ontology_version=st.text(min_size=1, max_size=20),
    capability_refs=st.lists(iris, min_size=1, max_size=3, unique=True).map(tuple),
    intent_ref=iris,
    profile_version=st.none() | texts,
    alignment_refs=st.lists(iris, max_size=2, unique=True).map(tuple),
    context=st.none()
    | st.builds(
        ProfileContext,
        domain=st.none() | iris,
        term_bindings=st.lists(st.builds(TermBinding, st.text(min_size=1, max_size=9), iris), max_size=2).map(tuple),
        source_lang=st.none() | texts,
        target_lang=st.none() | texts,
    ),
)


@settings(max_examples=200, deadline=None)
@given(profiles)
def test_written_profile_reads_back(profile: SemanticProfile) -> None:
    envelope = parse(msgspec.json.decode(msgspec.json.encode(write_envelope(profile))))
    assert (envelope.violations, envelope.profile) == ((), profile)
