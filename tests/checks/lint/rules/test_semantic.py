""""""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, findings, of_endpoint, rules

from bespeak.contract.endpoint import CAPABILITIES
from bespeak.contract.policy import MethodPolicy

Check = Callable[..., list[str]]


@pytest.mark.requirement("API-6.2-1")
@pytest.mark.parametrize("text", ["", "  ", None])
def test_an_endpoint_has_a_description(check: Check, text: Any) -> None:
    assert check(description=text) == ["S401"]


@pytest.mark.requirement("API-7.1-2", "API-13.2-4")
@pytest.mark.parametrize("field", ["intent", "actor", "outcome"])
def test_the_semantic_block_says_intent_actor_and_outcome(check: Check, field: str) -> None:
    assert check(semantic={field: " "}) == ["S401"]


@pytest.mark.requirement("API-7.1-1")
@pytest.mark.parametrize("actor", ["merchant", "patient", "night auditor", "代理"])
def test_an_unusual_actor_is_fine(check: Check, actor: str) -> None:
    assert check(semantic={"actor": actor}) == []


@pytest.mark.requirement("API-7.1-3")
def test_a_capability_is_one_of_the_nine(check: Check) -> None:
    assert len(CAPABILITIES) == 9
    for capability in CAPABILITIES:
        assert check(semantic={"capability": capability}) == []
    assert check(semantic={"capability": "TRANSACT"}) == ["S402"]


def test_an_empty_capability_is_inherited_where_there_is_something_to_inherit(check: Check) -> None:
    assert check(semantic={"capability": ""}) == []
    custom = MethodPolicy(custom=("FROBNICATE",))
    assert check(method="FROBNICATE", policy=custom, semantic={"capability": ""}) == ["S402"]


@pytest.mark.requirement("API-7.1-4")
@pytest.mark.parametrize("confidence", [0, 0.0, 0.5, 1, 1.0])
def test_a_confidence_lies_within_zero_and_one(check: Check, confidence: float) -> None:
    assert check(semantic={"confidence": confidence}) == []


@pytest.mark.requirement("API-7.1-4")
@pytest.mark.parametrize("confidence", [-0.1, 1.01, math.nan, math.inf, True, "0.5", None])
def test_any_other_confidence_is_refused(check: Check, confidence: Any) -> None:
    assert check(semantic={"confidence": confidence}) == ["S403"]


@pytest.mark.requirement("API-7.1-5")
def test_an_impact_is_one_of_three(check: Check) -> None:
    assert check(semantic={"impact": "reversible"}) == []
    assert check(semantic={"impact": "severe"}) == ["S404"]


@pytest.mark.requirement("API-7.1-6")
@pytest.mark.parametrize("value", [None, 0, "false"])
def test_is_idempotent_is_a_boolean(check: Check, value: Any) -> None:
    assert check(semantic={"is_idempotent": value}) == ["S405"]


def test_a_confidence_guidance_is_checked_where_there_is_one(check: Check) -> None:
    assert check(semantic={"confidence_guidance": 0.9}) == []
    assert check(semantic={"confidence_guidance": 9}) == ["S406"]


def test_a_whole_block_is_right() -> None:
    assert of_endpoint() == []


@pytest.mark.requirement("AGIS-6-1")
@pytest.mark.parametrize("semantic", [GONE, {}])
def test_a_missing_block_is_one_finding(semantic: Any) -> None:
    entry = endpoint()
    if semantic is GONE:
        del entry["semantic"]
    else:
        entry["semantic"] = semantic
    assert [found.rule for found in findings(document(entry))] == ["S410"]


@pytest.mark.requirement("AGIS-6.1-1", "AGIS-6.1-3", "AGIS-6.1-4")
@pytest.mark.parametrize(("field", "rule"), [("intent", "S411"), ("actor", "S412"), ("outcome", "S413")])
@pytest.mark.parametrize("value", [GONE, None, "", "  "])
def test_intent_actor_and_outcome_are_required(field: str, rule: str, value: Any) -> None:
    assert of_endpoint(semantic={field: value}) == [rule]


