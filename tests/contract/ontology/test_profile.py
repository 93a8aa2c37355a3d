"""Profiles are plain values."""

from __future__ import annotations

import msgspec

from bespeak.contract.ontology.profile import ProfileContext, SemanticProfile, TermBinding


def test_profile_survives_json() -> None:
    profile = SemanticProfile(
        ontology_id="https://ex.org/onto/agent-core",
        ontology_version="1.0",
        capability_refs=("https://ex.org/onto/cs#TechTranslation",),
        intent_ref="https://ex.org/onto/cs#TranslateTechDoc",
        context=ProfileContext(term_bindings=(TermBinding("LLM", "https://ex.org/onto/cs#LargeLanguageModel"),)),
    )
    assert msgspec.json.decode(msgspec.json.encode(profile), type=SemanticProfile) == profile
    assert hash(profile) == hash(msgspec.structs.replace(profile))
