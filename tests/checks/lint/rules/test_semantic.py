from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import rows
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, findings, of_endpoint, rules

from bespeak.contract.endpoint import CAPABILITIES
from bespeak.contract.policy import MethodPolicy

Check = Callable[..., list[str]]


CUSTOM = {"method": "FROBNICATE", "policy": MethodPolicy(custom=("FROBNICATE",))}


def of(field: str, *values: Any, found: str = "") -> list[tuple[dict[str, Any], list[str]]]:
    """Return rows for values of a field of the semantic block, with the rule that each breaks."""
    return [({"semantic": {field: value}}, [found] if found else []) for value in values]


@pytest.mark.requirement("API-6.2-1", "API-7.1-1", "API-7.1-2", "API-7.1-3", "API-7.1-4", "API-7.1-5", "API-7.1-6")
@pytest.mark.requirement("API-13.2-4")
@rows(
    "fields, expected",
    *(({"description": text}, ["S401"]) for text in ("", "  ", None)),
    *(row for field in ("intent", "actor", "outcome") for row in of(field, " ", found="S401")),
    *of("actor", "merchant", "patient", "night auditor", "代理"),
    *of("capability", *CAPABILITIES, ""),  # an empty one is inherited
    *of("capability", "TRANSACT", found="S402"),
    ({**CUSTOM, "semantic": {"capability": ""}}, ["S402"]),  # a custom method has none to inherit
    *of("confidence", 0, 0.0, 0.5, 1, 1.0),
    *of("confidence", -0.1, 1.01, math.nan, math.inf, True, "0.5", None, found="S403"),
    *of("impact", "reversible"),
    *of("impact", "severe", found="S404"),
    *of("is_idempotent", None, 0, "false", found="S405"),
    *of("confidence_guidance", 0.9),
    *of("confidence_guidance", 9, found="S406"),
)
def test_registration_checks_prose_and_semantic_block(
    check: Check, fields: dict[str, Any], expected: list[str]
) -> None:
    assert check(**fields) == expected


def test_there_are_nine_capabilities() -> None:
    assert len(CAPABILITIES) == 9


UNDOABLE = {"impact_tier": "reversible"}
READING = {"capability": "retrieval", "impact_tier": "informational", "is_idempotent": True}


@pytest.mark.requirement("AGIS-6.1-1", "AGIS-6.1-3", "AGIS-6.1-4", "AGIS-6.2-4", "AGIS-6.2-9", "AGIS-6.2-13")
@pytest.mark.requirement("AGIS-6.2-14")
@rows(
    "fields, expected",
    ({}, []),
    *of("intent", GONE, None, "", "  ", found="S411"),
    *of("actor", GONE, None, "", "  ", found="S412"),
    *of("outcome", GONE, None, "", "  ", found="S413"),
    # The reader reports a value of a wrong type, once.
    *(({"semantic": {name: 7}}, ["D121"]) for name in ("intent", "actor", "outcome", "capability", "impact_tier")),
    *of("is_idempotent", 7, found="D121"),
    *of("actor", "agent", "user", "system"),
    *of("confidence_guidance", 1, 1.0, 0.85, 0.9),
    *of("confidence_guidance", -0.1, 1.01, 85, 1e300, found="S417"),
    *of("confidence_guidance", 0.5, 0.7, 0.84, found="S430"),
    ({"semantic": {"confidence_guidance": 0.6, **UNDOABLE}}, []),
    *of("mcp_tool_name", "book_room", "book", "book_room_2"),
    *of("is_idempotent", GONE, found="S424"),
    *of("state_transition", {"a": "NONE -> CONFIRMED"}, {"a": "[current] -> [current - amount]"}),
    *of("state_transition", {"a": "NULL->[assigned]"}),
    *of("state_transition", {"a": "CONFIRMED"}, {"a": "-> CONFIRMED"}, {"a": "NONE ->"}, found="S431"),
    *of("state_transition", {"a": "A -> B -> C"}, {"a": ""}, {"a": "NONE → CONFIRMED"}, found="S431"),
    ({"semantic": {**READING, "state_transition": {"room.status": "FREE -> HELD"}}}, ["S434"]),
    ({"semantic": {**READING, "is_idempotent": False}}, ["S435"]),
    ({"semantic": READING}, []),
    *of("parameter_hints", {"room_id": ["the blue room", "number 5"]}),
    *of("parameter_hints", {"room_id": []}, {"room_id": ["", "two"]}, {"room_id": ["two", "Two "]}, found="S441"),
    ({"path": "/hotel/{hotel_id}", "semantic": {"parameter_hints": {"hotel_id": ["at the Ritz"]}}}, ["J629"]),
)
def test_agis_checks_the_semantic_block(fields: dict[str, Any], expected: list[str]) -> None:
    assert of_endpoint(**fields) == expected


