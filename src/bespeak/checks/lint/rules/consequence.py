"""S43x: the members of a semantic block about consequences are consistent (AGIS 6.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.checks.lint.context import Context
from bespeak.text.diagnostics.brief import brief, unquoted
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.change import Change
from bespeak.text.source.pointer import child

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared

_BOOK: Final = "method: BOOK\npath: /room\nsemantic:\n"
_FIND: Final = "method: FIND\npath: /room\nsemantic:\n"

LOW_GUIDANCE: Final = Rule(
    ("S430", "low-confidence-guidance", "SHOULD", "AGIS 6.2"),
    "An irreversible endpoint has a confidence_guidance of 0.85 or more.",
    why="With a lower confidence agents act on a guess, and the result cannot be undone.",
    bad=f"{_BOOK}  impact_tier: irreversible\n  confidence_guidance: 0.7\n",
    good=f"{_BOOK}  impact_tier: irreversible\n  confidence_guidance: 0.85\n",
)
TRANSITION: Final = Rule(
    ("S431", "state-transition-form", "MUST", "AGIS 2, 6.2"),
    "state_transition gives each field that changes as FROM -> TO.",
    why="Runtimes compare both states with the actual ones; they cannot interpret a sentence.",
    bad=f"{_BOOK}  state_transition:\n    reservation.status: NONE => CONFIRMED\n",
    good=f"{_BOOK}  state_transition:\n    reservation.status: NONE -> CONFIRMED\n",
    fix="safe",
)
LEVEL_2_TRANSITION: Final = Rule(
    ("S432", "no-state-transition-at-level-two", "MUST", "AGIS 3.3 table 4, 6.2"),
    "At conformance level 2 an endpoint that changes state has a state_transition.",
    why="A level 2 runtime uses it to verify the outcome without interpreting text.",
    bad=f"{_BOOK}  impact_tier: reversible\n",
    good=f"{_BOOK}  impact_tier: reversible\n  state_transition:\n    reservation.status: NONE -> CONFIRMED\n",
)
IMPACT_MISMATCH: Final = Rule(
    ("S433", "impact-against-capability", "SHOULD", "AGIS 6.2"),
    "impact_tier and capability do not contradict each other.",
    why="One of the two is wrong, so an agent asks for confirmation too often or acts too early.",
    bad=f"{_FIND}  capability: discovery\n  impact_tier: irreversible\n",
    good=f"{_FIND}  capability: discovery\n  impact_tier: informational\n",
)
TRANSITION_MISMATCH: Final = Rule(
    ("S434", "transition-of-nothing", "SHOULD", "AGIS 2, 6.2"),
    "An informational endpoint, which changes nothing, has no state_transition.",
    why="Either the endpoint changes something and agents call it too freely, or the transition is obsolete.",
    bad=f"{_FIND}  impact_tier: informational\n  state_transition:\n    room.status: FREE -> HELD\n",
    good=f"{_FIND}  impact_tier: reversible\n  state_transition:\n    room.status: FREE -> HELD\n",
)
NOT_REPEATABLE: Final = Rule(
    ("S435", "informational-not-idempotent", "style", "AGIS 6.2"),
    "An informational endpoint has is_idempotent: true.",
    why="A call without effects can always be repeated; with false, agents do not retry.",
    bad=f"{_FIND}  impact_tier: informational\n  is_idempotent: false\n",
    good=f"{_FIND}  impact_tier: informational\n  is_idempotent: true\n",
    fix="unsafe",
)

_ENOUGH: Final = 0.85
_ARTIFICIAL: Final = 0.5

_GRAVE: Final = frozenset({"EXECUTE", "CANCEL", "TRANSFER"})
"""Methods that the draft calls irreversible; an impact_tier is more precise."""

_READING: Final = frozenset({"discovery", "retrieval", "analysis"})
_CONTRADICTIONS: Final = {
    ("discovery", "irreversible"): "discovery changes nothing",
    ("retrieval", "irreversible"): "retrieval changes nothing",
    ("analysis", "irreversible"): "analysis changes nothing",
    ("discovery", "reversible"): "discovery changes nothing",
    ("retrieval", "reversible"): "retrieval changes nothing",
    ("transaction", "informational"): "a transaction creates or commits something",
    ("modification", "informational"): "a modification changes something",
    ("creation", "informational"): "a creation creates something",
}


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Check impact, confidence and state transition of one endpoint."""
    semantic = declared.semantic
    if not semantic:
        return
    impact = semantic.get("impact_tier")
    if impact is None and not context.agis:
        impact = semantic.get("impact")
    capability = semantic.get("capability")
    if context.agis or "confidence_guidance" in semantic:
        yield from _check_guidance(declared, semantic, impact)
    named = isinstance(capability, str) and isinstance(impact, str)
    reason = _CONTRADICTIONS.get((str(capability), str(impact))) if named else None
    if reason is not None:
        message = f"capability {capability} and impact {impact} contradict each other: {reason}"
        other = "reversible or irreversible" if impact == "informational" else "informational"
        advice = f"Write impact {other}, or the capability that fits what happens."
        yield IMPACT_MISMATCH.at(declared.endpoint, "/semantic/impact", message, advice)
    if impact == "informational" and semantic.get("is_idempotent") is False:
        fix = Fix("Write true", (Change("replace", "/semantic/is_idempotent", True),), safe=False)
        message = "the endpoint changes nothing, but is_idempotent is false"
        yield NOT_REPEATABLE.at(declared.endpoint, "/semantic/is_idempotent", message, "Write true.", fix)
    transitions = semantic.get("state_transition")
    if transitions:
        yield from _check_transitions(declared, transitions, impact)
    elif context.agis and context.level > 1 and _changes_state(impact, capability):
        message = "level 2 requires state_transition of an endpoint that changes state"
        advice = "Add it, with a line `field: FROM -> TO` for each field that changes."
        yield LEVEL_2_TRANSITION.at(declared.endpoint, "/semantic", message, advice)