@pytest.mark.parametrize("field", ["intent", "actor", "outcome", "capability", "impact_tier", "is_idempotent"])
def test_a_value_of_a_wrong_type_is_found_once_and_by_the_reader(field: str) -> None:
    assert of_endpoint(semantic={field: 7}) == ["D121"]


@pytest.mark.requirement("AGIS-6.1-3")
@pytest.mark.parametrize("actor", ["agent", "user", "system"])
def test_the_three_actors_are_right(actor: str) -> None:
    assert of_endpoint(semantic={"actor": actor}) == []


@pytest.mark.requirement("AGIS-6.1-3", "AGIS-6.2-2", "AGIS-6.2-8")
@pytest.mark.parametrize(
    ("field", "value", "rule", "meant"),
    [
        ("actor", "guest", "S414", "user"),
        ("actor", "merchant", "S414", ""),
        ("capability", "creation", "S415", "transaction"),
        ("capability", "notify", "S415", "notification"),
        ("capability", "mechanics", "S415", ""),
        ("impact_tier", "high", "S416", "irreversible"),
        ("impact_tier", "severe", "S416", ""),
    ],
)
def test_another_word_is_refused_with_the_word_that_may_be_meant(field: str, value: str, rule: str, meant: str) -> None:
    found = advice(rule, document(endpoint(semantic={field: value})))
    assert found.severity == "error"
    assert repr(value) in found.message
    assert found.help == (f"Write {meant}, if that is meant." if meant else "Write the closest one.")
    assert found.fix is None


@pytest.mark.parametrize(
    ("field", "value", "rule", "pointer"),
    [
        ("actor", "Agent", "S414", "actor"),
        ("capability", "TRANSACTION", "S415", "capability"),
        ("impact_tier", " Irreversible", "S416", "impact_tier"),
    ],
)
def test_only_wrong_case_has_a_safe_fix(field: str, value: str, rule: str, pointer: str) -> None:
    found = advice(rule, document(endpoint(semantic={field: value})))
    assert found.fix is not None
    assert found.fix.safe
    (change,) = found.fix.changes
    assert (change.at, change.value) == (f"/endpoints/0/semantic/{pointer}", value.strip().lower())


@pytest.mark.requirement("AGIS-6.2-2", "AGIS-6.2-8")
@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("capability", "discovery transaction modification retrieval analysis notification"),
        ("impact_tier", "informational reversible irreversible"),
    ],
)
def test_the_words_of_the_draft_are_right(field: str, values: str) -> None:
    for value in values.split():
        assert not {"S415", "S416"} & {*of_endpoint(semantic={field: value})}, value


@pytest.mark.requirement("AGIS-6.2-4")
@pytest.mark.parametrize("guidance", [0, 1, 0.0, 1.0, 0.85])
def test_a_share_is_a_confidence(guidance: float) -> None:
    assert "S417" not in of_endpoint(semantic={"confidence_guidance": guidance})


@pytest.mark.requirement("AGIS-6.2-4")
@pytest.mark.parametrize("guidance", [-0.1, 1.01, 85, 1e300])
def test_other_values_are_refused(guidance: float) -> None:
    assert of_endpoint(semantic={"confidence_guidance": guidance}) == ["S417"]


def test_percentage_has_an_unsafe_fix() -> None:
    found = advice("S417", document(endpoint(semantic={"confidence_guidance": 85})))
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].value) == (False, 0.85)


@pytest.mark.parametrize("name", ["book_room", "book", "book_room_2"])
def test_a_tool_name_in_small_letters_is_right(name: str) -> None:
    assert of_endpoint(semantic={"mcp_tool_name": name}) == []


@pytest.mark.requirement("AGIS-6.2-15")
@pytest.mark.parametrize(
    ("name", "meant"), [("bookRoom", "book_room"), ("BOOK_ROOM", "book_room"), ("book-room", "book_room"), ("…", None)]
)
def test_other_tool_names_are_refused_with_one_that_is_right(name: str, meant: str | None) -> None:
    found = advice("S418", document(endpoint(semantic={"mcp_tool_name": name})))
    assert found.severity == "error"
    assert (found.fix.changes[0].value if found.fix else None) == meant


