"""Intent and outcome of an endpoint, in sentences that keep the rules for both (AGIS 6.1, 6.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from bespeak.documents.adoption.evidence import acts
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.guess import UNSURE, Guess, Risk
from bespeak.documents.adoption.naming import is_plural, main_class, plural, singular, words
from bespeak.documents.adoption.sanitizer import first_sentence, plain_text
from bespeak.documents.adoption.verb_choice import is_list
from bespeak.text.language.consistency import judge
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.injection import addressed, link, role_marker
from bespeak.text.language.intent import mechanism
from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.sentence import is_english, is_several, word_set
from bespeak.text.language.sentence import words as sentence_words
from bespeak.text.language.verb_form import lemmas

_VOWELS: Final = "aeiou"
_DOUBLING: Final = word_set(
    "stop plan ship scan swap map spot permit submit commit emit remit log transfer cancel flag retag embed infer "
    "snapshot bootstrap"
)
_IRREGULAR: Final = {
    **{word: word for word in ("run", "set", "split", "bid", "read", "reset", "broadcast", "forecast")},
    "shutdown": "shut down",
    "lookup": "looked up",
    "login": "logged in",
    "logout": "logged out",
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
_SOUNDS_LIKE_YOU: Final = ("uni", "use", "usa", "usu", "uti", "eu", "ubi", "one", "once")  # a user, but an upload
_NO_NUMBER: Final = word_set("data metadata information info news feedback content traffic health status access")
_MYSELF: Final = frozenset({"me", "self", "current", "mine"})  # segments that mean the caller
_AS: Final = ("by", "with", "for", "from", "in", "of")  # they begin a segment that qualifies: /pets/by-status
_LONGEST: Final = 300
_MAKING: Final = frozenset({"CREATE", "REGISTER", "SUBMIT", "DEFINE", "ESTABLISH", "GENERATE"})
_OPENING: Final = re.compile(  # filler words before the verb
    r"\A(?:at any time,? )?(?:you can|use this to|"
    r"(?:use )?this (?:endpoint|operation|method|call|resource|tool)(?: to| can be used to)?|"
    r"(?:allows|lets|enables) (?:you|users|clients|the caller)(?: to)?) (?=[a-z])",
    re.IGNORECASE,
)
_ASIDE: Final = re.compile(r"\s*\([^()]*\)\Z")  # brackets at the end: the arguments of a function, the method, a note
_CALLED: Final = re.compile(r"invoke (?:action|function)\b", re.IGNORECASE)  # words of a generator
_JOINED: Final = re.compile(r"[a-z]+(?:[A-Z][a-z0-9]*)+|(?:[A-Z][a-z]+){3,}")
"""Words of a program: `sendMail`, `SubjectAccessReview`; not GitHub."""
_FEW_NAMES: Final = 4  # maximum number of words in the name of a function that reads as a sentence
_FEW: Final = 10  # maximum number of words in a phrase that gets a verb put before it


@dataclass(frozen=True, slots=True)
class Sentences:
    intent: str
    outcome: str
    description: str
    guesses: tuple[Guess, ...]


def write_sentences(candidate: Candidate, verb: str, path: str, *, impact: str) -> Sentences:
    """Write intent, outcome and description of a candidate under a verb and a path."""
    thing = _thing(path, verb)
    if not thing.single and is_list(candidate):
        *before, last = thing.listed.split()
        thing = replace(thing, listed=" ".join((*before, plural(last))))
    intent, source, sure = next(
        (found for found in _intents(candidate, verb, thing) if _is_fit(verb, found[0])),
        (f"{verb.capitalize()} {_with_article(thing.name)} for the caller", "the verb and the path", 0.4),
    )
    outcome = _outcome(verb, thing)
    acting = acts(candidate) if impact != "informational" else ""
    if acting:  # neither sentence may hide that a GET acts
        about = f"named {thing.owner}" if thing.owner else thing.name if thing.name != acting else "caller"
        wish = _imperative(first_sentence(candidate.summary) or "-")
        deed = wish[0].lower() + wish[1:] if wish.lower().startswith(f"{acting} ") else f"{acting} the {about}"
        intent = f"{verb.capitalize()} the answer to a call that may {deed}"
        source, sure = f"the word '{acting}'", 0.4
        outcome = f"The {about} has been {participle(acting)}, and the answer is returned"
    said = plain_text(candidate.description or candidate.summary, 600)
    description = said.text or plain_text(candidate.summary, 600).text or f"{intent}."
    risk: Risk = "low" if impact == "informational" else "medium"
    intent_risk: Risk = "medium" if sure < UNSURE and impact != "informational" else "low"
    guesses = [
        Guess("/semantic/intent", "the intent", f"from {source}", sure, risk=intent_risk),
        Guess("/semantic/outcome", "the outcome", f"from {verb} and the path", 0.5, risk=risk),
    ]
    fault = said.fault or plain_text(candidate.summary).fault
    if fault:
        guesses.append(Guess("/description", "left out", f"the upstream's text holds {fault}", 0.3, risk="high"))
    return Sentences(intent, outcome, description, tuple(guesses))


@dataclass(frozen=True, slots=True)
class _Thing:
    name: str  # name in the singular, `pet`
    listed: str  # name as in the path, `pets`
    single: bool  # True if a parameter selects one of them
    owner: str = ""  # thing that it belongs to, if a parameter selects that: `user` in /users/{id}/orders


def _thing(path: str, verb: str) -> _Thing:
    segments = [segment for segment in path.split("/") if segment]
    literals = [at for at, segment in enumerate(segments) if not segment.startswith("{")]
    named = [at for at in literals if segments[at] not in _MYSELF and segments[at].partition("-")[0] not in _AS]
    # APPROVE /orders/{id}/approval is about the order.
    while len(named) > 1 and meanings().verb_of(segments[named[-1]]) == verb.lower():
        named.pop()
    at = named[-1] if named else -1
    listed = (segments[at] if named else "item").replace("-", " ")
    *before, last = listed.split()
    name = " ".join((*before, singular(last)))
    single = any(part.startswith("{") or part in _MYSELF for part in segments[at + 1 :])
    selected = at > 1 and segments[at - 1].startswith("{") and not segments[at - 2].startswith("{")
    owner = singular(segments[at - 2].replace("-", " ")) if selected and not single else ""
    return _Thing(name, listed, single, owner)


def _intents(candidate: Candidate, verb: str, thing: _Thing) -> Iterator[tuple[str, str, float]]:
    """Yield sentences for the intent, the best first, with their source and confidence."""
    texts = [(candidate.summary, "the summary", 0.9), (candidate.description, "description", 0.8)]
    if candidate.method is None:
        # AGIS C.3(b): a description that says what the caller wants stays as it is.
        texts = [(candidate.summary or candidate.description, "the description", 0.8)]
        yield first_sentence(texts[0][0]), "the description", 0.9
    for text, source, sure in texts:
        bare = _ASIDE.sub("", first_sentence(text))
        said = _OPENING.sub("", _in_words(bare, thing)) if bare != candidate.name else ""
        if not said or _CALLED.match(said) or not is_english(sentence_words(said)):
            continue
        heads = head_verbs(said)
        first, *others = said.split()
        gerund, adverb = first.lower().endswith("ing") and len(others) >= _FEW, first.lower().endswith("ly")
        if source == "description" and heads and (gerund or (heads[0].start > 0 and not adverb)):
            continue  # it describes the actor or a meaning instead of the wish
        phrase = len(said.split()) <= _FEW and " you " not in said
        if phrase and (not heads or heads[0].kind == "nominal"):
            yield _led(verb, said), source, sure - 0.1
        yield _imperative(said), source, sure
    yield _plainly(verb, thing), "the verb and the path", 0.5


def _in_words(said: str, thing: _Thing) -> str:
    """Write out a function name or a title: `getUserById`, `Read Own Items`. A name without the thing says nothing."""
    parts = said.split()
    if len(parts) == 1 and said.isidentifier() and len(words(said)) > 1:
        named = words(said)
        about = len(named) <= _FEW_NAMES and not {*thing.name.split(), *thing.listed.split()}.isdisjoint(named)
        return " ".join(named).capitalize() if about else ""
    if len(parts) > 1 and all(part.istitle() or part.isupper() or part.isdigit() for part in parts):
        return " ".join((parts[0], *(part.lower() if part.istitle() else part for part in parts[1:])))
    return " ".join(" ".join(words(part)) if _JOINED.fullmatch(part) else part for part in parts)


def _plainly(verb: str, thing: _Thing) -> str:
    if thing.name == verb.lower() and not thing.owner:
        return f"{verb.capitalize()} what the caller asks for"
    if thing.single:
        which = f"the named {thing.name}"
    else:
        which = _with_article(thing.name) if verb in _MAKING else f"{'the ' if thing.owner else ''}{thing.listed}"
    return f"{verb.capitalize()} {which}{f' of the named {thing.owner}' if thing.owner else ''}"


def _led(verb: str, phrase: str) -> str:
    """Put a verb before a phrase that has none; the participle in `Updated user` becomes the verb."""
    first, _, rest = phrase.partition(" ")
    if rest and any(lemma.verb == verb.lower() and lemma.form != "base" for lemma in lemmas(first.lower())):
        return f"{verb.capitalize()} {rest}"
    named = first[1:] != first[1:].lower()
    return f"{verb.capitalize()} {phrase if named else phrase[0].lower() + phrase[1:]}"


def _imperative(sentence: str) -> str:
    """Turn a sentence into a command: `Returns a pet` becomes `Return a pet`."""
    heads = head_verbs(sentence)
    if heads and heads[0].start == 0 and heads[0].kind in ("head", "light") and " " not in heads[0].verb:
        shown, verb = sentence[: heads[0].end], heads[0].verb
        bent = [one.verb for one in lemmas(shown.lower()) if len(one.verb) <= len(shown)]
        if verb not in bent:  # `Powers off` is of `stop`, but only its first word is bent
            verb = bent[0] if bent else shown
        return f"{verb.capitalize()}{sentence[heads[0].end :]}"
    first = sentence.partition(" ")[0]
    if heads and first.endswith("ly") and heads[0].start == len(first) + 1 and heads[0].kind == "head":
        return f"{first.capitalize()} {heads[0].verb}{sentence[heads[0].end :]}"
    return sentence[0].upper() + sentence[1:]


def _is_fit(verb: str, intent: str) -> bool:
    has_length = len(intent.split()) > 1 and len(intent) <= _LONGEST
    if not has_length or judge(verb, intent).verdict != "consistent" or is_several(intent):
        return False
    # Neither does it name a mechanism, nor does it speak to a model.
    return not (mechanism(intent) or addressed(intent) or link(intent) or role_marker(intent, strict=True))


def _outcome(verb: str, thing: _Thing) -> str:
    main = main_class(verb.lower())
    several = not thing.single and is_plural(thing.listed.split()[-1])
    if verb == "COUNT":
        return f"The number of {thing.listed} is in the answer"
    if main == "ANALYZE":
        return f"The result for the {thing.name} is in the answer"
    if main == "READ":
        return f"The matching {thing.listed} are in the answer" if several else f"The {thing.name} is in the answer"
    if verb in _MAKING:
        name = _with_article(thing.name)
        return f"{name[0].upper()}{name[1:]} exists as the input describes it"
    if verb in ("REMOVE", "PURGE"):
        return f"The {thing.listed} no longer exist" if several else f"The {thing.name} no longer exists"
    if main == "UPDATE" and verb in ("UPDATE", "MODIFY", "REPLACE", "SET", "CHANGE", "EDIT"):
        return f"The {f'{thing.listed} have' if several else f'{thing.name} has'} the values of the input"
    if thing.name in ("logout", "signout", "logoff"):
        return "The session has ended"
    if verb == "AUTHENTICATE":
        return "The caller is authenticated"
    return f"The {thing.name} has been {'made' if thing.name == verb.lower() else participle(verb.lower())}"


@lru_cache(maxsize=512)
def participle(verb: str) -> str:
    """Return the past participle of a verb: booked, paid, submitted."""
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
    if thing.rsplit(maxsplit=1)[-1] in _NO_NUMBER:
        return f"the {thing}"
    if is_plural(thing):
        return thing
    vowel = thing[:1] in _VOWELS and not thing.startswith(_SOUNDS_LIKE_YOU)
    return f"{'an' if vowel or thing.startswith(('hour', 'honest', 'heir')) else 'a'} {thing}"
