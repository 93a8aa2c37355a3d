"""The contract of a plan: what the server publishes for a proposal, never better than its steps (AGTP-API 10.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.recipe import Recipe
from bespeak.contract.semantic import IMPACTS
from bespeak.runtime.negotiation.conformance import LONGEST_TEXT
from bespeak.runtime.negotiation.plan import Plan
from bespeak.runtime.negotiation.proposal import Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """An endpoint that a plan carries out."""

    endpoint: Endpoint
    recipe: Recipe
    explanation: tuple[str, ...]
    """What each step does; internal endpoints are not named."""
    is_public: bool = True
    """False if a scope of it is only that of an internal step, so that no manifest may list it."""


def make_contract(proposal: Proposal, plan: Plan, *, states_plan: bool = False) -> Contract:
    """Derive the contract of a plan. The proposer may only have claimed worse.

    With `states_plan` the description says what is done, so that an agent that sends it back has agreed to it.
    """
    proposed = proposal.endpoint
    claimed = proposed.semantic
    if proposal.is_brief:
        impact, is_idempotent = plan.impact, plan.is_idempotent
    else:
        impact = max(claimed.impact, plan.impact, key=IMPACTS.index)
        is_idempotent = claimed.is_idempotent and plan.is_idempotent
    semantic = replace(
        claimed, impact=impact, is_idempotent=is_idempotent, confidence=min(claimed.confidence, plan.confidence)
    )
    name = f"synthesis-{proposal.contract[:16]}"
    explanation = explain(plan)
    endpoint = replace(
        proposed,
        semantic=semantic,
        required_scopes=tuple(sorted({*proposed.required_scopes, *plan.scopes})),
        handler=Composition(recipe=name),
        description=_state(explanation) if states_plan else proposed.description,
    )
    named = {scope for part in plan.endpoints if not part.internal for scope in part.required_scopes}
    return Contract(
        endpoint=endpoint,
        recipe=replace(plan.recipe, name=name, pattern={}),
        explanation=explanation,
        is_public=named.issuperset({*plan.scopes} - {*proposed.required_scopes}),
    )


def loosen(schema: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any] | None:
    """Return a schema that does not require the fields at some paths; None if it requires them by a reference."""
    loose: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    for path in paths:
        place: Any = loose
        for name in path[:-1]:
            place = place.get("items") if name == "[]" else place.get("properties", {}).get(name)
            if not isinstance(place, dict):
                return None
        if path[-1] not in place.get("required", ()):
            return None
        place["required"].remove(path[-1])
    return loose


def claims_better(proposal: Proposal, plan: Plan) -> bool:
    """Return True if the proposal claims less impact than the plan has."""
    return not proposal.is_brief and IMPACTS.index(proposal.endpoint.semantic.impact) < IMPACTS.index(plan.impact)


def explain(plan: Plan) -> tuple[str, ...]:
    """Return what each step does. With an internal one, only which endpoints are called: what is passed between steps
    has the names of its fields.
    """
    if not has_internal(plan):
        return plan.explanation
    return tuple(
        f"Step {number}: {'an internal step' if endpoint.internal else f'call {endpoint}'}."
        for number, endpoint in enumerate(plan.endpoints, 1)
    )


def has_internal(plan: Plan) -> bool:
    """Return True if a step calls an internal endpoint, so that the words of the plan are not for the caller."""
    return any(endpoint.internal for endpoint in plan.endpoints)


def _state(explanation: tuple[str, ...]) -> str:
    text = " ".join(" ".join(explanation).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