def _changes_state(impact: object, capability: object) -> bool:
    return impact != "informational" if impact is not None else capability not in _READING


def _check_guidance(declared: Declared, semantic: Mapping[str, Any], impact: object) -> Iterator[Diagnostic]:
    grave = impact == "irreversible" or (impact is None and declared.endpoint.method in _GRAVE)
    if not grave:
        return
    guidance = semantic.get("confidence_guidance")
    what = "an irreversible endpoint" if impact else declared.endpoint.method
    advice = f"Write confidence_guidance: {_ENOUGH}, or more."
    # S424 reports a missing one.
    if isinstance(guidance, int | float) and _ARTIFICIAL <= guidance < _ENOUGH and not isinstance(guidance, bool):
        message = f"{what} has a confidence_guidance of {guidance}, below {_ENOUGH}"
        yield LOW_GUIDANCE.at(declared.endpoint, "/semantic/confidence_guidance", message, advice)


def _check_transitions(declared: Declared, transitions: object, impact: object) -> Iterator[Diagnostic]:
    if not isinstance(transitions, dict):
        return
    if impact == "informational":
        message = "an informational endpoint has a state_transition"
        advice = "Remove it, or write impact_tier: reversible or irreversible."
        yield TRANSITION_MISMATCH.at(declared.endpoint, "/semantic/state_transition", message, advice)
    advice = "Write it like NONE -> CONFIRMED."
    if transitions.keys() == {"from", "to"}:
        advice = "Name the field that changes, with both states: reservation.status: NONE -> CONFIRMED."
    for field, change in transitions.items():
        if not isinstance(change, str):
            continue
        sides = change.split("->", 2)
        if len(sides) == 2 and sides[0].strip() and sides[1].strip():
            continue
        pointer = child("/semantic/state_transition", field)
        plain = change.replace("→", "->").replace("=>", "->") if len(change) < 500 else ""
        fix = None
        if plain != change and plain.count("->") == 1 and all(side.strip() for side in plain.split("->")):
            fix = Fix(f"Write {plain}", (Change("replace", pointer, plain),))
        message = f"the transition of {unquoted(field)} is {brief(change)}, not FROM -> TO"
        yield TRANSITION.at(declared.endpoint, pointer, message, advice, fix)
