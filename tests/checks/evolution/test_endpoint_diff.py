"""Two versions of one endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.evolution.contracts import BOOK, MIRRORED, book, told

from bespeak.checks.evolution.change import ChangeList, ContractChange
from bespeak.checks.evolution.contract_diff import diff_endpoints, diff_semantics, path_shape
from bespeak.contract.endpoint import DeclaredError, Deprecation
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.limits import read_cost

ENDS = Deprecation(deprecated_in="1.1.0", removed_in="2.0.0")

CASES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"required_scopes": ()}, {"required_scopes": ("a:b",)}, "C110", "breaking"),
    ({"required_scopes": ("a:b",)}, {"required_scopes": ()}, "C111", "safe"),
    ({}, {"errors": ()}, "C112", "safe"),
    ({"errors": ()}, {}, "C113", "risky"),
    ({}, {"errors": (DeclaredError("room_taken", "Taken."),)}, "C104", "safe"),
    ({}, {"description": "Take a room."}, "C104", "safe"),
    ({}, {"namespace": "stays"}, "C105", "risky"),
    ({}, {"handler": OpaqueHandler(type="composition")}, "C106", "safe"),
    ({}, {"deprecated": ENDS}, "C107", "safe"),
    ({"deprecated": ENDS}, {}, "C108", "safe"),
    ({"deprecated": ENDS}, {"deprecated": Deprecation(deprecated_in="1.1.0", removed_in="1.5.0")}, "C109", "risky"),
    ({"deprecated": ENDS}, {"deprecated": Deprecation(deprecated_in="1.1.0", removed_in="3.0.0")}, "C109", "safe"),
    ({"deprecated": Deprecation(deprecated_in="1")}, {"deprecated": ENDS}, "C109", "risky"),
    ({}, {"cost": read_cost({"tokens": 5})[0]}, "C114", "risky"),
    ({"cost": read_cost({"tokens": 5})[0]}, {"cost": read_cost({"tokens": 6})[0]}, "C114", "risky"),
    ({"cost": read_cost({"USD": "0.10"})[0]}, {"cost": read_cost({"USD": "0.02"})[0]}, "C115", "safe"),
    ({"cost": read_cost({"USD": "0.10"})[0]}, {}, "C115", "safe"),
    ({"since": "updated_at"}, {}, "C116", "breaking"),
    ({}, {"since": "updated_at"}, "C117", "safe"),
]


@pytest.mark.parametrize(("old", "new", "rule", "level"), CASES)
def test_each_part_has_its_rule(old: dict[str, Any], new: dict[str, Any], rule: str, level: str) -> None:
    assert told(diff_endpoints(book(**old), book(**new))) == [(rule, level)]
    [there], [back] = diff_endpoints(book(**old), book(**new)), diff_endpoints(book(**new), book(**old))
    assert (back.rule, back.old, back.new) == (MIRRORED[there.rule], there.new, there.old)


def test_renamed_error_is_removed_and_added_and_unknown_descriptions_are_not_compared() -> None:
    renamed = diff_endpoints(BOOK, book(errors=(DeclaredError("taken"),)))
    assert told(renamed) == [("C112", "breaking"), ("C113", "risky")]
    assert diff_endpoints(BOOK, book(errors=(DeclaredError("room_taken"),))) == []
    assert diff_endpoints(BOOK, book(handler=OpaqueHandler(type=""))) == []


def test_a_renamed_path_parameter_is_reported_once() -> None:
    def named(name: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
        return {"path": f"/room/{{{name}}}/bed", "input_schema": {**schema, "additionalProperties": False}}

    [change] = diff_endpoints(book(**named("id")), book(**named("room_id")))
    assert (change.rule, change.level, change.old, change.new) == ("C103", "breaking", "id", "room_id")
    assert change.endpoint == "BOOK /room/{room_id}/bed"


def test_input_is_judged_as_sent_and_output_as_received() -> None:
    wider = {"type": "object", "properties": {"id": {"type": ["string", "null"]}}, "required": ["id"]}
    [change] = diff_endpoints(BOOK, book(output_schema=wider))
    assert (change.level, change.direction) == ("breaking", "response")
    assert change.pointer == "/output_schema/properties/id/type"
    assert told(diff_endpoints(book(input_schema=BOOK.output_schema), book(input_schema=wider))) == [("C125", "safe")]


def test_shape_of_a_path_ignores_parameter_names_and_each_unit_of_a_cost_is_a_change() -> None:
    assert path_shape("/a/{b}/c/{d}") == "/a/{}/c/{}"
    old, new = read_cost({"tokens": 5, "USD": "1.00"})[0], read_cost({"tokens": 4, "USD": "1", "calls": 2})[0]
    changes = diff_endpoints(book(cost=old), book(cost=new))
    assert [(change.rule, change.pointer, change.old, change.new) for change in changes] == [
        ("C115", "/cost/tokens", "5", "4"),
        ("C114", "/cost/calls", None, "2"),
    ]


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[ContractChange]:
    found = ChangeList("BOOK /room")
    diff_semantics(book(**old).semantic, book(**new).semantic, found)
    return found.found


SEMANTIC_DIFF_CASES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    ({"impact": "informational"}, {"impact": "irreversible"}, "C150", "breaking"),
    ({"impact": "irreversible"}, {"impact": "reversible"}, "C151", "risky"),
    ({"is_idempotent": True}, {"is_idempotent": False}, "C152", "breaking"),
    ({"is_idempotent": False}, {"is_idempotent": True}, "C153", "safe"),
    ({"confidence": 0.9}, {"confidence": 0.8}, "C154", "risky"),
    ({"confidence": 0.8}, {"confidence": 0.9}, "C155", "safe"),
    ({}, {"confidence_guidance": 0.9}, "C156", "risky"),
    ({"confidence_guidance": 0.9}, {"confidence_guidance": 0.5}, "C157", "risky"),
    ({"capability": "retrieval"}, {"capability": "transaction"}, "C158", "risky"),
    ({"state_transition": {"room": "FREE -> TAKEN"}}, {}, "C159", "risky"),
    ({"mcp_tool_name": "book"}, {"mcp_tool_name": "book_room"}, "C160", "breaking"),
    ({}, {"mcp_tool_name": "book_room"}, "C160", "risky"),
    ({"concepts": ("x:a",)}, {"concepts": ("x:b",)}, "C162", "risky"),
    ({}, {"concepts": ("x:b",)}, "C162", "safe"),
    ({"actor": "user"}, {"actor": "agent"}, "C161", "risky"),
    ({"intent": "a"}, {"intent": "b"}, "C104", "safe"),
    ({"outcome": "a"}, {"outcome": "b"}, "C104", "safe"),
    ({"parameter_hints": {"room": "chamber"}}, {}, "C104", "safe"),
]


@pytest.mark.parametrize(("old", "new", "rule", "level"), SEMANTIC_DIFF_CASES)
def test_each_field_has_its_rule(old: dict[str, Any], new: dict[str, Any], rule: str, level: str) -> None:
    assert told(changes(old, new)) == [(rule, level)]
    [there], [back] = changes(old, new), changes(new, old)
    assert (back.rule, back.old, back.new) == (MIRRORED[there.rule], there.new, there.old)


def test_equal_blocks_and_an_inherited_capability_have_no_changes() -> None:
    assert changes({}, {}) == changes({"capability": ""}, {"capability": "transaction"}) == []
