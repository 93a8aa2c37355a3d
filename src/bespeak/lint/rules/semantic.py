"""S4xx: the semantic block is complete and in range (AGTP-API 6.2, 7.1)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.semantic import CAPABILITIES, IMPACTS
from bespeak.diagnostics.brief import brief
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.lint.rule import Rule

MISSING_TEXT: Final = Rule(
    "S401",
    "missing-text",
    "MUST",
    "AGTP-API 6.2, 7.1",
    "An endpoint has a description, and its semantic block an intent, an actor and an outcome.",
)
CAPABILITY: Final = Rule(
    "S402", "capability", "MUST", "AGTP-API 7.1", "capability is one of the nine categories of the catalog."
)
CONFIDENCE: Final = Rule(
    "S403", "confidence-range", "MUST", "AGTP-API 7.1", "confidence lies between 0.0 and 1.0, both included."
)
IMPACT: Final = Rule("S404", "impact", "MUST", "AGTP-API 7.1", "impact is informational, reversible or irreversible.")
IDEMPOTENT: Final = Rule("S405", "is-idempotent", "MUST", "AGTP-API 7.1", "is_idempotent is true or false.")
GUIDANCE: Final = Rule(
    "S406", "confidence-guidance-range", "MUST", "AGIS 6.2", "confidence_guidance lies between 0.0 and 1.0."
)

RULES: Final = (MISSING_TEXT, CAPABILITY, CONFIDENCE, IMPACT, IDEMPOTENT, GUIDANCE)


def check(endpoint: Endpoint, custom: Container[str]) -> Iterator[Diagnostic]:
    """Findings about the prose and the semantic block of one endpoint."""
    semantic = endpoint.semantic
    texts: dict[str, object] = {
        "/description": endpoint.description,
        "/semantic/intent": semantic.intent,
        "/semantic/actor": semantic.actor,
        "/semantic/outcome": semantic.outcome,
    }
    for pointer, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            name = pointer.rpartition("/")[2]
            yield MISSING_TEXT.at(endpoint, pointer, f"{name} is missing", f"Say it in one sentence: {_ASKS[name]}")
    # An empty capability is the category of the method; a custom method has none to inherit.
    if semantic.capability not in CAPABILITIES and (semantic.capability or endpoint.method in custom):
        given = f"not {brief(semantic.capability)}" if semantic.capability else "and a custom method inherits none"
        message = f"capability is one of {', '.join(CAPABILITIES)}, {given}"
        yield CAPABILITY.at(endpoint, "/semantic/capability", message)
    if not _is_share(semantic.confidence):
        message = f"confidence is a number from 0.0 to 1.0, not {brief(semantic.confidence)}"
        yield CONFIDENCE.at(endpoint, "/semantic/confidence", message)
    if semantic.impact not in IMPACTS:
        message = f"impact is {', '.join(IMPACTS[:-1])} or {IMPACTS[-1]}, not {brief(semantic.impact)}"
        yield IMPACT.at(endpoint, "/semantic/impact", message)
    idempotent: object = semantic.is_idempotent
    if not isinstance(idempotent, bool):
        message = f"is_idempotent is true or false, not {brief(idempotent)}"
        yield IDEMPOTENT.at(endpoint, "/semantic/is_idempotent", message)
    if semantic.confidence_guidance is not None and not _is_share(semantic.confidence_guidance):
        message = f"confidence_guidance is a number from 0.0 to 1.0, not {brief(semantic.confidence_guidance)}"
        yield GUIDANCE.at(endpoint, "/semantic/confidence_guidance", message)


_ASKS: Final = {
    "description": "what the endpoint does, for people.",
    "intent": "what the caller wants done, as a command.",
    "actor": "who should call it, for example agent.",
    "outcome": "what is true afterwards.",
}


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
