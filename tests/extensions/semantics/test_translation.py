"""Translation of profiles: which mappings are used, and what is said of the others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.meaning import CLINICAL, RAD, RAD_PROFILE, alignment, ontology

from bespeak.checks.alignment.policy import Policy
from bespeak.contract.ontology.alignment import Alignment, MappingRule
from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.documents.envelope.reader import parse
from bespeak.extensions.semantics.translation import Mappings, ProfileTranslation

SUMMARY, NOTE = f"{RAD}#report-summary", f"{CLINICAL}#note-summarize"


def translate(*alignments: Alignment, **policy: Any) -> tuple[ProfileTranslation, Mappings]:
    mappings = Mappings(alignments, Policy(**policy))
    profile = parse(RAD_PROFILE).profile
    assert profile is not None
    ids = [one.id for one in alignments]
    translation = ProfileTranslation(mappings, ids, ontology("clinical"), lambda _: [RAD])
    translation.translate(profile)
    return translation, mappings


def test_equal_target_comes_before_a_broader_one() -> None:
    broader = MappingRule(source=SUMMARY, target=f"{CLINICAL}#document-summarize", relation="broader", confidence=1.0)
    translation, _ = translate(alignment(rules=(broader, *alignment().rules)))
    assert translation.used[SUMMARY].translation.iri == NOTE
    assert translation.used[SUMMARY].document() == {
        "from": SUMMARY,
        "to": NOTE,
        "relation": "equivalent",
        "confidence": 0.91,
        "alignmentRef": "https://ex.org/align/X-Y-2026",
    }
    alone, _ = translate(alignment(rules=(broader, alignment().rules[1])))
    assert alone.used[SUMMARY].translation.relation == "broader"


def test_target_that_the_ontology_does_not_declare_is_not_used() -> None:
    lost = MappingRule(source=SUMMARY, target=f"{CLINICAL}#gone", confidence=1.0)
    translation, _ = translate(alignment(rules=(lost,)))
    assert [one.rule for one in translation.broken] == ["I243", "I243"]


def test_doubtful_mapping_is_named_with_its_confidence() -> None:
    translation, mappings = translate(alignment(), threshold=0.92)
    assert [(one.rule, one.path) for one in translation.broken] == [("I244", "/capabilityRefs/0")]
    assert mappings.doubtful(SUMMARY) == 0.91
    assert mappings.doubtful(f"{RAD}#summarize-report") is None


def test_several_steps_must_be_certain_enough_together() -> None:
    middle = OntologyRef("https://m.example/o", "1.0")
    first = Alignment(
        id="x:1",
        source=OntologyRef(RAD, "1.0"),
        target=middle,
        rules=(MappingRule(source=SUMMARY, target="https://m.example/o#s", confidence=0.8),),
    )
    second = Alignment(
        id="x:2",
        source=middle,
        target=OntologyRef(CLINICAL, "2.1"),
        rules=(MappingRule(source="https://m.example/o#s", target=NOTE, confidence=0.85),),
    )
    doubtful, _ = translate(first, second)
    assert [one.rule for one in doubtful.broken] == ["I244", "I243"]
    certain, _ = translate(first, second, threshold=0.6)
    assert certain.used[SUMMARY].translation.iri == NOTE
    assert certain.used[SUMMARY].document()["alignmentRef"] == ["x:1", "x:2"]
    assert certain.used[SUMMARY].document()["confidence"] == pytest.approx(0.68)


def test_origin_of_a_mapping_is_its_own_or_that_of_the_artifact() -> None:
    known, mappings = translate(alignment())
    assert not mappings.is_anonymous(known.used[SUMMARY].translation)
    unknown, mappings = translate(alignment(provenance=None))
    assert mappings.is_anonymous(unknown.used[SUMMARY].translation)


def test_translators_with_a_part_of_the_alignments_are_bounded() -> None:
    alignments = [msgspec.structs.replace(alignment(), id=f"x:{number}") for number in range(40)]
    mappings = Mappings(alignments, Policy())
    assert mappings.translator(["x:1"]) is mappings.translator(["x:1"])
    for one in alignments:
        assert mappings.translator([one.id]).translate(SUMMARY, RAD, CLINICAL) is not None
