"""Changes between two semantic blocks, by which an agent judges before it calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
CONCEPTS_CHANGED: Final = contract_rule("C162", "concepts-changed", "changed", "An endpoint has other concepts.")

_TEXTS: Final = ("intent", "outcome", "parameter_hints")


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, float) else brief(value)


def diff_semantics(old: Semantic, new: Semantic, changes: ChangeList) -> None:
    """Add every change between two semantic blocks."""
    _Comparison(old, new, changes.facing("semantics")).report_all()


@dataclass(frozen=True, slots=True)
class _Comparison:
    old: Semantic
    new: Semantic
    changes: ChangeList

    def report_all(self) -> None:
        self._impact()
        self._idempotency()
        self._confidence()
        self._guidance()
        self._names()
        for field in _TEXTS:
            if self._differs(field):
                self._report(WORDING_CHANGED, "safe", field)

    def _impact(self) -> None:
        old, new = self.old.impact, self.new.impact
        if old == new or old not in IMPACTS or new not in IMPACTS:
            return
        if IMPACTS.index(new) > IMPACTS.index(old):
            advice = "Agents that call it without asking must ask now."
            self._report(IMPACT_RAISED, "breaking", "impact", advice, shown=str)
        else:
            advice = "Agents will ask people less often: be sure that the call can be undone."
            self._report(IMPACT_LOWERED, "risky", "impact", advice, shown=str)

    def _idempotency(self) -> None:
        old, new = self.old.is_idempotent, self.new.is_idempotent
        if old and not new:
            advice = (
                "Clients that repeat a call after a lost connection will do it twice; keep repeated calls harmless."
            )
            self._report(IDEMPOTENCY_LOST, "breaking", "is_idempotent", advice)
        elif new and not old:
            self._report(IDEMPOTENCY_GAINED, "safe", "is_idempotent")

    def _confidence(self) -> None:
        if self.new.confidence < self.old.confidence:
            advice = "Agents with a threshold between the two values will stop calling it."
            self._report(CONFIDENCE_LOWERED, "risky", "confidence", advice)
        elif self.new.confidence > self.old.confidence:
            self._report(CONFIDENCE_RAISED, "safe", "confidence")

    def _guidance(self) -> None:
        old, new = self.old.confidence_guidance or 0.0, self.new.confidence_guidance or 0.0
        if new > old:
            advice = "Agents that acted alone will ask people first."
            self._report(GUIDANCE_RAISED, "risky", "confidence_guidance", advice)
        elif new < old:
            advice = "Agents will act alone in cases where they asked before."
            self._report(GUIDANCE_LOWERED, "risky", "confidence_guidance", advice)

    def _names(self) -> None:
        # An empty capability is inherited from the catalog: there is nothing to compare it with.
        if self.old.capability and self.new.capability and self._differs("capability"):
            advice = "Agents that choose endpoints by capability will no longer find it."
            self._report(CAPABILITY_CHANGED, "risky", "capability", advice, shown=str)
        if self._differs("actor"):
            self._report(ACTOR_CHANGED, "risky", "actor", "The previous actor may no longer initiate it.")
        if self._differs("state_transition"):
            advice = "Agents that rely on the state after the call must adapt."
            self._report(TRANSITION_CHANGED, "risky", "state_transition", advice)
        if self._differs("mcp_tool_name"):
            advice = "MCP clients call the tool by this name; keep the old one."
            level: Level = "breaking" if self.old.mcp_tool_name else "risky"
            self._report(TOOL_NAME_CHANGED, level, "mcp_tool_name", advice)
        if self._differs("concepts"):
            removed = set(self.old.concepts) - set(self.new.concepts)
            advice = "Agents that look for a removed concept will no longer find the endpoint." if removed else ""
            self._report(CONCEPTS_CHANGED, "risky" if removed else "safe", "concepts", advice)

    def _differs(self, field: str) -> bool:
        return canonical(getattr(self.old, field)) != canonical(getattr(self.new, field))

    def _report(
        self, rule: ChangeRule, level: Level, field: str, advice: str = "", *, shown: Callable[[object], str] = _shown
    ) -> None:
        old, new = getattr(self.old, field), getattr(self.new, field)
        message = f"{field}: {shown(old)} -> {shown(new)}"
        self.changes.add(rule, level, f"/semantic/{field}", message, old=old, new=new, advice=advice)
