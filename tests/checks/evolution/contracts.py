"""Contracts to compare, and a short form of the changes found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bespeak.checks.evolution.change import ContractChange
from bespeak.checks.evolution.change_report import RULES
from bespeak.contract.endpoint import DeclaredError, Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler

_PAIRS = """
C101 C107 C110 C112 C114 C116 C120 C122 C124 C127 C129 C131 C134 C136 C150 C152 C154 C156 C170 C172 C178 C185 C187 C190
C192
"""
"""First rules of the pairs that mirror each other; the other has the next number."""
_NEXT = {first: f"C{int(first[1:]) + 1}" for first in _PAIRS.split()}
MIRRORED = {**{rule: rule for rule in RULES}, **_NEXT, **{second: first for first, second in _NEXT.items()}}
"""Rule that reports the same difference when old and new are swapped, by rule."""

SEMANTIC = Semantic(
    intent="Reserve a room.",
    actor="agent",
    outcome="The room is reserved.",
    capability="transaction",
    confidence=0.9,
    impact="reversible",
    is_idempotent=True,
)

BOOK = Endpoint(
    method="BOOK",
    path="/room",
    description="Reserve a room.",
    semantic=SEMANTIC,
    input_schema={"type": "object", "properties": {"room": {"type": "string"}}, "additionalProperties": False},
    output_schema={"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
    errors=(DeclaredError("room_taken", "The room is taken."),),
    handler=OpaqueHandler(type="registered_function"),
    required_scopes=("booking:room",),
)


def book(**changed: Any) -> Endpoint:
    """Return the endpoint BOOK /room with changed fields; names of the semantic block are set there."""
    inner = {name: value for name, value in changed.items() if hasattr(SEMANTIC, name)}
    outer = {name: value for name, value in changed.items() if name not in inner}
    return replace(BOOK, semantic=replace(SEMANTIC, **inner), **outer)


def told(changes: Iterable[ContractChange]) -> list[tuple[str, str]]:
    """Return the rule and the level of each change."""
    return [(change.rule, change.level) for change in changes]
