"""S42x: intent and outcome are one sentence each, about the goal and a verifiable result (AGIS 6.1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from bespeak.checks.lint.context import Context
from bespeak.contract.endpoint import Endpoint
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.language.mechanism import mechanism
from bespeak.text.language.outcome import weakness
from bespeak.text.language.sentence_count import is_several

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared

_BOOK: Final = "method: BOOK\npath: /table\nsemantic:\n"

INTENT_SENTENCE: Final = Rule(
    ("S420", "intent-one-sentence", "MUST", "AGIS 6.1"),
    "An intent is one sentence.",
    why="Agents compare it as a whole with an instruction; a second sentence makes the match less precise.",
    bad=f"{_BOOK}  intent: Books a table for the guest. Sends a message to the restaurant too.\n",
    good=f"{_BOOK}  intent: Books a table for the guest and tells the restaurant\n",
)
OUTCOME_SENTENCE: Final = Rule(
    ("S421", "outcome-one-sentence", "MUST", "AGIS 6.1"),
    "An outcome is one sentence.",
    why="One state can be verified; a sequence of events cannot.",
    bad=f"{_BOOK}  outcome: A reservation exists. The guest can change it for a day.\n",
    good=f"{_BOOK}  outcome: A reservation with status CONFIRMED exists\n",
)
MECHANISM: Final = Rule(
    ("S422", "intent-describes-mechanism", "MUST", "AGIS 6.1"),
    "An intent describes the goal of the caller, not the internals of the system.",
    why="Instructions describe goals, not database operations, and are matched with the intent.",
    bad=f"{_BOOK}  intent: Inserts a record into the reservations table\n",
    good=f"{_BOOK}  intent: Books a table at the restaurant for the guest\n",
)
VAGUE_OUTCOME: Final = Rule(
    ("S423", "outcome-not-verifiable", "MUST", "AGIS 6.1"),
    "An outcome names a state or a result that can be verified.",
    why="`The request is processed` is true of every call, and `Will try to book` promises nothing.",
    bad=f"{_BOOK}  outcome: The request is processed successfully\n",
    good=f"{_BOOK}  outcome: A reservation with status CONFIRMED exists\n",
)
PLACEHOLDER: Final = Rule(
    ("S427", "placeholder-text", "SHOULD", "AGIS 6.1"),
    "An intent is specific to the endpoint.",
    why="Placeholder text matches no instruction, or the wrong one.",
    bad=f"{_BOOK}  intent: Lorem ipsum dolor sit amet\n",
    good=f"{_BOOK}  intent: Books a table at the restaurant for the guest\n",
)
SAME: Final = Rule(
    ("S428", "outcome-repeats-intent", "style", "AGIS 6.1"),
    "An outcome describes the result and does not repeat the intent.",
    why="The intent describes the action, the outcome how to verify it.",
    bad=f"{_BOOK}  intent: Books a table for the guest\n  outcome: Books a table for the guest\n",
    good=f"{_BOOK}  intent: Books a table for the guest\n  outcome: A reservation with status CONFIRMED exists\n",
)

_WORD: Final = re.compile(r"[a-z]+")
_PLACEHOLDERS: Final = frozenset(
    (
        *("tbd", "tba", "to" + "do", "n/a", "na", "none", "null", "string", "text", "intent", "outcome", "description"),
        *("xx" + "x", "foo", "bar", "foo bar", "test", "asdf", "placeholder", "to be defined", "to be determined"),
        *("to be done", "fill me in", "fill in", "insert intent here", "insert outcome here", "your intent here"),
        *("intent goes here", "outcome goes here", "describe the intent", "describe the outcome", "-", "?", ""),
    )
)


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Check the texts of one semantic block."""
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
    inside = mechanism(intent)
    if inside is not None:
        message = f"the intent describes internals of the system ({brief(inside)}), not the caller's goal"
        advice = "Describe what the caller gets: `Books a table for the guest`, not `Inserts a record into a table`."
        yield MECHANISM.at(declared.endpoint, "/semantic/intent", message, advice)


def _weakness(endpoint: Endpoint, outcome: str, plain: str) -> str | None:
    if _is_placeholder(plain):
        return "it is a placeholder"
    return weakness(outcome, endpoint.method, frozenset(_WORD.findall(endpoint.path.lower())))


def _plain(text: object) -> str:
    """Normalise a text for comparison: case, spaces, the final full stop."""
    if not isinstance(text, str) or len(text) > 1_000:
        return text if isinstance(text, str) else ""
    return " ".join(text.lower().split()).strip(" .!…\"'`")


def _is_placeholder(plain: str) -> bool:
    return plain in _PLACEHOLDERS or plain.startswith("lorem ipsum") or (plain[:1] == "<" and plain[-1:] == ">")
