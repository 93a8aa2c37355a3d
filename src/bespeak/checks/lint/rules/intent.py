"""S42x and S45x: intent and outcome are one sentence each (AGIS 6.1), and intent matches method (AGIS 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.endpoint import Endpoint
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.language.consistency import IntentJudgement, fitting_sentence, fitting_verbs, judge, third_person
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.phrases import mechanism, weakness
from bespeak.text.language.sentence import is_several, lines
from bespeak.text.language.verb_form import action_intent

INTENT_SENTENCE: Final = Rule("S420", "intent-one-sentence", "MUST", "AGIS 6.1")
OUTCOME_SENTENCE: Final = Rule("S421", "outcome-one-sentence", "MUST", "AGIS 6.1")
MECHANISM: Final = Rule("S422", "intent-describes-mechanism", "MUST", "AGIS 6.1")
VAGUE_OUTCOME: Final = Rule("S423", "outcome-not-verifiable", "MUST", "AGIS 6.1")
PLACEHOLDER: Final = Rule("S427", "placeholder-text", "SHOULD", "AGIS 6.1")
SAME: Final = Rule("S428", "outcome-repeats-intent", "style", "AGIS 6.1")

_WORD: Final = re.compile(r"[a-z]+")
_PLACEHOLDERS: Final = frozenset(("", *lines("placeholders")))


def check(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    endpoint = declared.endpoint
    intent: object = endpoint.semantic.intent
    outcome: object = endpoint.semantic.outcome
    plain_intent = _plain(intent)
    plain_outcome = _plain(outcome)
    if isinstance(intent, str) and intent.strip():
        if _is_placeholder(plain_intent):
            advice = "Describe in one sentence what the endpoint does for its caller."
            yield PLACEHOLDER.at(endpoint, "/semantic/intent", f"the intent is {brief(intent)}", advice)
        else:
            yield from _check_intent(declared, intent)
    if isinstance(outcome, str) and outcome.strip():
        if is_several(outcome):
            message = f"the outcome is more than one sentence: {brief(outcome)}"
            advice = "Keep the sentence that can be verified, and move the rest to description."
            yield OUTCOME_SENTENCE.at(endpoint, "/semantic/outcome", message, advice)
        elif reason := _weakness(endpoint, outcome, plain_outcome):
            message = f"the outcome {brief(outcome)} cannot be verified: {reason}"
            advice = "Name what exists, has changed or is returned: `A reservation with status CONFIRMED exists`."
            yield VAGUE_OUTCOME.at(endpoint, "/semantic/outcome", message, advice)
        elif plain_outcome == plain_intent:
            message = "the outcome repeats the intent"
            advice = "Describe what exists, has changed or is returned after a successful call."
            yield SAME.at(endpoint, "/semantic/outcome", message, advice)


def _check_intent(declared: Declared, intent: str) -> Iterator[Diagnostic]:
    if is_several(intent):
        message = f"the intent is more than one sentence: {brief(intent)}"
        advice = "Keep the goal, and move the rest to description."
        yield INTENT_SENTENCE.at(declared.endpoint, "/semantic/intent", message, advice)
    elif intent.isascii() and len(intent.split(None, 1)) == 1:
        message = f"the intent is {brief(intent)}, a single word instead of a sentence"
        advice = "Describe what the endpoint does for its caller: `Books a table for the guest`."
        yield INTENT_SENTENCE.at(declared.endpoint, "/semantic/intent", message, advice)
    if (inside := mechanism(intent)) is not None:
        message = f"the intent describes internals of the system ({brief(inside)}), not the caller's goal"
        advice = "Describe what the caller gets: `Books a table for the guest`, not `Inserts a record into a table`."
        yield MECHANISM.at(declared.endpoint, "/semantic/intent", message, advice)


def _weakness(endpoint: Endpoint, outcome: str, plain: str) -> str | None:
    if _is_placeholder(plain):
        return "it is a placeholder"
    return weakness(outcome, endpoint.method, frozenset(_WORD.findall(endpoint.path.lower())))


def _plain(text: object) -> str:
    if not isinstance(text, str) or len(text) > 1_000:
        return text if isinstance(text, str) else ""
    return " ".join(text.lower().split()).strip(" .!…\"'`")


def _is_placeholder(plain: str) -> bool:
    return plain in _PLACEHOLDERS or plain.startswith("lorem ipsum") or (plain[:1] == "<" and plain[-1:] == ">")


CONTRADICTION: Final = Rule("S450", "intent-contradicts-method", "MUST", "AGIS 6.3")
DOUBT: Final = Rule("S451", "intent-strays-from-method", "SHOULD", "AGIS 6.3, 9.1")
UNVERIFIABLE: Final = Rule("S452", "intent-without-action", "style", "AGIS 6.1, 6.3")

_MOST: Final = 3
_READ: Final = 1000  # maximum number of characters of an intent to examine
_REFUSED: Final = frozenset({"CONNECT", "TRACE"})  # catalog verbs that AGIS 4.3 reserves for HTTP
_LISTS: Final = re.compile(r"\b(?:lists?|all|every|each)\b", re.IGNORECASE)


def check_consistency(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    """Run pass 6: compare an intent with its method."""
    endpoint = declared.endpoint
    method, intent = endpoint.method, endpoint.semantic.intent
    if not method.isalpha() or not intent.strip():
        return  # reported by passes 2 and 5
    judgement = judge(method, intent)
    if judgement.verdict == "consistent" or judgement.method_class is None:
        return  # pass 2 reports an unknown method
    if judgement.verdict == "unverifiable":
        if judgement.head is None:
            advice = "Begin with a verb that describes what the endpoint does for its caller."
        else:
            advice = f"Use a more precise verb than {judgement.head}."
        yield UNVERIFIABLE.at(endpoint, "/semantic/intent", judgement.reason, advice)
        return
    rule = CONTRADICTION if judgement.verdict == "violation" else DOUBT
    yield rule.at(endpoint, "/semantic/intent", judgement.reason, _advice(endpoint, judgement, context))


def _advice(endpoint: Endpoint, judgement: IntentJudgement, context: LintContext) -> str:
    sentence = f'"{fitting_sentence(endpoint.method, endpoint.path)}"'
    lists = _LISTS.search(endpoint.semantic.intent[:_READ]) is not None
    verbs = _fitting(context.catalog.names, judgement.head or "", lists=lists)
    if not verbs:
        return f"Say what {endpoint.method} does: {sentence}."
    return f"Write {' or '.join(verbs)} for this intent, or an intent for {endpoint.method}: {sentence}."


@lru_cache(maxsize=1024)
def _fitting(names: frozenset[str], head: str, *, lists: bool) -> tuple[str, ...]:
    """Return the catalog verbs with the meaning of a verb, independent of the sentence, so the result is cached."""
    classes = operation_classes(head)
    if classes is None:
        return ()
    candidates = (verb for verb in _by_class(names).get(classes.main, ()) if verb.lower() != head)
    same = (head.upper(),) if head.upper() in names - _REFUSED else ()
    return (*same, *fitting_verbs(f"{third_person(head)} {'a list' if lists else 'the thing'}", candidates))[:_MOST]


@lru_cache(maxsize=4)
def _by_class(names: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Return the verbs to suggest by operation class, plain actions only."""
    found: dict[str, list[str]] = {}
    for verb in sorted(names - _REFUSED):
        classes = operation_classes(verb.lower())
        if classes is not None and action_intent(verb).kind == "action":
            found.setdefault(classes.main, []).append(verb)
    return found
