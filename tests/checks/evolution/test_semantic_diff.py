"""Two semantic blocks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.checks.evolution.contracts import MIRRORED, book, told

from bespeak.checks.evolution.change import ChangeList, ContractChange
from bespeak.checks.evolution.endpoint_diff import diff_semantics


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[ContractChange]:
    found = ChangeList("BOOK /room")
    diff_semantics(book(**old).semantic, book(**new).semantic, found)
    return found.found


CASES: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
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


@pytest.mark.parametrize(("old", "new", "rule", "level"), CASES)
def test_each_field_has_its_rule(old: dict[str, Any], new: dict[str, Any], rule: str, level: str) -> None:
    assert told(changes(old, new)) == [(rule, level)]
    [there], [back] = changes(old, new), changes(new, old)
    assert (back.rule, back.old, back.new) == (MIRRORED[there.rule], there.new, there.old)


def test_a_capability_that_is_inherited_is_not_compared() -> None:
    assert changes({"capability": ""}, {"capability": "transaction"}) == []


def test_equal_blocks_have_no_changes() -> None:
    assert changes({}, {}) == []
