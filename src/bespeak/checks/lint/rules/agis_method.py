"""M21x and M23x: a method is one verb in its base form, and asks for something to be done (AGIS 4)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from bespeak.checks.lint.context import Context
from bespeak.contract.catalog.catalog import Catalog
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.fix import Fix
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.language.action_intent import Verdict, action_intent
from bespeak.text.language.verb_form import Form, classify
from bespeak.text.source.change import Change

if TYPE_CHECKING:
    from bespeak.checks.lint.subject import Declared

WHITESPACE: Final = Rule(
    "M210",
    "method-with-whitespace",
    "MUST",
    "AGIS 4.1(a)",
    "A method is a single word without spaces.",
    why="A request line is split at spaces: what follows the first one would be read as the path.",
    bad="method: BOOK TABLE\npath: /restaurant\n",
    good="method: BOOK\npath: /restaurant/table\n",
    fix="unsafe",
)
INFLECTED: Final = Rule(
    "M211",
    "inflected-method",
    "MUST",
    "AGIS 4.1(b)",
    "A method is the base form of a verb, as in a command: no -ing, no past tense, no third person.",
    why="An agent finds a method by the verb of its instruction. People say `book a table`, never `booking a table`.",
    bad="method: BOOKING\npath: /table\n",
    good="method: BOOK\npath: /table\n",
    fix="unsafe",
)
CHARACTERS: Final = Rule(
    "M212",
    "method-characters",
    "MUST",
    "AGIS 4.1(c)",
    "A method has only the letters A to Z: no digits, no punctuation, no letters of other alphabets.",
    why="A version or a variant in the method hides the verb; a letter outside ASCII cannot stand on a request line.",
    bad="method: SEARCH2\npath: /restaurant\n",
    good="method: SEARCH\npath: /restaurant\n",
    fix="unsafe",
)
COMPOUND: Final = Rule(
    "M213",
    "compound-method",
    "MUST",
    "AGIS 4.1(d)",
    "A method is the verb alone; what it acts on is the path.",
    why="CANCEL is what an agent hears in `cancel my booking`. CANCEL_BOOKING is another word to it, and says twice "
    "what the path says once.",
    bad="method: CANCEL_BOOKING\npath: /booking/{id}\n",
    good="method: CANCEL\npath: /booking/{id}\n",
    fix="unsafe",
)
CASE: Final = Rule(
    "M214",
    "method-case",
    "SHOULD",
    "AGIS 4.1(e)",
    "A method is written in capitals.",
    why="Capitals tell the verb from the path at a glance. Methods are compared without regard to case, so nothing "
    "else changes.",
    bad="method: book\npath: /table\n",
    good="method: BOOK\npath: /table\n",
    fix="safe",
)
PHRASAL: Final = Rule(
    "M215",
    "phrasal-method",
    "style",
    "AGIS 4.1(d)",
    "A method is better one plain verb than a verb and a particle in one word.",
    why="`check out` is two words to whoever says it, and each service writes them together in its own way.",
    bad="method: SIGNUP\npath: /member\n",
    good="method: ENROLL\npath: /member\n",
)
UNKNOWN: Final = Rule(
    "M216",
    "unknown-verb",
    "MUST",
    "AGIS 4.1(b)",
    "A method is a verb: of English as the lexicon knows it, of the catalog, or one the author vouches for.",
    why="An agent infers what a method does from the word alone; from a word that nobody uses it can infer nothing.",
    bad="method: CANCLE\npath: /booking/{id}\n",
    good="method: CANCEL\npath: /booking/{id}\n",
    fix="unsafe",
)
LENGTH: Final = Rule(
    "M217",
    "method-length",
    "SHOULD",
    "AGTP-API 3.2",
    "A method has 3 to 32 letters.",
    why="AGTP carries no other methods: a server answers them with 459.",
    bad="method: GO\npath: /checkpoint\n",
    good="method: REACH\npath: /checkpoint\n",
)
PROHIBITED: Final = Rule(
    "M230",
    "http-method",
    "MUST",
    "AGIS 4.3",
    "A method is none of HTTP's: GET, POST, PUT, DELETE, PATCH, HEAD, OPTIONS, CONNECT, TRACE.",
    why="These names mean something in HTTP that they do not mean here; an agent that knows both mixes them up.",
    bad="method: GET\npath: /restaurant/{id}\n",
    good="method: FETCH\npath: /restaurant/{id}\n",
    fix="unsafe",
)
STATE: Final = Rule(
    "M231",
    "state-as-method",
    "MUST",
    "AGIS 4.2",
    "A method says what to do, not how something is.",
    why="AVAILABLE asks for nothing: an agent cannot tell whether it makes a table available or asks if it is.",
    bad="method: AVAILABLE\npath: /table\n",
    good="method: CHECK\npath: /table-availability\n",
)
EXISTENCE: Final = Rule(
    "M232",
    "being-as-method",
    "MUST",
    "AGIS 4.2",
    "A method says what to do, not that something is, has, knows or happens.",
    why="Nobody can be asked to exist, to own or to want something on behalf of somebody else.",
    bad="method: EXISTS\npath: /account/{id}\n",
    good="method: VERIFY\npath: /account/{id}\n",
)
NOUN: Final = Rule(
    "M233",
    "noun-as-method",
    "MUST",
    "AGIS 4.2",
    "A method is a verb; the noun belongs into the path.",
    why="DATA names a thing and leaves open whether it is read, written or thrown away.",
    bad="method: STATUS\npath: /order/{id}\n",
    good="method: TRACK\npath: /order/{id}\n",
)
VAGUE: Final = Rule(
    "M234",
    "vague-method",
    "SHOULD",
    "AGIS 4.2",
    "A method says plainly which action is meant.",
    why="PROCESS fits every endpoint, so an agent that looks for one purpose cannot choose it for its name.",
    bad="method: PROCESS\npath: /payment\n",
    good="method: SETTLE\npath: /payment\n",
)

RULES: Final = (
    WHITESPACE,
    INFLECTED,
    CHARACTERS,
    COMPOUND,
    CASE,
    PHRASAL,
    UNKNOWN,
    LENGTH,
    PROHIBITED,
    STATE,
    EXISTENCE,
    NOUN,
    VAGUE,
)

HTTP_METHODS: Final = {
    "GET": ("FETCH", "RETRIEVE"),
    "POST": ("CREATE", "SUBMIT"),
    "PUT": ("REPLACE",),
    "DELETE": ("REMOVE", "CANCEL"),
    "PATCH": ("MODIFY", "UPDATE"),
    "HEAD": ("CHECK",),
    "OPTIONS": ("DISCOVER", "DESCRIBE"),
    "CONNECT": ("LINK", "JOIN"),
    "TRACE": ("TRACK", "FOLLOW"),
}
"""The methods AGIS 4.3 rules out, and verbs that say what is usually meant by them."""

_CLASS: Final = frozenset({PROHIBITED, STATE, EXISTENCE, NOUN, VAGUE})
_WORDS: Final = frozenset({INFLECTED, COMPOUND, PHRASAL, UNKNOWN, STATE, EXISTENCE, NOUN, VAGUE})
"""Judgements about a word, which an author may know better."""
_FORMS: Final = frozenset({INFLECTED, COMPOUND, UNKNOWN})
"""Judgements about the form of a word. What is in the catalog is a verb, whatever the lexicon makes of it."""
_BY_GROUP: Final = {"condition": STATE, "thing": NOUN}
_INFLECTIONS: Final = {
    "present participle": "a present participle",
    "past": "a past tense",
    "past participle": "a past participle",
    "third person": "a third person",
}
_SIGNS: Final = {
    "_": "an underscore",
    "-": "a hyphen",
    ".": "a dot",
    "/": "a slash",
    ":": "a colon",
    "+": "a plus sign",
}
_SHORTEST: Final = 3
_LONGEST: Final = 32
_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_NAMESPACED: Final = re.compile(r"([a-z][a-z0-9-]*)\.([A-Z]+)")


class _Finding(NamedTuple):
    """What is wrong with a method, wherever it stands."""

    rule: Rule
    message: str
    advice: str = ""
    instead: str = ""
    """The method to write, where there is one choice."""
    safe: bool = False


def check_syntax(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Pass 2: the method of an endpoint is one word, in its base form."""
    return _check(declared, context, in_class=False)


