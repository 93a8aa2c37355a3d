"""The layer of a server: what it speaks, and what it remembers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.meaning import CLINICAL, CLINICAL_PROFILE, RAD_PROFILE, alignment, snapshot
from tests.runtime.semantic.test_calls import summarize
from tests.service import build, echo, make_endpoint

from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.documents.envelope.message import find_payload
from bespeak.documents.envelope.nlip import NlipMessage, write_nlip
from bespeak.documents.envelope.reader import parse
from bespeak.runtime.semantic import layer as module
from bespeak.runtime.semantic.layer import SemanticLayer, digest_of

CORE = "https://ex.org/onto/agent-core"
OWN = "agtp://test.example/"


def layer(*endpoints: Any, **settings: Any) -> SemanticLayer:
    routes = build(*(endpoints or (summarize(),))).routes
    made = SemanticLayer(SemanticSettings(**settings), lambda: routes)
    made.knowledge.snapshot = snapshot()
    return made


def test_service_speaks_the_ontologies_of_its_concepts() -> None:
    plain = make_endpoint("QUERY", "/notes", echo)
    assert layer().spoken((f"{CLINICAL}#note-summarize",)) == (CLINICAL, CORE, OWN)
    assert layer(plain, summarize()).spoken() == (CLINICAL, CORE, OWN)
    assert len(layer(plain).spoken()) == 6
    assert SemanticLayer(SemanticSettings()).spoken() == (CORE,)


def test_repeated_profile_is_looked_up_until_the_registry_changes() -> None:
    made, profile = layer(), parse(RAD_PROFILE).profile
    assert profile is not None
    first = made.negotiate(profile, summarize())
    assert made.negotiate(profile, summarize()) is first
    assert made.negotiate(profile, summarize("irreversible")) is not first
    made.knowledge.snapshot = snapshot(alignment(rules=()))
    assert made.negotiate(profile, summarize()).match == "none"


def test_hostile_profiles_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OUTCOMES", 3)
    made = layer()
    for number in range(6):
        made.read({**CLINICAL_PROFILE, "ontologyVersion": f"2.{number}"}, summarize())
    assert len(made.view.outcomes) == 3


def test_digest_does_not_depend_on_the_notation() -> None:
    plain = {**RAD_PROFILE, "@context": "https://ex.org/ctx"}
    plain |= {
        "capabilityRefs": "https://x.org/onto/rad#report-summary",
        "intentRef": "https://x.org/onto/rad#summarize-report",
    }
    one, other = parse(RAD_PROFILE).profile, parse(plain).profile
    assert one is not None
    assert other is not None
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(
    ("required", "impact", "expected"),
    [
        ("never", "irreversible", False),
        ("irreversible", "irreversible", True),
        ("irreversible", "reversible", False),
        ("always", "informational", True),
    ],
)
def test_requirement_depends_on_the_impact(required: str, impact: str, *, expected: bool) -> None:
    assert layer(required=required).requires(summarize(impact)) is expected


@pytest.mark.requirement("IOA-9-4")
def test_envelope_that_nlip_carries_is_judged_like_any_other() -> None:
    message = NlipMessage("Summarize the report.")
    for envelope, match in ((RAD_PROFILE, "mapped"), ({**RAD_PROFILE, "capabilityRefs": []}, "none")):
        carried = find_payload(write_nlip(message, envelope)).payload
        _, outcome = layer().read(carried, summarize())
        assert outcome.match == match
