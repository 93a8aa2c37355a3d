"""What an endpoint is for and what is true afterwards, in sentences that keep the rules for both (AGIS 6.1, 6.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bespeak.language.consistency import judge
from bespeak.language.head_verb import head_verbs
from bespeak.language.lexicon import lexicon
from bespeak.language.operation_class import operation_classes
from bespeak.lint.injection import addressed, link, role_marker
from bespeak.lint.mechanism import mechanism
from bespeak.lint.sentence import is_several
from bespeak.openapi.description import Operation
from bespeak.openapi.guess import UNSURE, Guess, Risk
from bespeak.openapi.naming import is_plural, singular
from bespeak.openapi.plain_text import first_sentence, plain_text

_VOWELS: Final = "aeiou"
_DOUBLING: Final = frozenset(
    {
        *("stop", "plan", "ship", "scan", "swap", "map", "spot", "permit", "submit", "commit", "emit", "remit", "log"),
        *("transfer", "cancel", "flag", "retag", "embed", "infer", "snapshot", "bootstrap"),
    }
)
_IRREGULAR: Final = {
    **{word: word for word in ("run", "set", "split", "bid", "read", "reset", "broadcast", "forecast")},
    "shutdown": "shut down",
    "lookup": "looked up",
    "checkin": "checked in",
    "checkout": "checked out",
    "rollback": "rolled back",
    "rollout": "rolled out",
    "failover": "failed over",
    "failback": "failed back",
    "cutover": "cut over",
    "handoff": "handed off",
    "chargeback": "charged back",
    "auditlog": "logged",
    "learn": "learned",
    "relay": "relayed",
}
_LONGEST: Final = 300
_FEW: Final = 10
"""Words of a phrase that a verb is put before."""


@dataclass(frozen=True, slots=True)
class Sentences:
    """The prose of an endpoint."""

    intent: str
    outcome: str
    description: str
    guesses: tuple[Guess, ...]


def write_sentences(operation: Operation, verb: str, path: str, *, impact: str) -> Sentences:
    """Intent, outcome and description of an operation under a verb and a path."""
    thing = _thing(path)
    intent, source, sure = next(
        (found for found in _intents(operation, verb, thing) if _is_fit(verb, found[0])),
        (f"{verb.capitalize()} {_with_article(thing.name)} for the caller", "the verb and the path", 0.4),
    )
    outcome = _outcome(verb, thing)
    said = plain_text(operation.description or operation.summary, 600)
    description = said.text or plain_text(operation.summary, 600).text or f"{intent}."
    risk: Risk = "low" if impact == "informational" else "medium"
    intent_risk: Risk = "medium" if sure < UNSURE and impact != "informational" else "low"
    guesses = [
        Guess(at="/semantic/intent", text="the intent", why=f"from {source}", confidence=sure, risk=intent_risk),
        Guess(at="/semantic/outcome", text="the outcome", why=f"from {verb} and the path", confidence=0.5, risk=risk),
    ]
    if said.fault:
        why = f"the upstream's text holds {said.fault}"
        guesses.append(Guess(at="/description", text="left out", why=why, confidence=0.3, risk="high"))
    return Sentences(intent, outcome, description, tuple(guesses))


@dataclass(frozen=True, slots=True)
class _Thing:
    name: str
    """In the singular, `pet`."""
    listed: str
    """As the path has it, `pets`."""
    single: bool
    """Whether a parameter says which one."""


def _thing(path: str) -> _Thing:
    segments = [segment for segment in path.split("/") if segment]
    literals = [segment for segment in segments if not segment.startswith("{")]
    listed = (literals[-1] if literals else "item").replace("-", " ")
    *before, last = listed.split()
    name = " ".join((*before, singular(last)))
    return _Thing(name, listed, bool(segments) and segments[-1].startswith("{"))


def _intents(operation: Operation, verb: str, thing: _Thing) -> Iterator[tuple[str, str, float]]:
    """Sentences for what is wanted, the best first, with where each comes from."""
    for text, source, sure in ((operation.summary, "the summary", 0.9), (operation.description, "description", 0.8)):
        said = first_sentence(text)
        if not said:
            continue
        heads = head_verbs(said)
        if len(said.split()) <= _FEW and (not heads or heads[0].kind == "nominal"):
            lower = said if said[:2].isupper() else f"{said[0].lower()}{said[1:]}"
            yield f"{verb.capitalize()} {lower}", source, sure - 0.1
        yield _imperative(said), source, sure
    which = f"the {thing.name} that is named" if thing.single else thing.listed
    yield f"{verb.capitalize()} {which}", "the verb and the path", 0.5


def _imperative(sentence: str) -> str:
    """A sentence that begins with its verb, as a command: `Returns a pet` is `Return a pet`."""
    heads = head_verbs(sentence)
    if heads and heads[0].start == 0 and heads[0].kind in ("head", "light") and " " not in heads[0].verb:
        return f"{heads[0].verb.capitalize()}{sentence[heads[0].end :]}"
    return sentence[0].upper() + sentence[1:]


def _is_fit(verb: str, intent: str) -> bool:
    """Whether lint has nothing to say about an intent."""
    return (
        len(intent.split()) > 1
        and len(intent) <= _LONGEST
        and judge(verb, intent).verdict == "consistent"
        and not is_several(intent)
        and mechanism(intent) is None
        and addressed(intent) is None
        and link(intent) is None
        and role_marker(intent, strict=True) is None
    )


def _outcome(verb: str, thing: _Thing) -> str:
    classes = operation_classes(verb.lower())
    main = classes.main if classes else "CONTROL"
    if main in ("READ", "ANALYZE"):
        if main == "ANALYZE":
            return f"What was found out about the {thing.name} is in the answer"
        return (
            f"The {thing.name} is in the answer" if thing.single else f"The {thing.listed} that fit are in the answer"
        )
    if verb in ("CREATE", "REGISTER", "SUBMIT", "DEFINE", "ESTABLISH", "GENERATE"):
        return f"{_with_article(thing.name).capitalize()} exists as the input describes it"
    if verb in ("REMOVE", "PURGE"):
        return f"The {thing.name} no longer exists" if thing.single else f"The {thing.listed} no longer exist"
    if main == "UPDATE" and verb in ("UPDATE", "MODIFY", "REPLACE", "SET", "CHANGE", "EDIT"):
        return f"The {thing.name} has the values of the input"
    return f"The {thing.name} has been {participle(verb.lower())}"


@lru_cache(maxsize=512)
def participle(verb: str) -> str:
    """The past participle of a verb: booked, paid, submitted."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    forms = [(form, kind) for form, readings in lexicon().irregular.items() for base, kind in readings if base == verb]
    for wanted in ("participle", "past"):
        found = [form for form, kind in forms if kind == wanted]
        if found:
            return found[0]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in _DOUBLING else f"{verb}ed"


def _with_article(thing: str) -> str:
    if is_plural(thing):
        return thing
    return f"{'an' if thing[:1] in _VOWELS else 'a'} {thing}"