def check_class(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Pass 3: the method of an endpoint asks for an action, and is none of HTTP's."""
    return _check(declared, context, in_class=True)


def check(declared: Declared, context: Context) -> Iterator[Diagnostic]:
    """Passes 2 and 3."""
    yield from check_syntax(declared, context)
    yield from check_class(declared, context)


def method_findings(
    method: str, allowed: Container[str], catalog: Catalog, known: Container[str] = ()
) -> list[Diagnostic]:
    """Passes 2 and 3 on a method alone, as a transport runs them (AGIS 9.2).

    What is `allowed` is right whatever the lexicon says of it; what is merely `known` is a verb, though perhaps in a
    wrong form. Both are in capitals.
    """
    known_here = method.upper() in known
    return [
        finding.rule.inside("", finding.message, finding.advice)
        for finding in _kept(
            method, method.upper() in allowed, catalog, "`DISCOVER /methods` lists the verbs of this server."
        )
        if not (finding.rule is UNKNOWN and known_here)
    ]


def _check(declared: Declared, context: Context, *, in_class: bool) -> Iterator[Diagnostic]:
    endpoint, catalog = declared.endpoint, context.catalog
    name = endpoint.method.upper()
    if not context.agis and name in catalog.names:
        return  # AGTP-API decides there what a good verb is, by its catalog
    allowed = name in context.allowed_verbs or name in context.policies.methods.custom
    written = declared.written.get("method") if context.agis else None
    method = written if isinstance(written, str) else endpoint.method  # the model has it in capitals
    vouch = "Write a verb in its base form; if it is one, of another language perhaps, name it in allowed-verbs."
    for finding in _kept(method, allowed, catalog, vouch):
        if (finding.rule in _CLASS) is not in_class:
            continue
        fix = None
        if finding.instead:
            change = Change("replace", "/method", finding.instead)
            fix = Fix(f"Write {finding.instead}", (change,), safe=finding.safe)
        yield finding.rule.at(endpoint, "/method", finding.message, finding.advice, fix)


def _kept(method: str, allowed: bool, catalog: Catalog, unknown: str) -> Iterator[_Finding]:
    """The findings that stand in these surroundings; `unknown` is the advice for a word nothing comes close to."""
    for finding in _judge(method) if len(method) <= _LONGEST else _judge_long(method):
        if allowed and finding.rule in _WORDS and method.isalpha():
            continue
        if finding.rule in _FORMS and method.upper() in catalog.names:
            continue
        yield _with_near(finding, catalog.near(method), unknown) if finding.rule is UNKNOWN else finding


def _with_near(finding: _Finding, near: list[str], otherwise: str) -> _Finding:
    if not near:
        return finding._replace(advice=otherwise)
    return finding._replace(advice=f"Did you mean {_either(near)}?", instead=near[0] if len(near) == 1 else "")


def _judge_long(method: str) -> tuple[_Finding, ...]:
    """No verb is that long, so there is nothing to look up; what it is made of still counts."""
    findings = [_Finding(LENGTH, f"{brief(method)} has {len(method)} letters", "Write one verb of 3 to 32 letters.")]
    fault = _characters(method[:_LONGEST])
    return (fault, *findings) if fault else (_Finding(UNKNOWN, f"{brief(method)} is no verb"), *findings)


@lru_cache(maxsize=4096)
def _judge(method: str) -> tuple[_Finding, ...]:
    """What the drafts and the lexicon say of a method; its surroundings are left out of it."""
    if not method.strip():
        return ()  # pass 1 says that it is missing
    fault = _characters(method)
    if fault is not None:
        return (fault,)
    name = method.upper()
    if name in HTTP_METHODS:
        verbs = HTTP_METHODS[name]
        return (_Finding(PROHIBITED, f"{method} is a method of HTTP", f"Write {_either(verbs)}.", verbs[0]),)
    form, verdict = classify(method), action_intent(method)
    if verdict.kind == "state" and form.kind != "compound":
        return (_no_action(method, verdict),)
    fault = _form(method, form)
    if fault is not None:
        return (fault,)
    found = []
    if form.kind == "phrasal":
        found.append(_Finding(PHRASAL, f"{method} is a verb and a particle in one word", "A plain verb reads better."))
    if verdict.kind == "borderline":
        advice = f"Write {_either(verdict.instead)}, if that is meant." if verdict.instead else "Choose a plainer verb."
        found.append(_Finding(VAGUE, f"{method} is no clear action: {verdict.reason}", advice))
    if len(method) < _SHORTEST:
        found.append(_Finding(LENGTH, f"{method} has {len(method)} letters", "Write a verb of 3 to 32 letters."))
    if method != name:
        found.append(_Finding(CASE, f"{method} is not in capitals", f"Write {name}.", name, safe=True))
    return tuple(found)


def _characters(method: str) -> _Finding | None:
    """What a method has in it beside the letters A to Z."""
    if method.isascii() and method.isalpha():
        return None
    shown = method if method.isprintable() and " " not in method and method.isascii() else brief(method)
    words = method.split()
    if method != method.strip() and len(words) == 1:
        return _Finding(WHITESPACE, f"{brief(method)} has spaces around it", f"Write {words[0]}.", words[0], safe=True)
    if len(words) > 1:
        verb, things = _verb_and_things(words)
        return _Finding(WHITESPACE, f"{brief(method)} is {len(words)} words", _write(verb, things), verb)
    namespaced = _NAMESPACED.fullmatch(method)
    if namespaced is not None:
        verb = namespaced[2]
        advice = f"Write {verb}; the namespace stands in the vocabulary block."
        return _Finding(CHARACTERS, f"{shown} has the namespace {namespaced[1]} in it", advice, verb)
    plain = unicodedata.normalize("NFKD", method).encode("ascii", "ignore").decode("ascii")
    letters = plain.strip("_-./:+!?0123456789").upper()
    letters = letters if letters.isalpha() else ""
    pieces = re.split(r"[^A-Za-z]+", plain.strip("_-./:+0123456789"))
    sign = next((char for char in method if not char.isalnum()), "")
    if sign and len(pieces) > 1 and all(pieces):
        verb, things = _verb_and_things(pieces)
        with_sign = _SIGNS.get(sign, brief(sign))
        return _Finding(COMPOUND, f"{shown} joins {len(pieces)} words with {with_sign}", _write(verb, things), verb)
    odd = next(char for char in method if not (char.isascii() and char.isalpha()))
    if odd.isdecimal():
        what = "a digit"
    elif odd in _SIGNS:
        what = _SIGNS[odd]
    else:
        what = brief(odd)
    advice = f"Write {letters}." if letters else "Write a verb with the letters A to Z."
    return _Finding(CHARACTERS, f"{shown} has {what} in it", advice, letters)


def _form(method: str, form: Form) -> _Finding | None:
    if form.kind == "inflected" and form.base is not None:
        verb = _action(form.base)
        return _Finding(INFLECTED, f"{method} is {_INFLECTIONS[form.inflection]}", f"Write {verb}.", verb)
    pieces = _PIECE.findall(method)
    joined = len(pieces) > 1 and not method.isupper()
    if form.kind == "compound" and form.base is not None and form.rest is not None and not joined:
        verb = _action(form.base)
        return _Finding(COMPOUND, f"{method} joins a verb and a noun", _write(verb, form.rest), verb)
    if joined and form.kind in ("compound", "unknown"):
        verb, things = _verb_and_things(pieces)
        return _Finding(COMPOUND, f"{method} joins {len(pieces)} words", _write(verb, things), verb)
    return _Finding(UNKNOWN, f"{method} is no verb the lexicon knows") if form.kind == "unknown" else None


def _no_action(method: str, verdict: Verdict) -> _Finding:
    rule = _BY_GROUP.get(verdict.group, EXISTENCE)
    advice = f"Write {_either(verdict.instead)}, if that is meant." if verdict.instead else "Write what is to be done."
    return _Finding(rule, f"{method} is no action: {verdict.reason}", advice)


def _verb_and_things(pieces: list[str]) -> tuple[str, str]:
    """The verb among words that were joined, and the rest of them as a path segment."""
    at, base = next(
        ((at, form.base) for at, piece in enumerate(pieces) if (form := classify(piece.lower())).base), (0, pieces[0])
    )
    rest = [piece.lower() for number, piece in enumerate(pieces) if number != at and piece.isalpha()]
    verb = _action(base or pieces[at])
    # What follows a state is what is true of the thing, not the thing: isAvailable, hasSeats.
    return verb, "" if action_intent(base or "").kind == "state" else "-".join(rest)


def _action(base: str) -> str:
    """The method to suggest for a verb: not one that is itself refused."""
    name = base.upper()
    if name in HTTP_METHODS:
        return HTTP_METHODS[name][0]
    verdict = action_intent(base)
    return verdict.instead[0] if verdict.kind == "state" and verdict.instead else name


def _write(verb: str, things: str) -> str:
    return f"Write {verb} /{things}." if things else f"Write {verb}."


def _either(verbs: Sequence[str]) -> str:
    return " or ".join(verbs)
