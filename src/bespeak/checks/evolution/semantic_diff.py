"""Changes between two semantic blocks, by which an agent judges before it calls."""

from __future__ import annotations

from typing import Final

from bespeak.checks.evolution.change import WORDING_CHANGED, ChangeList, Level, canonical
from bespeak.checks.evolution.change_rules import ChangeRule, contract_rule, wire_rule
from bespeak.contract.semantic import IMPACTS, Semantic
from bespeak.text.diagnostics.brief import brief

IMPACT_RAISED: Final = contract_rule("C150", "impact-raised", "narrowed", "The effect of a call is harder to undo.")
IMPACT_LOWERED: Final = contract_rule("C151", "impact-lowered", "widened", "The effect of a call is easier to undo.")
IDEMPOTENCY_LOST: Final = contract_rule(
    "C152", "idempotency-lost", "narrowed", "A call can no longer be repeated safely."
)
IDEMPOTENCY_GAINED: Final = contract_rule("C153", "idempotency-gained", "widened", "A call can be repeated safely.")
CONFIDENCE_LOWERED: Final = contract_rule("C154", "confidence-lowered", "narrowed", "The declared confidence is lower.")
CONFIDENCE_RAISED: Final = contract_rule("C155", "confidence-raised", "widened", "The declared confidence is higher.")
GUIDANCE_RAISED: Final = contract_rule(
    "C156", "guidance-raised", "narrowed", "Agents need a higher confidence to act alone."
)
GUIDANCE_LOWERED: Final = contract_rule(
    "C157", "guidance-lowered", "widened", "Agents need a lower confidence to act alone."
)
CAPABILITY_CHANGED: Final = contract_rule(
    "C158", "capability-changed", "changed", "An endpoint belongs to another capability."
)
TRANSITION_CHANGED: Final = contract_rule(
    "C159", "state-transition-changed", "changed", "The state transition of a call is changed."
)
TOOL_NAME_CHANGED: Final = wire_rule(
    "C160", "tool-name-changed", "changed", "The MCP tool name of an endpoint is changed."
)
ACTOR_CHANGED: Final = contract_rule("C161", "actor-changed", "changed", "The actor of a call is changed.")

_AT: Final = "/semantic"
_BREAKING: Final[Level] = "breaking"
_RISKY: Final[Level] = "risky"
_TEXTS: Final = ("intent", "outcome", "parameter_hints")


def diff_semantics(old: Semantic, new: Semantic, changes: ChangeList) -> None:
    """Add every change between two semantic blocks."""
    _impact(old, new, changes)
    _idempotency(old, new, changes)
    _confidence(old, new, changes)
    _guidance(old.confidence_guidance, new.confidence_guidance, changes)
    _names(old, new, changes)
    for field in _TEXTS:
        before, after = getattr(old, field), getattr(new, field)
        if canonical(before) != canonical(after):
            message = f"{field}: {brief(before)} -> {brief(after)}"
            changes.add(WORDING_CHANGED, "safe", "semantics", f"{_AT}/{field}", message, old=before, new=after)


def _impact(old: Semantic, new: Semantic, changes: ChangeList) -> None:
    if old.impact == new.impact or old.impact not in IMPACTS or new.impact not in IMPACTS:
        return
    message = f"impact: {old.impact} -> {new.impact}"
    rule, level, advice = (
        IMPACT_LOWERED,
        _RISKY,
        "Agents will ask people less often: be sure that the call can be undone.",
    )
    if IMPACTS.index(new.impact) > IMPACTS.index(old.impact):
        rule, level, advice = IMPACT_RAISED, _BREAKING, "Agents that call it without asking must ask now."
    _add(changes, rule, level, "impact", message, values=(old.impact, new.impact), advice=advice)


