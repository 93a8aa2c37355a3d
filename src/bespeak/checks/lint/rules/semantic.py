"""S4xx: the semantic block is complete, valid (AGTP-API 6.2, 7.1) and consistent, in the words of AGIS 3.3 and 6."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.core_ontology import is_iri
from bespeak.contract.endpoint import CAPABILITIES, IMPACTS, Endpoint
from bespeak.contract.schema.subschemas import COMPOSING
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, instead, unquoted
from bespeak.text.identifiers import snake
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Change

MISSING_TEXT: Final = Rule("S401", "missing-text", "MUST", "AGTP-API 6.2, 7.1")
CAPABILITY: Final = Rule("S402", "capability", "MUST", "AGTP-API 7.1")
CONFIDENCE: Final = Rule("S403", "confidence-range", "MUST", "AGTP-API 7.1")
IMPACT: Final = Rule("S404", "impact", "MUST", "AGTP-API 7.1")
IDEMPOTENT: Final = Rule("S405", "is-idempotent", "MUST", "AGTP-API 7.1")
GUIDANCE: Final = Rule("S406", "confidence-guidance-range", "MUST", "AGIS 6.2")

MISSING_BLOCK: Final = Rule("S410", "missing-semantic-block", "MUST", "AGIS 6")
MISSING_INTENT: Final = Rule("S411", "missing-intent", "MUST", "AGIS 6.1, 9.1 pass 5")
MISSING_ACTOR: Final = Rule("S412", "missing-actor", "MUST", "AGIS 6.1, 9.1 pass 5")
MISSING_OUTCOME: Final = Rule("S413", "missing-outcome", "MUST", "AGIS 6.1, 9.1 pass 5")
ACTOR: Final = Rule("S414", "actor-value", "MUST", "AGIS 6.1", fix="safe")
AGIS_CAPABILITY: Final = Rule("S415", "capability-value", "MUST", "AGIS 6.2", fix="safe")
IMPACT_TIER: Final = Rule("S416", "impact-tier-value", "MUST", "AGIS 6.2", fix="safe")
AGIS_GUIDANCE: Final = Rule("S417", "confidence-guidance-value", "MUST", "AGIS 6.2", fix="unsafe")
TOOL_NAME: Final = Rule("S418", "mcp-tool-name-form", "MUST", "AGIS 6.2", fix="unsafe")
CONCEPT: Final = Rule("S419", "concept-iri", "MUST", "IoA 5.2")
RECOMMENDED: Final = Rule("S424", "missing-recommended-semantics", "SHOULD", "AGIS 3.3, 6.2")
LEVEL_2: Final = Rule("S425", "missing-at-level-two", "MUST", "AGIS 3.3 table 4")
LEVEL_2_HINTS: Final = Rule("S426", "no-parameter-hints-at-level-two", "SHOULD", "AGIS 3.3 table 4, 6.2")

_ASKED: Final = (
    ("intent", MISSING_INTENT, "Describe in one sentence what the endpoint does for its caller."),
    ("actor", MISSING_ACTOR, "Write actor: agent, user or system, depending on who starts the action."),
    ("outcome", MISSING_OUTCOME, "Describe in one sentence what can be verified afterwards."),
)
_ACTORS: Final = ("agent", "user", "system")
_AGIS_CAPABILITIES: Final = ("discovery", "transaction", "modification", "retrieval", "analysis", "notification")
_WORDS: Final = (
    ("actor", "/semantic/actor", _ACTORS, ACTOR),
    ("capability", "/semantic/capability", _AGIS_CAPABILITIES, AGIS_CAPABILITY),
    ("impact_tier", "/semantic/impact", IMPACTS, IMPACT_TIER),
)

_RECOMMENDED: Final = ("capability", "confidence_guidance", "impact_tier", "is_idempotent")
_SLIP: Final = 0.8  # similarity from which a word counts as a misspelt value of the draft
_TOOL_NAME: Final = re.compile(r"[a-z0-9_]{1,128}")
_ASKS: Final = {
    "description": "what the endpoint does, for people.",
    "intent": "what the caller wants done, as a command.",
    "actor": "who should call it, for example agent.",
    "outcome": "what is true afterwards (in Python, a paragraph `Outcome: ...` of the docstring).",
}
_EXAMPLES: Final = {
    "capability": f"one of {', '.join(_AGIS_CAPABILITIES)}",
    "confidence_guidance": "how sure an agent should be before it acts alone, for example 0.85",
    "impact_tier": f"{', '.join(IMPACTS[:-1])} or {IMPACTS[-1]}",
    "is_idempotent": "true if calling twice does no more than calling once",
}


def check_endpoint(endpoint: Endpoint, custom: Container[str]) -> Iterator[Diagnostic]:
    """Check the prose and the semantic block of one endpoint as registration does."""
    semantic = endpoint.semantic
    for name, ask in _ASKS.items():
        text: object = getattr(endpoint if name == "description" else semantic, name)
        if not isinstance(text, str) or not text.strip():
            pointer = "/description" if name == "description" else f"/semantic/{name}"
            yield MISSING_TEXT.at(endpoint, pointer, f"{name} is missing", f"Describe in one sentence {ask}")
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
    yield from _check_concepts(endpoint)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def check(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    """Check the semantic block of one endpoint as pass 5 does."""
    semantic = declared.semantic
    if context.agis:
        if not semantic:
            # The reader reports a block of a wrong type.
            if not declared.written.get("semantic"):
                advice = "Add semantic with intent, actor and outcome."
                yield MISSING_BLOCK.at(declared.endpoint, "/semantic", "there is no semantic block", advice)
            return
        for field, rule, advice in _ASKED:
            value = semantic.get(field)
            if value is None or (isinstance(value, str) and not value.strip()):
                absence = "empty" if field in semantic else "missing"
                yield rule.at(declared.endpoint, f"/semantic/{field}", f"{field} is {absence}", advice)
        for word, pointer, words, rule in _WORDS:
            value = semantic.get(word)
            if isinstance(value, str) and value not in words and (value.strip() or word != "actor"):
                yield _wrong_word(declared, rule, pointer, value, words)
        guidance = semantic.get("confidence_guidance")
        if isinstance(guidance, int | float) and not 0 <= guidance <= 1 and not isinstance(guidance, bool):
            yield _wrong_guidance(declared, guidance)
        yield from _check_level(declared, semantic, context.level)
    name = semantic.get("mcp_tool_name")
    if isinstance(name, str) and _TOOL_NAME.fullmatch(name) is None:
        at, meant = "/semantic/mcp_tool_name", snake(name[:200])[:64]
        message = f"mcp_tool_name is lower-case letters, digits and '_', not {brief(name)}"
        yield TOOL_NAME.at(declared.endpoint, at, message, *instead(at, meant, "Write it like book_room."))
    if context.agis:  # readers and registration check those of other endpoints
        yield from _check_concepts(declared.endpoint)


def _check_concepts(endpoint: Endpoint) -> Iterator[Diagnostic]:
    concepts: tuple[object, ...] = endpoint.semantic.concepts[:100]
    for number, concept in enumerate(concepts):
        if not isinstance(concept, str) or not is_iri(concept):
            message = f"a concept is an absolute IRI, not {brief(concept)}"
            advice = "Write the whole IRI, without a prefix for its beginning."
            yield CONCEPT.at(endpoint, f"/semantic/concepts/{number}", message, advice)


def _wrong_word(declared: Declared, rule: Rule, pointer: str, value: str, words: tuple[str, ...]) -> Diagnostic:
    field = rule.name.removesuffix("-value").replace("-", "_")
    message = f"{field} is {', '.join(words[:-1])} or {words[-1]}, not {brief(value)}"
    plain = value.strip().lower()
    if plain in words:
        return rule.at(declared.endpoint, pointer, message, *instead(pointer, plain, safe=True))
    from bespeak.text.language.sentence import names  # noqa: PLC0415 - a server that is not asked does without English

    meant = names("values-of-semantics").get(plain, "")
    if meant not in words:
        meant = next((word for word in words if plain.startswith(word[:5])), "")
    if near := get_close_matches(plain[:40], words, n=1, cutoff=_SLIP):
        fix = Fix(f"Write {near[0]}", (Change("replace", pointer, near[0]),), safe=False)
        return rule.at(declared.endpoint, pointer, message, f"Write {near[0]}, if that is meant.", fix)
    advice = f"Write {meant}, if that is meant." if meant else "Write the closest one."
    return rule.at(declared.endpoint, pointer, message, advice)


def _wrong_guidance(declared: Declared, guidance: float) -> Diagnostic:
    message = f"confidence_guidance is a number from 0.0 to 1.0, not {brief(guidance)}"
    if 1 < guidance <= 100:
        share = guidance / 100
        fix = Fix(f"Write {share}", (Change("replace", "/semantic/confidence_guidance", share),), safe=False)
        advice = f"If it is a percentage, write {share}."
        return AGIS_GUIDANCE.at(declared.endpoint, "/semantic/confidence_guidance", message, advice, fix)
    advice = "Write how sure an agent should be before it acts alone: 0.85 and more where nothing can be undone."
    return AGIS_GUIDANCE.at(declared.endpoint, "/semantic/confidence_guidance", message, advice)


def _check_level(declared: Declared, semantic: Mapping[str, Any], level: int) -> Iterator[Diagnostic]:
    missing = [field for field in _RECOMMENDED if semantic.get(field) is None]
    if missing:
        rule = LEVEL_2 if level > 1 else RECOMMENDED
        demand = "level 2 requires" if level > 1 else "the semantic block lacks"
        message = f"{demand} {', '.join(missing)}"
        advice = "; ".join(f"{field}: {_EXAMPLES[field]}" for field in missing)
        yield rule.at(declared.endpoint, "/semantic", message, f"Add {advice}.")
    if level > 1 and not semantic.get("parameter_hints"):
        properties = declared.endpoint.input_schema.get("properties")
        if isinstance(properties, dict) and properties:
            name = next(iter(properties))
            message = "parameter_hints is missing"
            advice = f"Add parameter_hints with phrases for {unquoted(name)}."
            yield LEVEL_2_HINTS.at(declared.endpoint, "/semantic", message, advice)


LOW_GUIDANCE: Final = Rule("S430", "low-confidence-guidance", "SHOULD", "AGIS 6.2")
TRANSITION: Final = Rule("S431", "state-transition-form", "MUST", "AGIS 2, 6.2", fix="safe")
LEVEL_2_TRANSITION: Final = Rule("S432", "no-state-transition-at-level-two", "MUST", "AGIS 3.3 table 4, 6.2")
IMPACT_MISMATCH: Final = Rule("S433", "impact-against-capability", "SHOULD", "AGIS 6.2")
TRANSITION_MISMATCH: Final = Rule("S434", "transition-of-nothing", "SHOULD", "AGIS 2, 6.2")
NOT_REPEATABLE: Final = Rule("S435", "informational-not-idempotent", "style", "AGIS 6.2", fix="unsafe")

_ENOUGH: Final = 0.85
_ARTIFICIAL: Final = 0.5

_GRAVE: Final = frozenset({"EXECUTE", "CANCEL", "TRANSFER"})
"""Methods that the draft calls irreversible; an impact_tier is more precise."""

_READING: Final = frozenset({"discovery", "retrieval", "analysis"})
_CONTRADICTIONS: Final = {
    **{(name, "irreversible"): f"{name} changes nothing" for name in ("discovery", "retrieval", "analysis")},
    **{(name, "reversible"): f"{name} changes nothing" for name in ("discovery", "retrieval")},
    ("transaction", "informational"): "a transaction creates or commits something",
    ("modification", "informational"): "a modification changes something",
    ("creation", "informational"): "a creation creates something",
}


def check_consequences(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
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
    reads = impact == "informational" if impact is not None else capability in _READING
    if transitions := semantic.get("state_transition"):
        yield from _check_transitions(declared, transitions, impact)
    elif context.agis and context.level > 1 and not reads:
        message = "level 2 requires state_transition of an endpoint that changes state"
        advice = "Add it, with a line `field: FROM -> TO` for each field that changes."
        yield LEVEL_2_TRANSITION.at(declared.endpoint, "/semantic", message, advice)


def _check_guidance(declared: Declared, semantic: Mapping[str, Any], impact: object) -> Iterator[Diagnostic]:
    if impact != "irreversible" and (impact is not None or declared.endpoint.method not in _GRAVE):
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


UNKNOWN_PARAMETER: Final = Rule("S440", "hint-for-unknown-parameter", "SHOULD", "AGIS 6.2", fix="unsafe")
EMPTY_HINT: Final = Rule("S441", "empty-hint", "style", "AGIS 6.2")

_ELSEWHERE: Final = COMPOSING | {"patternProperties"}  # By these an input has parameters besides its properties.
_MOST: Final = 50


def check_hints(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    hints = as_mapping(declared.semantic.get("parameter_hints"))
    schema = declared.endpoint.input_schema
    known = as_mapping(schema.get("properties"))
    judged = bool(known) and not (_ELSEWHERE & schema.keys())
    for name, phrases in list(hints.items())[:_MOST]:
        pointer = child("/semantic/parameter_hints", name)
        if judged and name not in known and f"{{{name}}}" not in declared.endpoint.path:
            yield _unknown(declared, name, pointer, known, hints)
        if isinstance(phrases, list):
            said = [phrase.strip().lower() for phrase in phrases[:_MOST] if isinstance(phrase, str)]
            if not phrases or "" in said or len(set(said)) < len(said):
                what = "has no phrase" if not phrases else "has an empty phrase" if "" in said else "repeats a phrase"
                message = f"the hint for {unquoted(name)} {what}"
                advice = "List phrases that users say, each once: [for two, party of four]."
                yield EMPTY_HINT.at(declared.endpoint, pointer, message, advice)


def _unknown(declared: Declared, name: str, at: str, known: Mapping[str, Any], hints: Mapping[str, Any]) -> Diagnostic:
    message = f"parameter_hints names {brief(name)}, which is not a parameter of the input"
    near = get_close_matches(name[:40], [key for key in list(known)[:_MOST] if key not in hints], n=1)
    if not near:
        advice = f"The parameters are {', '.join(list(known)[:8])}."
        return UNKNOWN_PARAMETER.at(declared.endpoint, at, message, advice, on_key=True)
    fix = Fix(f"Rename it to {near[0]}", (Change("rename", at, key=near[0]),), safe=False)
    return UNKNOWN_PARAMETER.at(declared.endpoint, at, message, f"Did you mean {near[0]}?", fix, on_key=True)