def test_concepts_are_absolute_iris() -> None:
    assert of_endpoint(semantic={"concepts": ["https://ex.org/onto/hotel#Stay", "urn:x:y"]}) == []
    found = advice("S419", document(endpoint(semantic={"concepts": ["https://ex.org/onto/hotel#Stay", "Stay"]})))
    assert (found.severity, found.pointer) == ("error", "/endpoints/0/semantic/concepts/1")


@pytest.mark.requirement("AGIS-6.2-1", "AGIS-6.2-3", "AGIS-6.2-7", "AGIS-6.2-11")
def test_missing_recommended_fields_are_one_finding() -> None:
    semantic = dict.fromkeys(("capability", "confidence_guidance", "impact_tier", "is_idempotent"), GONE)
    found = advice("S424", document(endpoint(semantic=semantic)))
    assert found.severity == "warning"
    assert "capability, confidence_guidance, impact_tier, is_idempotent" in found.message
    assert all(f"{field}: " in (found.help or "") for field in semantic)
    assert of_endpoint(semantic={"is_idempotent": GONE}) == ["S424"]


@pytest.mark.requirement("AGIS-3.3-2")
def test_level_two_requires_what_level_one_recommends() -> None:
    transition = {"reservation.status": "NONE -> CONFIRMED"}
    hints = {"room_id": ["the blue room"]}
    semantic = {"state_transition": transition, "parameter_hints": hints}
    assert of_endpoint(level=2, semantic=semantic) == []
    for field in ("capability", "confidence_guidance", "impact_tier", "is_idempotent"):
        assert "S425" in of_endpoint(level=2, semantic={**semantic, field: GONE}), field
    assert advice("S425", document(endpoint(semantic={"capability": GONE})), level=2).severity == "error"


@pytest.mark.requirement("AGIS-3.3-3")
def test_level_two_recommends_hints_where_there_are_parameters() -> None:
    transition = {"reservation.status": "NONE -> CONFIRMED"}
    assert of_endpoint(level=2, semantic={"state_transition": transition}) == ["S426"]
    no_input = {"type": "object"}
    assert of_endpoint(level=2, semantic={"state_transition": transition}, input=no_input) == []


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


@pytest.mark.requirement("AGIS-6.2-13")
def test_hints_for_parameters_are_right() -> None:
    assert of_endpoint(semantic={"parameter_hints": {"room_id": ["the blue room", "number 5"]}}) == []


def test_a_hint_for_a_path_parameter_is_right() -> None:
    hints = {"parameter_hints": {"hotel_id": ["at the Ritz"]}}
    assert of_endpoint(path="/hotel/{hotel_id}", semantic=hints) == ["J629"]


@pytest.mark.requirement("AGIS-6.2-13")
def test_hint_for_an_unknown_parameter_suggests_a_similar_name() -> None:
    found = advice("S440", document(endpoint(semantic={"parameter_hints": {"room": ["the blue room"]}})))
    assert found.severity == "warning"
    assert found.on_key
    assert found.help == "Did you mean room_id?"
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].key) == (False, "room_id")


def test_where_the_input_refers_elsewhere_nothing_is_known() -> None:
    schemas = {"Room": {"type": "object", "properties": {"room_id": {"type": "string"}}, "required": ["room_id"]}}
    schema = {"type": "object", "properties": {"nights": {"type": "integer"}}, "allOf": [{"$ref": "#/schemas/Room"}]}
    entry = endpoint(input=schema, semantic={"parameter_hints": {"room": ["the blue room"]}})
    assert rules(document(entry, schemas=schemas)) == []


@pytest.mark.parametrize("phrases", [[], ["", "two"], ["two", "Two "]])
def test_a_hint_says_something_and_says_it_once(phrases: list[str]) -> None:
    assert of_endpoint(semantic={"parameter_hints": {"room_id": phrases}}) == ["S441"]