def _idempotency(old: Semantic, new: Semantic, changes: ChangeList) -> None:
    if old.is_idempotent == new.is_idempotent:
        return
    message = f"is_idempotent: {_word(old.is_idempotent)} -> {_word(new.is_idempotent)}"
    values = (old.is_idempotent, new.is_idempotent)
    if old.is_idempotent:
        advice = "Clients that repeat a call after a lost connection will do it twice; keep repeated calls harmless."
        _add(changes, IDEMPOTENCY_LOST, "breaking", "is_idempotent", message, values=values, advice=advice)
    else:
        _add(changes, IDEMPOTENCY_GAINED, "safe", "is_idempotent", message, values=values)


def _confidence(old: Semantic, new: Semantic, changes: ChangeList) -> None:
    values = (old.confidence, new.confidence)
    message = f"confidence: {old.confidence} -> {new.confidence}"
    if new.confidence < old.confidence:
        advice = "Agents with a threshold between the two values will stop calling it."
        _add(changes, CONFIDENCE_LOWERED, "risky", "confidence", message, values=values, advice=advice)
    elif new.confidence > old.confidence:
        _add(changes, CONFIDENCE_RAISED, "safe", "confidence", message, values=values)


def _guidance(old: float | None, new: float | None, changes: ChangeList) -> None:
    before, after = old or 0.0, new or 0.0
    message = f"confidence_guidance: {_shown(old)} -> {_shown(new)}"
    if after > before:
        advice = "Agents that acted alone will ask people first."
        _add(changes, GUIDANCE_RAISED, "risky", "confidence_guidance", message, values=(old, new), advice=advice)
    elif after < before:
        advice = "Agents will act alone in cases where they asked before."
        _add(changes, GUIDANCE_LOWERED, "risky", "confidence_guidance", message, values=(old, new), advice=advice)


def _names(old: Semantic, new: Semantic, changes: ChangeList) -> None:
    # An empty capability is inherited from the catalog: there is nothing to compare it with.
    if old.capability and new.capability and old.capability != new.capability:
        message = f"capability: {old.capability} -> {new.capability}"
        advice = "Agents that choose endpoints by capability will no longer find it."
        _add(
            changes,
            CAPABILITY_CHANGED,
            "risky",
            "capability",
            message,
            values=(old.capability, new.capability),
            advice=advice,
        )
    if old.actor != new.actor:
        message = f"actor: {brief(old.actor)} -> {brief(new.actor)}"
        advice = "The previous actor may no longer initiate it."
        _add(changes, ACTOR_CHANGED, "risky", "actor", message, values=(old.actor, new.actor), advice=advice)
    if canonical(old.state_transition) != canonical(new.state_transition):
        values = (dict(old.state_transition), dict(new.state_transition))
        message = f"state_transition: {brief(values[0])} -> {brief(values[1])}"
        advice = "Agents that rely on the state after the call must adapt."
        _add(changes, TRANSITION_CHANGED, "risky", "state_transition", message, values=values, advice=advice)
    if old.mcp_tool_name != new.mcp_tool_name:
        message = f"mcp_tool_name: {_shown(old.mcp_tool_name)} -> {_shown(new.mcp_tool_name)}"
        advice = "MCP clients call the tool by this name; keep the old one."
        level: Level = "breaking" if old.mcp_tool_name else "risky"
        _add(
            changes,
            TOOL_NAME_CHANGED,
            level,
            "mcp_tool_name",
            message,
            values=(old.mcp_tool_name, new.mcp_tool_name),
            advice=advice,
        )


def _add(
    changes: ChangeList,
    rule: ChangeRule,
    level: Level,
    field: str,
    message: str,
    *,
    values: tuple[object, object],
    advice: str = "",
) -> None:
    old, new = values
    changes.add(rule, level, "semantics", f"{_AT}/{field}", message, advice=advice, old=old, new=new)


def _word(value: bool) -> str:
    return "true" if value else "false"


def _shown(value: object) -> str:
    return "none" if value is None else str(value) if isinstance(value, float) else brief(value)
