"""Contracts to compare, and a short form of the changes found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bespeak.checks.evolution.change import ContractChange
from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.semantic import Semantic

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