@pytest.mark.requirement("AGIS-6-1")
@pytest.mark.parametrize("semantic", [GONE, {}])
def test_a_missing_block_is_one_finding(semantic: Any) -> None:
    entry = endpoint()
    if semantic is GONE:
        del entry["semantic"]
    else:
        entry["semantic"] = semantic
    assert [found.rule for found in findings(document(entry))] == ["S410"]


@pytest.mark.requirement("AGIS-6.1-3", "AGIS-6.2-2", "AGIS-6.2-8")
@rows(
    "field, value, rule, meant",
    ("actor", "guest", "S414", "user"),
    ("actor", "merchant", "S414", ""),
    ("capability", "creation", "S415", "transaction"),
    ("capability", "notify", "S415", "notification"),
    ("capability", "mechanics", "S415", ""),
    ("impact_tier", "high", "S416", "irreversible"),
    ("impact_tier", "severe", "S416", ""),
)
def test_another_word_is_refused_with_the_word_that_may_be_meant(field: str, value: str, rule: str, meant: str) -> None:
    found = advice(rule, document(endpoint(semantic={field: value})))
    assert found.severity == "error"
    assert repr(value) in found.message
    assert found.help == (f"Write {meant}, if that is meant." if meant else "Write the closest one.")
    assert found.fix is None


@rows(
    "field, value, rule, pointer",
    ("actor", "Agent", "S414", "actor"),
    ("capability", "TRANSACTION", "S415", "capability"),
    ("impact_tier", " Irreversible", "S416", "impact_tier"),
)
def test_only_wrong_case_has_a_safe_fix(field: str, value: str, rule: str, pointer: str) -> None:
    found = advice(rule, document(endpoint(semantic={field: value})))
    assert found.fix is not None
    assert found.fix.safe
    (change,) = found.fix.changes
    assert (change.at, change.value) == (f"/endpoints/0/semantic/{pointer}", value.strip().lower())


@pytest.mark.requirement("AGIS-6.2-2", "AGIS-6.2-8")
@rows(
    "field, values",
    ("capability", "discovery transaction modification retrieval analysis notification"),
    ("impact_tier", "informational reversible irreversible"),
)
def test_the_words_of_the_draft_are_right(field: str, values: str) -> None:
    for value in values.split():
        assert not {"S415", "S416"} & {*of_endpoint(semantic={field: value})}, value


def test_percentage_has_an_unsafe_fix_and_concepts_are_absolute_iris() -> None:
    found = advice("S417", document(endpoint(semantic={"confidence_guidance": 85})))
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].value) == (False, 0.85)
    assert of_endpoint(semantic={"concepts": ["https://ex.org/onto/hotel#Stay", "urn:x:y"]}) == []
    found = advice("S419", document(endpoint(semantic={"concepts": ["https://ex.org/onto/hotel#Stay", "Stay"]})))
    assert (found.severity, found.pointer) == ("error", "/endpoints/0/semantic/concepts/1")


@pytest.mark.requirement("AGIS-6.2-15")
@pytest.mark.parametrize(
    ("name", "meant"), [("bookRoom", "book_room"), ("BOOK_ROOM", "book_room"), ("book-room", "book_room"), ("…", None)]
)
def test_other_tool_names_are_refused_with_one_that_is_right(name: str, meant: str | None) -> None:
    found = advice("S418", document(endpoint(semantic={"mcp_tool_name": name})))
    assert found.severity == "error"
    assert (found.fix.changes[0].value if found.fix else None) == meant


@pytest.mark.requirement("AGIS-6.2-1", "AGIS-6.2-3", "AGIS-6.2-7", "AGIS-6.2-11")
def test_missing_recommended_fields_are_one_finding() -> None:
    semantic = dict.fromkeys(("capability", "confidence_guidance", "impact_tier", "is_idempotent"), GONE)
    found = advice("S424", document(endpoint(semantic=semantic)))
    assert found.severity == "warning"
    assert "capability, confidence_guidance, impact_tier, is_idempotent" in found.message
    assert all(f"{field}: " in (found.help or "") for field in semantic)


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


@rows(
    "capability, impact, expected",
    ("discovery", "irreversible", ["S433"]),
    ("retrieval", "reversible", ["S433"]),
    ("analysis", "irreversible", ["S433"]),
    ("transaction", "informational", ["S433"]),
    ("modification", "informational", ["S433"]),
    ("discovery", "informational", []),
    ("analysis", "reversible", []),
    ("notification", "informational", []),
    ("transaction", "reversible", []),
)
def test_impact_and_capability_agree(capability: str, impact: str, expected: list[str]) -> None:
    semantic = {"capability": capability, "impact_tier": impact, "is_idempotent": True}
    assert of_endpoint(semantic=semantic) == expected


@pytest.mark.parametrize("impact", [[], {}, [None], {"a": {"b": []}}, 5, True])
def test_impact_of_wrong_type_is_one_finding(impact: Any) -> None:
    assert "D121" in of_endpoint(semantic={"impact_tier": impact})


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
