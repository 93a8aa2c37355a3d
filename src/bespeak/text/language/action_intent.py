"""Action intent of a method (AGIS 4.2): BOOK asks for an action, AVAILABLE and EXISTS do not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.meanings import meanings
from bespeak.text.language.verb_form import classify

_REASONS: Final = {
    "condition": "it says how something is, not what to do",
    "existence": "it says that something is so, not what to do",
    "mind": "it says what somebody thinks or feels, not what to do",
    "thing": "it names a thing, not what to do with it",
    "weather": "it says what happens by itself, not what to do",
    "vague": "it says that something is done, but not what",
}
_NOUN: Final = "it is read as a noun first"
_ADJECTIVE: Final = "it is read as an adjective first"

_LONGEST: Final = 40
_ADJECTIVE_SHARE: Final = 0.6
_NOUN_SHARE: Final = 0.5
_VERB_SHARE: Final = 0.03
_UNCLASSED_SHARE: Final = 0.4
"""Minimum share of verb uses of a verb that nobody has classified by hand: PHONE and RESULT are read as nouns."""


@dataclass(frozen=True, slots=True)
class ActionIntent:
    """Action, state or in between; `reason` completes the sentence "X is not a clear action: …"."""

    kind: Literal["action", "state", "borderline"]
    reason: str = ""
    instead: tuple[str, ...] = ()
    """Suggested verbs, in capitals."""
    group: str = ""
    """Kind of word that is not an action: condition, existence, mind, thing, weather; if borderline also vague."""


_ACTION: Final = ActionIntent("action")


def action_intent(verb: str) -> ActionIntent:
    """Classify a method in any form; an unknown word counts as an action."""
    # Before the cache, which is to hold short words only.
    return _verdict(verb.lower()) if len(verb) <= _LONGEST else _ACTION


@lru_cache(maxsize=2048)
def _verdict(word: str) -> ActionIntent:
    words = lexicon()
    form = classify(word)
    base = form.base if form.kind == "inflected" and form.base and word not in words.intents else word
    group = words.intents.get(base)
    instead = tuple(found.upper() for found in words.instead.get(base, ()))
    if group is not None:
        return ActionIntent("borderline" if group == "vague" else "state", _REASONS[group], instead, group)
    if form.kind == "unknown":
        if word in words.nouns:
            return ActionIntent("state", _REASONS["thing"], instead, "thing")
        if word in words.others:
            return ActionIntent("state", _REASONS["condition"], instead, "condition")
        return _ACTION
    classed = base in meanings().hand
    if form.kind == "phrasal" or (classed and base in words.lists["methods"]):
        return _ACTION
    as_verb, as_noun, as_adjective = words.share(base)
    if as_adjective >= _ADJECTIVE_SHARE:
        return ActionIntent("borderline", _ADJECTIVE, instead, "condition")
    least = _VERB_SHARE if classed else _UNCLASSED_SHARE
    if as_verb < least and as_noun > _NOUN_SHARE:
        return ActionIntent("borderline", _NOUN, instead, "thing")
    return _ACTION
