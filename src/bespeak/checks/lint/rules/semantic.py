"""S4xx: the semantic block is complete and in range (AGTP-API 6.2, 7.1)."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.semantic import CAPABILITIES, IMPACTS
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule

MISSING_TEXT: Final = Rule(
    "S401",
    "missing-text",
    "MUST",
    "AGTP-API 6.2, 7.1",
    "An endpoint has a description, and its semantic block an intent, an actor and an outcome.",
    why="Agents choose an endpoint by these sentences; one that says nothing is passed over, or called by mistake.",
    bad='[endpoint.semantic]\nintent = "Books a room for the guest"\noutcome = ""\n',
    good=(
        '[endpoint.semantic]\nintent = "Books a room for the guest"\n'
        'outcome = "A reservation with status CONFIRMED exists"\n'
    ),
    notation="toml",
)
CAPABILITY: Final = Rule(
    "S402",
    "capability",
    "MUST",
    "AGTP-API 7.1",
    "capability is one of the nine categories of the catalog.",
    why="Agents look for endpoints by category; one under a category of its own is found by nobody.",
    bad='[endpoint.semantic]\ncapability = "booking"\n',
    good='[endpoint.semantic]\ncapability = "transaction"\n',
    notation="toml",
)
CONFIDENCE: Final = Rule(
    "S403",
    "confidence-range",
    "MUST",
    "AGTP-API 7.1",
    "confidence lies between 0.0 and 1.0, both included.",
    why="An agent compares the number with those of other endpoints, and a percentage beats them all.",
    bad="[endpoint.semantic]\nconfidence = 85\n",
    good="[endpoint.semantic]\nconfidence = 0.85\n",
    notation="toml",
)
IMPACT: Final = Rule(
    "S404",
    "impact",
    "MUST",
    "AGTP-API 7.1",
    "impact is informational, reversible or irreversible.",
    why="An agent asks before it does what cannot be undone. A word it does not know tells it nothing.",
    bad='[endpoint.semantic]\nimpact = "permanent"\n',
    good='[endpoint.semantic]\nimpact = "irreversible"\n',
    notation="toml",
)
IDEMPOTENT: Final = Rule(
    "S405",
    "is-idempotent",
    "MUST",
    "AGTP-API 7.1",
    "is_idempotent is true or false.",
    why="An agent that got no answer tries again only if it may. It must not have to guess.",
    bad='[endpoint.semantic]\nis_idempotent = "no"\n',
    good="[endpoint.semantic]\nis_idempotent = false\n",
    notation="toml",
)
GUIDANCE: Final = Rule(
    "S406",
    "confidence-guidance-range",
    "MUST",
    "AGIS 6.2",
    "confidence_guidance lies between 0.0 and 1.0.",
    why="It is how sure an agent should be before it acts alone; nobody is surer than certain.",
    bad="[endpoint.semantic]\nconfidence_guidance = 1.5\n",
    good="[endpoint.semantic]\nconfidence_guidance = 0.9\n",
    notation="toml",
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
