"""S45x: the intent of an endpoint matches its method (AGIS 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bespeak.checks.lint.context import Context
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.language.action_intent import action_intent
from bespeak.text.language.consistency import Judgement, judge
from bespeak.text.language.embedding import cosine
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.suggestion import fitting_sentence, fitting_verbs, third_person

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared
    from bespeak.contract.endpoint import Endpoint

CONTRADICTION: Final = Rule(
    ("S450", "intent-contradicts-method", "MUST", "AGIS 6.3"),
    "The intent does not describe another operation than the method.",
    why="An agent chooses by the method and by the intent. If the two disagree it does what nobody asked for: it books "
    "where it was to look, or it looks where it was to cancel. The verbs decide, not a distance between vectors: by "
    "cosine alone, `Retrieves cancellation policy` is close to CANCEL.",
    bad="method: BOOK\npath: /reservation\nsemantic:\n  intent: Returns a list of available restaurants\n",
    good="method: BOOK\npath: /reservation\nsemantic:\n  intent: Books a table at a restaurant for the guest\n",
)
DOUBT: Final = Rule(
    ("S451", "intent-strays-from-method", "SHOULD", "AGIS 6.3, 9.1"),
    "The intent describes the operation of the method plainly.",
    why=(
        "If method and intent are similar but not the same, such as UPDATE and `Creates`, the result is unclear to an "
        "agent."
    ),
    bad="method: UPDATE\npath: /reservation\nsemantic:\n  intent: Creates a reservation for the guest\n",
    good="method: UPDATE\npath: /reservation\nsemantic:\n  intent: Changes the date of a reservation\n",
)
UNVERIFIABLE: Final = Rule(
    ("S452", "intent-without-action", "style", "AGIS 6.1, 6.3"),
    "The intent has a verb that says what is done.",
    why="Without a verb neither a validator nor an agent can tell whether intent and method agree.",
    bad="method: BOOK\npath: /reservation\nsemantic:\n  intent: The restaurant of the guest\n",
    good="method: BOOK\npath: /reservation\nsemantic:\n  intent: Books a table at the restaurant of the guest\n",
)

_MOST: Final = 3
_READ: Final = 1000
"""Maximum number of characters of an intent to examine."""

_REFUSED: Final = frozenset({"CONNECT", "TRACE"})
"""Catalog verbs that AGIS 4.3 reserves for HTTP."""
_LISTS: Final = re.compile(r"\b(?:lists?|all|every|each)\b", re.IGNORECASE)


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
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
    near = cosine(method, intent)
    message = judgement.reason if near is None else f"{judgement.reason}; cosine {near:.2f} (information only)"
    yield rule.at(endpoint, "/semantic/intent", message, _advice(endpoint, judgement, context))


def _advice(endpoint: Endpoint, judgement: Judgement, context: Context) -> str:
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
    found = fitting_verbs(f"{third_person(head)} {'a list' if lists else 'the thing'}", candidates)
    return (*same, *found)[:_MOST]


@lru_cache(maxsize=4)
def _by_class(names: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Return the verbs to suggest by operation class, plain actions only."""
    found: dict[str, list[str]] = {}
    for verb in sorted(names - _REFUSED):
        classes = operation_classes(verb.lower())
        if classes is not None and action_intent(verb).kind == "action":
            found.setdefault(classes.main, []).append(verb)
    return found
