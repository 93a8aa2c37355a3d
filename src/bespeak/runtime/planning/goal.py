"""The goal of a plan: wanted fields, or a text; and the limits that a plan must keep (core 4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from bespeak.contract.cost import read_cost
from bespeak.contract.semantic import IMPACTS

LONGEST_TEXT: Final = 2000
MOST_FIELDS: Final = 100
MOST_STEPS: Final = 8
_GOAL: Final = frozenset({"text", "method", "path", "output"})
_CONSTRAINTS: Final = frozenset({"given", "max_steps", "impact", "max_cost"})
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a plan is to reach."""

    text: str = ""
    method: str = "FETCH"
    path: str = ""
    """Resource of the wanted fields; empty for a goal in words."""
    output: Mapping[str, Any] = field(default_factory=dict)
    """JSON Schema of the wanted fields."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Values that the caller knows already."""
    max_steps: int = MOST_STEPS
    impact: str = IMPACTS[-1]
    """Worst impact that a step may have."""
    max_cost: Mapping[str, Decimal] = field(default_factory=dict)
    methods: frozenset[str] = frozenset()
    """Methods that steps may have; empty for all."""
    assumptions: tuple[str, ...] = ()

    @property
    def input(self) -> dict[str, Any]:
        """JSON Schema of what is given."""
        return {name: {"type": _TYPES.get(type(value), "string")} for name, value in self.given.items()}


def read_goal(given: Mapping[str, Any]) -> Goal | tuple[str, str]:
    """Read the parameters of PLAN; return the name of a wrong one and its fault instead."""
    goal, limits = given["goal"], given.get("constraints", {})
    named = given.get("available_methods", ())
    methods = [one.strip() for one in named.split(",")] if isinstance(named, str) else named
    if not all(isinstance(one, str) for one in methods):
        return "available_methods", "must be names of methods."
    fields = {"text": goal} if isinstance(goal, str) else dict(goal)
    fault = _find_fault(fields)
    if fault is not None:
        return "goal", fault
    assumptions: tuple[str, ...] = ()
    if isinstance(limits, str):
        limits, assumptions = {}, (f"Constraints in words are not checked: {limits[:200]}",)
    fault = _find_fault_in_limits(limits)
    if fault is not None:
        return "constraints", fault
    cost, _ = read_cost(limits.get("max_cost", {}))
    return Goal(
        text=fields.get("text", ""),
        method=fields.get("method", "FETCH").upper(),
        path=fields.get("path", ""),
        output=_schema(fields.get("output", {})),
        given=limits.get("given", {}),
        max_steps=min(limits.get("max_steps", MOST_STEPS), MOST_STEPS),
        impact=limits.get("impact", IMPACTS[-1]),
        max_cost={} if cost is None else cost.amounts,
        methods=frozenset(one.upper() for one in methods if one),
        assumptions=assumptions,
    )


def _find_fault(fields: Mapping[str, Any]) -> str | None:
    if not fields.keys() <= _GOAL or not all(
        isinstance(fields.get(name, ""), str) for name in ("text", "method", "path")
    ):
        return f"must be a text, or an object with {', '.join(sorted(_GOAL))}."
    if len(fields.get("text", "")) > LONGEST_TEXT:
        return f"must have at most {LONGEST_TEXT} characters; got {len(fields['text'])}."
    if "output" not in fields:
        return None if fields.get("text", "").strip() else "must say what is wanted: a text, or `path` and `output`."
    if not fields.get("path", "").startswith("/"):
        return "needs the `path` of the resource whose fields are wanted, like /guests/bookings."
    output = fields["output"]
    if not isinstance(output, (list, dict)) or not output or len(output) > MOST_FIELDS:
        return f"must have `output`, a list of 1 to {MOST_FIELDS} fields, or their types or JSON Schema."
    if isinstance(output, list) and not all(isinstance(one, str) for one in output):
        return "must have the names of fields in `output`."
    return None


def _find_fault_in_limits(limits: Mapping[str, Any]) -> str | None:
    if not limits.keys() <= _CONSTRAINTS:
        unknown = min(limits.keys() - _CONSTRAINTS)
        return f"has {unknown[:80]!r}, which cannot be kept; it takes {', '.join(sorted(_CONSTRAINTS))}."
    steps = limits.get("max_steps", 1)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        return "has a `max_steps` that is not a number of 1 or more."
    if limits.get("impact", IMPACTS[0]) not in IMPACTS:
        return f"has an `impact` that is not one of {', '.join(IMPACTS)}."
    for name in ("given", "max_cost"):
        if not isinstance(limits.get(name, {}), dict) or len(limits.get(name, {})) > MOST_FIELDS:
            return f"has a `{name}` that is not an object of at most {MOST_FIELDS} members."
    _, faults = read_cost(limits.get("max_cost", {}))
    return f"has a `max_cost` that is not valid: {faults[0].message}." if faults else None


def _schema(output: Any) -> dict[str, Any]:
    if isinstance(output, dict) and isinstance(output.get("properties"), dict):
        return output
    named = {name: {} for name in output} if isinstance(output, list) else output
    properties = {name: {"type": one} if isinstance(one, str) else one for name, one in named.items()}
    return {"type": "object", "properties": properties, "required": list(properties)}
