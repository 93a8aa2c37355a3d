"""Definitions of endpoints that agents propose in tests."""

from __future__ import annotations

from typing import Any

SEMANTIC = {
    "intent": "Find rooms that cost at most a given price.",
    "actor": "agent",
    "outcome": "The rooms are returned.",
    "capability": "retrieval",
    "confidence": 0.9,
    "impact": "informational",
    "is_idempotent": True,
}


def fields(*names: str, **more: Any) -> dict[str, Any]:
    """Return a closed schema of required texts, and of other fields with their schemas."""
    properties = {**{name: {"type": "string"} for name in names}, **more}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def definition(**changes: Any) -> dict[str, Any]:
    """Return a complete definition, with some members changed; None removes one."""
    given = {
        "method": "FIND",
        "path": "/rooms/cheap",
        "description": "Finds cheap rooms.",
        "semantic": SEMANTIC,
        "input_schema": fields(max_price={"type": "number"}),
        "output_schema": {"type": "object", "properties": {"rooms": {"type": "array"}}},
        "errors": [],
        "handler": {"type": "composition"},
        "required_scopes": [],
        **changes,
    }
    return {name: value for name, value in given.items() if value is not None}
