"""Profiles are plain values."""

from __future__ import annotations

import msgspec

from bespeak.extensions.semantics.profile import (
    ACCEPTED,
    ProfileContext,
    SemanticProfile,
    TermBinding,
    Verdict,
    Violation,
)
from bespeak.extensions.semantics.rules import BINDING_CONFLICT, INTENT_REF
from bespeak.text.diagnostics.report import page_of


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


def test_conflict_of_meaning_precedes_a_missing_member_and_a_violation_is_short_plain_data() -> None:
    missing = Violation.of(INTENT_REF, "/intentRef")
    conflict = Violation.of(BINDING_CONFLICT, "/x", "x:y", "x:d")
    assert Verdict("reject", (missing, conflict)).reason == "termBinding sense conflicts with domain"
    assert Verdict("reject", (missing,)).reason == page_of(INTENT_REF).summary == INTENT_REF.reason
    assert ACCEPTED.reason == ""
    found = Violation.of(INTENT_REF, "/intentRef", {"a": ["x" * 1_000] * 9})
    written = msgspec.json.encode(found)
    assert len(written) < 1_000
    assert msgspec.json.decode(written)["path"] == "/intentRef"
    assert len(Violation.of(INTENT_REF, "/intentRef", "x" * 1_000).value) < 400
