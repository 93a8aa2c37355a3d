from __future__ import annotations

from typing import Any

import pytest
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, findings, of_endpoint


@pytest.mark.parametrize("guidance", [0.85, 0.9, 1])
def test_a_high_confidence_is_right_for_what_cannot_be_undone(guidance: float) -> None:
    assert of_endpoint(semantic={"confidence_guidance": guidance}) == []


@pytest.mark.requirement("AGIS-6.2-9")
@pytest.mark.parametrize("guidance", [0.5, 0.7, 0.84])
def test_a_low_one_is_a_warning(guidance: float) -> None:
    assert of_endpoint(semantic={"confidence_guidance": guidance}) == ["S430"]


def test_a_low_one_is_fine_where_things_can_be_undone() -> None:
    assert of_endpoint(semantic={"confidence_guidance": 0.6, "impact_tier": "reversible"}) == []


@pytest.mark.requirement("AGIS-6.2-5")
@pytest.mark.parametrize(("impact", "expected"), [(GONE, ["S424", "S430"]), ("reversible", [])])
def test_a_grave_method_counts_as_irreversible_unless_it_says_otherwise(impact: Any, expected: list[str]) -> None:
    semantic = {
        "intent": "Cancels the room of the guest",
        "outcome": "The reservation has status CANCELLED",
        "confidence_guidance": 0.6,
        "impact_tier": impact,
    }
    assert of_endpoint(method="CANCEL", semantic=semantic) == expected
    semantic |= {"intent": "Transfers the room of the guest", "outcome": "The reservation has another guest"}
    assert of_endpoint(method="TRANSFER", semantic=semantic) == expected
    semantic |= {"intent": "Executes the order of the guest", "outcome": "The order has status EXECUTED"}
    assert of_endpoint(method="EXECUTE", semantic=semantic) == expected


@pytest.mark.requirement("AGIS-6.2-14")
@pytest.mark.parametrize("change", ["NONE -> CONFIRMED", "[current] -> [current - amount]", "NULL->[assigned]"])
def test_a_transition_has_two_sides(change: str) -> None:
    assert of_endpoint(semantic={"state_transition": {"reservation.status": change}}) == []


@pytest.mark.requirement("AGIS-6.2-14")
@pytest.mark.parametrize("change", ["CONFIRMED", "-> CONFIRMED", "NONE ->", "A -> B -> C", "", "NONE → CONFIRMED"])
def test_other_text_is_not_a_transition(change: str) -> None:
    assert of_endpoint(semantic={"state_transition": {"reservation.status": change}}) == ["S431"]


@pytest.mark.parametrize("change", ["NONE → CONFIRMED", "NONE => CONFIRMED"])
def test_other_arrow_is_fixed(change: str) -> None:
    found = advice("S431", document(endpoint(semantic={"state_transition": {"a/b": change}})))
    assert found.fix is not None
    assert found.fix.safe
    (mended,) = found.fix.changes
    assert (mended.at, mended.value) == ("/endpoints/0/semantic/state_transition/a~1b", "NONE -> CONFIRMED")


def test_from_and_to_are_not_field_names() -> None:
    changes = document(endpoint(semantic={"state_transition": {"from": "NONE", "to": "CONFIRMED"}}))
    found = [finding for finding in findings(changes) if finding.rule == "S431"]
    assert all("Name the field that changes" in (finding.help or "") for finding in found)
    assert len(found) == 2


@pytest.mark.requirement("AGIS-3.3-4")
def test_level_two_requires_the_transition_of_what_changes_state() -> None:
    hints = {"parameter_hints": {"room_id": ["the blue room"]}}
    assert of_endpoint(level=2, semantic=hints) == ["S432"]
    assert of_endpoint(level=1, semantic=hints) == []
    informational = {
        "intent": "Finds a room for the guest",
        "outcome": "A list of rooms is returned",
        "impact_tier": "informational",
        "capability": "discovery",
        "is_idempotent": True,
    }
    assert of_endpoint(level=2, method="FIND", semantic={**hints, **informational}) == []


@pytest.mark.parametrize(
    ("capability", "impact", "expected"),
    [
        ("discovery", "irreversible", ["S433"]),
        ("retrieval", "reversible", ["S433"]),
        ("analysis", "irreversible", ["S433"]),
        ("transaction", "informational", ["S433"]),
        ("modification", "informational", ["S433"]),
        ("discovery", "informational", []),
        ("analysis", "reversible", []),
        ("notification", "informational", []),
        ("transaction", "reversible", []),
    ],
)
def test_impact_and_capability_agree(capability: str, impact: str, expected: list[str]) -> None:
    semantic = {"capability": capability, "impact_tier": impact, "is_idempotent": True}
    assert of_endpoint(semantic=semantic) == expected


def test_informational_endpoint_has_no_transition() -> None:
    semantic = {
        "capability": "retrieval",
        "impact_tier": "informational",
        "is_idempotent": True,
        "state_transition": {"room.status": "FREE -> HELD"},
    }
    assert of_endpoint(semantic=semantic) == ["S434"]


def test_informational_endpoint_is_idempotent() -> None:
    semantic = {"capability": "retrieval", "impact_tier": "informational"}
    assert of_endpoint(semantic={**semantic, "is_idempotent": False}) == ["S435"]
    assert of_endpoint(semantic={**semantic, "is_idempotent": True}) == []


@pytest.mark.parametrize("impact", [[], {}, [None], {"a": {"b": []}}, 5, True])
def test_impact_of_wrong_type_is_one_finding(impact: Any) -> None:
    assert "D121" in of_endpoint(semantic={"impact_tier": impact})
