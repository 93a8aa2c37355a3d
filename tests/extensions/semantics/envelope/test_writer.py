"""Written envelopes are those of the draft, and read back as they were."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.extensions.semantics.envelope.ontologies import meanings
from tests.extensions.semantics.ontology.figures import FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9

from bespeak.extensions.semantics.envelope.reader import parse
from bespeak.extensions.semantics.envelope.writer import write_envelope
from bespeak.extensions.semantics.profile import ProfileContext, SemanticProfile, TermBinding
from bespeak.extensions.semantics.profile_judgement import judge

CS = {"cs": "https://ex.org/onto/cs#"}


@pytest.mark.requirement("IOA-6-1", "IOA-12-1")
def test_figures_are_written_as_they_stand_in_the_draft() -> None:
    for figure, prefixes in (
        (FIGURE_5, CS),
        (FIGURE_8["semantic"], CS),
        (FIGURE_7, {"clinical": "https://y.org/onto/clinical#"}),
    ):
        profile = parse(figure).profile
        assert profile is not None
        assert write_envelope(profile, prefixes) == figure


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
spaces = st.sampled_from(
    ["https://ex.org/onto/cs#", "https://ex.org/", "https://x.org", "https://x.org/", "https:", ""]
)


@settings(max_examples=200, deadline=None)
@given(profiles, st.dictionaries(st.sampled_from(["cs", "x", "https", "ioa", "id", "urn"]), spaces))
def test_written_profile_reads_back_whatever_the_prefixes(profile: SemanticProfile, prefixes: dict[str, str]) -> None:
    envelope = parse(msgspec.json.decode(msgspec.json.encode(write_envelope(profile, prefixes))))
    assert (envelope.violations, envelope.profile) == ((), profile)
