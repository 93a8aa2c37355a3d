"""S45x: the intent of an endpoint says what its method promises (AGIS 6.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.language.consistency import Judgement, judge
from bespeak.lint.context import Context
from bespeak.lint.rule import Rule

if TYPE_CHECKING:
    from bespeak.lint.subject import Declared

CONTRADICTION: Final = Rule(
    "S450",
    "intent-contradicts-method",
    "MUST",
    "AGIS 6.3",
    "The intent does not describe another operation than the method.",
    why="An agent chooses by the method and by the intent. If the two disagree it does what nobody asked for: it books "
    "where it was to look, or it looks where it was to cancel. The verbs decide, not a distance between vectors: by "
    "cosine alone, `Retrieves cancellation policy` is close to CANCEL.",
    bad="method: BOOK\npath: /reservation\nsemantic:\n  intent: Returns a list of available restaurants\n",
    good="method: BOOK\npath: /reservation\nsemantic:\n  intent: Books a table at a restaurant for the guest\n",
)
DOUBT: Final = Rule(
    "S451",
    "intent-strays-from-method",
    "SHOULD",
    "AGIS 6.3, 9.1",
    "The intent describes the operation of the method plainly.",
    why="Where method and intent are near but not the same, UPDATE and `Creates`, an agent cannot tell what exists "
    "afterwards.",
    bad="method: UPDATE\npath: /reservation\nsemantic:\n  intent: Creates a reservation for the guest\n",
    good="method: UPDATE\npath: /reservation\nsemantic:\n  intent: Changes the date of a reservation\n",
)
UNVERIFIABLE: Final = Rule(
    "S452",
    "intent-without-action",
    "style",
    "AGIS 6.1, 6.3",
    "The intent has a verb that says what is done.",
    why="Without one nobody, neither a validator nor an agent, can tell whether intent and method agree.",
    bad="method: BOOK\npath: /reservation\nsemantic:\n  intent: The restaurant of the guest\n",
    good="method: BOOK\npath: /reservation\nsemantic:\n  intent: Books a table at the restaurant of the guest\n",
)

RULES: Final = (CONTRADICTION, DOUBT, UNVERIFIABLE)

_BY_VERDICT: Final = {"violation": CONTRADICTION, "warning": DOUBT, "unverifiable": UNVERIFIABLE}


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Pass 6: findings about an intent beside its method."""
    endpoint = declared.endpoint
    method, intent = endpoint.method, endpoint.semantic.intent
    if not method.isalpha() or not intent.strip():
        return  # passes 2 and 5 speak of that
    judgement = judge(method, intent)
    rule = _BY_VERDICT.get(judgement.verdict)
    if rule is not None and judgement.method_class is not None:  # of an unknown method pass 2 has spoken
        yield rule.at(endpoint, "/semantic/intent", judgement.reason, _advice(judgement, method))


def _advice(judgement: Judgement, method: str) -> str:
    if judgement.verdict == "unverifiable":
        if judgement.head is None:
            return "Begin with the verb: what does the endpoint do for its caller?"
        return f"Say it with a plainer verb than {judgement.head}."
    return f"Say what {method.upper()} does, or choose the method that does what the intent says."
