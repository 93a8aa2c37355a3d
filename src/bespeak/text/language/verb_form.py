"""The form of a method or another word as a verb of English, and what the drafts find wrong with it as a method."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.identifiers import pieces as split
from bespeak.text.language.lexicon import Lexicon, lexicon, meanings
from bespeak.text.language.names import HISSING, VOWELS
from bespeak.text.language.names import MANNERS as MANY
from bespeak.text.language.sentence import table, word_lists, word_set

Kind = Literal["base", "phrasal", "inflected", "compound", "unknown"]
Inflection = Literal["", "third person", "past", "past participle", "present participle"]
FormName = Literal["base", "third", "past", "participle", "gerund"]
INFLECTIONS: Final[dict[str, Inflection]] = {
    "base": "", "third": "third person", "past": "past", "participle": "past participle",
    "gerund": "present participle",
}  # fmt: skip
PARTICLES: Final = ("back", "off", "out", "up", "over", "down")
PREFIXES: Final = (
    "re", "un", "de", "dis", "pre", "over", "mis", "out", "up", "co", "auto", "under", "sub", "inter", "cross", "fore",
    "multi", "post",
)  # fmt: skip
MANNERS: Final = MANY | word_set("auto quick soft hard force self")  # how a verb is done: batch-insert
MAKERS: Final = ("ize", "ise", "ify")  # endings that turn any word into a verb
_LONGEST: Final = 40
_SHORTEST_REST: Final = 3
_VERB_SHARE: Final = 0.05  # minimum verb share of the first part of a compound
_ONE_VOWEL: Final = re.compile(r"(?:[^aeiou]|(?<=q)u)*[aeiou][^aeiouwxy]")  # words that double a letter: plan, quit


class Lemma(NamedTuple):
    """A verb that a word may be a form of. The past of a regular verb is also its past participle."""

    verb: str
    form: FormName


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a method token: `base` is the verb in lower case, `rest` the rest of a compound."""

    kind: Kind
    base: str | None = None
    rest: str | None = None
    inflection: Inflection = ""


_UNKNOWN: Final = Form("unknown")


def classify(token: str) -> Form:
    # Before the cache, which is to hold short words only.
    return _form(token) if len(token) <= _LONGEST and token.isascii() and token.isalpha() else _UNKNOWN


def lemmas(word: str) -> tuple[Lemma, ...]:
    """Return the verbs that a lower-case word may be a form of, likeliest first."""
    return _lemmas(word) if len(word) <= _LONGEST else ()


@lru_cache(maxsize=4096)
def _form(token: str) -> Form:
    words = lexicon()
    pieces = split(token)
    if len(pieces) > 1 and not token.isupper():
        return _camel(pieces, words)
    word = token.lower()
    if found := lemmas(word):
        return _chosen(word, found, words)
    if _is_noun(word, words) or word in words.others or word in words.lists["not-verbs"]:
        return _UNKNOWN
    return _compound(word, words) or _UNKNOWN


@lru_cache(maxsize=8192)
def _lemmas(word: str) -> tuple[Lemma, ...]:
    words = lexicon()
    found = list(_listed(word, words)) or list(_derived(word, words))
    if len(found) > 1:
        methods = words.lists["methods"]
        found.sort(key=lambda lemma: (lemma.verb not in methods, -words.counts(lemma.verb).verb))
    return tuple(found)


def undone(word: str) -> Iterator[Lemma]:
    """Yield the regular forms that a word may be, whether or not the stem is a verb."""
    if word.endswith("s") and not word.endswith("ss"):
        yield from (Lemma(stem, "third") for stem in _before_s(word))
    elif word.endswith("ed"):
        yield from (Lemma(stem, "past") for stem in _before_vowel(word[:-2]))
    elif word.endswith("ing"):
        yield from (Lemma(stem, "gerund") for stem in _before_vowel(word[:-3]))
        if word.endswith("ying"):
            yield Lemma(word[:-4] + "ie", "gerund")


def is_verb(word: str) -> bool:
    """Return True if a lower-case word is the base form of a listed or derived verb."""
    return any(lemma.form == "base" for lemma in lemmas(word))


def _before_s(word: str) -> Iterator[str]:
    stem = word[:-1]
    if word.endswith("ies"):
        yield word[:-3] + "y"
    elif word.endswith("es") and word[:-2].endswith((*HISSING, "o")):
        yield word[:-2]
    if not stem.endswith(HISSING) and not (stem.endswith("y") and stem[-2:-1] not in VOWELS):
        yield stem


def _before_vowel(stem: str) -> Iterator[str]:
    if len(stem) < 2:
        return
    if stem[-1] == stem[-2] and stem[-1] not in VOWELS:
        yield stem[:-1]
    if not _ONE_VOWEL.fullmatch(stem):
        yield stem
    if stem[-1] == "i":
        yield stem[:-1] + "y"
    if stem[-1] != "e" or stem[-2] in "aeiou":
        yield stem + "e"


def _listed(word: str, words: Lexicon) -> Iterator[Lemma]:
    if word in words.verbs:
        yield Lemma(word, "base")
    for verb, form in words.irregular.get(word, ()):
        yield Lemma(verb, form)  # type: ignore[arg-type]  # the file has only forms of Lemma
    for lemma in undone(word):
        if lemma.verb in words.verbs and not (lemma.form == "past" and lemma.verb in words.strong):
            yield lemma


def _derived(word: str, words: Lexicon) -> Iterator[Lemma]:
    """Recognize unlisted verbs: two words in one (rollback), prefix and verb (reindex), word made a verb (tokenize)."""
    if is_phrasal(word, words):
        yield Lemma(word, "base")
    elif word not in words.nouns and word not in words.others:
        for prefix in PREFIXES:
            if word.startswith(prefix):
                rest = word[len(prefix) :]
                yield from (Lemma(prefix + verb, form) for verb, form in _listed(rest, words) if len(verb) > 2)
        if _is_made(word, words):
            yield Lemma(word, "base")
        yield from (lemma for lemma in undone(word) if is_phrasal(lemma.verb, words) or _is_made(lemma.verb, words))


def _is_made(word: str, words: Lexicon) -> bool:
    """Return True if an ending made a verb of another word; pdusize, with a whole word in it, is a compound."""
    if len(word) < 6 or not word.endswith(MAKERS):
        return False
    tails = (word[start:] for start in range(2, len(word) - 3))
    return not any(tail in words.verbs or tail in words.nouns or tail == "wise" for tail in tails)


def is_phrasal(word: str, words: Lexicon) -> bool:
    """Return True if a word is a verb and a particle written together: rollback, optin."""
    if word in words.lists["phrasal"]:
        return True
    if word in words.nouns or word in words.others:
        return False
    return any(word.endswith(particle) and word[: -len(particle)] in words.verbs for particle in PARTICLES)


def _chosen(word: str, found: tuple[Lemma, ...], words: Lexicon) -> Form:
    base = any(lemma.form == "base" for lemma in found)
    other = next((lemma for lemma in found if lemma.form != "base" and lemma.verb != word), None)
    if base and not (other and _outweighs(word, other.verb, words)):
        return Form("phrasal" if word not in words.verbs and is_phrasal(word, words) else "base", word)
    assert other is not None
    return Form("inflected", other.verb, None, INFLECTIONS[other.form])


def _outweighs(word: str, other: str, words: Lexicon) -> bool:
    """Return True if an ambiguous word is rather a form of another verb: found, but not seed."""
    own, rival = words.counts(word).verb, words.counts(other).verb
    return rival > 20 * own or (word.endswith(("ing", "ed", "s")) and rival > 2 * own + 12)


def _camel(pieces: list[str], words: Lexicon) -> Form:
    parts = [piece.lower() for piece in pieces]
    if parts[0] in MANNERS and _is_command(parts[1], words):
        del parts[0]
    found = lemmas(parts[0])
    return Form("compound", found[0].verb, "-".join(parts[1:])) if found else _UNKNOWN


def _compound(word: str, words: Lexicon) -> Form | None:
    """Split a verb and its object at the likeliest verb; manners and nouns come first: batchinsert, ordercancel."""
    for end in range(3, len(word) - _SHORTEST_REST + 1):
        first, behind = word[:end], word[end:]
        if first in MANNERS:
            if _is_command(behind, words):
                return Form("compound", behind, "")
            if inner := _compound(behind, words):
                return inner
        elif _is_noun(first, words) and behind in words.paths["sure"]:
            return Form("compound", behind, first)
    best: tuple[tuple[bool, int], Form] | None = None
    for end in range(2, len(word) - _SHORTEST_REST + 1):
        verb = word[:end]
        if best and verb in words.nouns and _is_noun(word[end:], words):
            return None
        usual = verb in words.lists["methods"] or verb in words.paths["usual"]
        if (usual or words.share(verb)[0] >= _VERB_SHARE) and (rest := split_nouns(word[end:], words)):
            rank = (usual, end)
            if best is None or rank > best[0]:
                best = rank, Form("compound", verb, rest)
    return best and best[1]


def _is_command(word: str, words: Lexicon) -> bool:
    """Return True if a word is a usual verb of contracts, whatever else it may be."""
    return word in words.verbs and (word in words.lists["methods"] or word in words.paths["sure"])


def split_nouns(text: str, words: Lexicon) -> str | None:
    """Split a noun, or two nouns written together, with a hyphen between."""
    if _is_noun(text, words):
        return text
    for end in range(len(text) - _SHORTEST_REST, _SHORTEST_REST - 1, -1):
        if _is_noun(text[:end], words) and _is_noun(text[end:], words):
            return f"{text[:end]}-{text[end:]}"
    return None


def _is_noun(text: str, words: Lexicon) -> bool:
    if text in words.nouns or words.counts(text).noun >= (1 if len(text) > _SHORTEST_REST + 1 else 4):
        return len(text) >= _SHORTEST_REST
    return text.endswith("s") and any(_is_noun(stem, words) for stem in _before_s(text))


_REASONS: Final = {
    "condition": "it says how something is, not what to do",
    "existence": "it says that something is so, not what to do",
    "mind": "it says what somebody thinks or feels, not what to do",
    "thing": "it names a thing, not what to do with it",
    "weather": "it says what happens by itself, not what to do",
    "vague": "it says that something is done, but not what",
}
_ADJECTIVE_SHARE: Final = 0.6
_NOUN_SHARE: Final = 0.5
_INTENT_VERB_SHARE: Final = 0.03
_UNCLASSED_SHARE: Final = 0.4  # minimum share of verb uses of an unclassified verb: PHONE is a noun


@dataclass(frozen=True, slots=True)
class ActionIntent:
    """Action, state or in between; `reason` completes the sentence "X is not a clear action: …"."""

    kind: Literal["action", "state", "borderline"]
    reason: str = ""
    instead: tuple[str, ...] = ()  # suggested verbs, in capitals
    group: str = ""  # condition, existence, mind, thing, weather; if borderline also vague


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
        return ActionIntent("borderline", "it is read as an adjective first", instead, "condition")
    least = _INTENT_VERB_SHARE if classed else _UNCLASSED_SHARE
    if as_verb < least and as_noun > _NOUN_SHARE:
        return ActionIntent("borderline", "it is read as a noun first", instead, "thing")
    return _ACTION


_MEANINGS: Final = {verb: {word: one for word, (one,) in row.items()} for verb, row in table("particles").items()}
_PARTED: Final = word_set("turn switch shut power put call take bring break log sign roll")  # turns it off
_REACH: Final = 6
_LAST: Final = frozenset({"on", "off", "down", "back", "away", "out", "up"})
_EARLIER: Final = word_set("previous original initial default first last earlier normal prior former primary state")
_ENDS: Final = frozenset({".", ",", "and", "or", "if", "when", "for", "from", "of"})
_STATE_REACH: Final = 12
_ON_OFF: Final = re.compile(r"\b(?:on (?:and|or) off|off (?:and|or) (?:back )?on)\b")
_SWITCHES: Final = frozenset({"turn", "switch", "power"})
_DEFAULTS: Final = frozenset({"default", "defaults", "factory"})


def two_word_verb(verb: str, sentence: Sequence[str], at: int) -> str | None:
    """Return the meaning of a verb with its particle, if the particle is present."""
    if verb == "return":
        return "restore" if _returns_to(sentence, at) else None
    if verb == "restore" and not _DEFAULTS.isdisjoint(sentence[at + 1 : at + _REACH]):
        return "reset"
    if (particles := _MEANINGS.get(verb)) is None:
        return None
    follower = sentence[at + 1] if at + 1 < len(sentence) else ""
    behind = sentence[at + 1 : at + 1 + _STATE_REACH]
    if verb in _SWITCHES and _ON_OFF.search(" ".join(behind)):
        return "toggle"
    if (verb, follower) == ("add", "up") and "to" in behind[1:2]:
        return None  # adds up to ten members
    if found := particles.get(follower):
        return found
    if verb in _PARTED:
        for place in range(at + 2, min(at + _REACH, len(sentence))):
            behind = sentence[place + 1] if place + 1 < len(sentence) else "."
            if verb == "take" and (sentence[place], behind) == ("out", "of"):
                return None  # it may be extracted, withdrawn or removed
            if sentence[place] == "into" or (sentence[place] in _LAST and behind in _ENDS):
                return particles.get(sentence[place])
    return None


def _returns_to(sentence: Sequence[str], at: int) -> bool:
    """Return True if something is returned to an earlier state, not to a caller."""
    for place in range(at + 2, min(at + _STATE_REACH, len(sentence))):
        before = {lemma.form for lemma in lemmas(sentence[place - 1])}
        if sentence[place] == "to" and sentence[place - 1] != "up" and before.isdisjoint({"past", "participle"}):
            return not _EARLIER.isdisjoint(sentence[place + 1 : place + 4])
    return False


_SPOKEN_VOWELS: Final = frozenset("aeiouy")
_SHORTEST: Final = 3
INFINITIVES: Final = ("ar", "er", "ir", "are", "ere", "ire", "en", "eren", "ieren", "ern", "eln", "re", "a")
"""Endings of infinitives, among others of Romance and Germanic languages."""
_ENGLISH: Final = (
    *("able", "ible", "ally", "ely", "kly", "ness", "ment", "ship", "tion", "sion", "ance", "ence", "ology", "ity"),
    *("ful", "less", "ous", "ing", "ings", "ers", "ors"),
)  # endings of English words that are not base forms of verbs


def may_be_foreign(word: str, near: Sequence[str] = ()) -> bool:
    """Return True if an unknown word can be a foreign verb, and is not rather a slip for one of `near`."""
    word = word.lower()
    if len(word) < _SHORTEST or _SPOKEN_VOWELS.isdisjoint(word) or not word.isascii() or not word.isalpha():
        return False
    nouns = split_nouns(word, lexicon())
    # Two nouns are in a word by chance where it ends like an infinitive: CONSUL and TAR.
    if word.endswith(_ENGLISH) or (nouns and ("-" not in nouns or not word.endswith(INFINITIVES[:-1]))):
        return False
    return not any(_is_slip(word, verb.lower()) for verb in near)


def _is_slip(word: str, verb: str) -> bool:
    """Return True if a word is rather a misspelling of a verb, or the verb and something else in one word."""
    if word.startswith(verb):
        return word[len(verb) :] not in INFINITIVES and not (verb[-1:] == "e" and word[len(verb) - 1 :] in INFINITIVES)
    if len(word) == len(verb):
        wrong = [at for at, (one, other) in enumerate(zip(word, verb, strict=True)) if one != other]
        if len(wrong) == 2 and (word[wrong[0]], word[wrong[1]]) == (verb[wrong[1]], verb[wrong[0]]):
            return True
        return len(wrong) == 1 and not word.endswith(INFINITIVES)
    longer, shorter = (word, verb) if len(word) > len(verb) else (verb, word)
    one_more = any(longer[:at] + longer[at + 1 :] == shorter for at in range(len(longer)))
    return one_more and not word.endswith(INFINITIVES)


FaultKind = Literal[
    "whitespace", "inflected", "characters", "compound", "case", "phrasal", "unknown", "foreign", "length",
    "http", "state", "being", "noun", "vague",
]  # fmt: skip # what can be wrong with a method: first its form, then its meaning
HTTP_METHODS: Final = word_lists(  # the methods AGIS 4.3 rules out, and verbs that say what is usually meant by them
    "GET=FETCH,RETRIEVE POST=CREATE,SUBMIT PUT=REPLACE DELETE=REMOVE,CANCEL PATCH=MODIFY,UPDATE HEAD=CHECK "
    "OPTIONS=DISCOVER,DESCRIBE CONNECT=LINK,JOIN TRACE=TRACK,FOLLOW"
)
_BY_GROUP: Final[dict[str, FaultKind]] = {"condition": "state", "thing": "noun"}
_SIGNS: Final = {
    "_": "an underscore", "-": "a hyphen", ".": "a dot", "/": "a slash", ":": "a colon", "+": "a plus sign",
}  # fmt: skip
_LONGEST_METHOD: Final = 32
_NAMESPACED: Final = re.compile(r"([a-z][a-z0-9-]*)\.([A-Z]+)")


class MethodFault(NamedTuple):
    """A reason why a word is not a good method."""

    kind: FaultKind
    message: str
    advice: str = ""
    instead: str = ""  # the method to write, if there is one choice
    safe: bool = False  # True if writing `instead` keeps the meaning


def judge_method(method: str) -> tuple[MethodFault, ...]:
    """List what the drafts and the lexicon find wrong with a method, apart from any catalog."""
    if len(method) <= _LONGEST_METHOD:
        return _judge(method)
    # No verb is that long, so there is nothing to look up.
    fault = _characters(method[:_LONGEST_METHOD]) or MethodFault("unknown", f"{brief(method)} is not a verb")
    length = f"{brief(method)} has {len(method)} letters"
    return fault, MethodFault("length", length, "Write one verb of 3 to 32 letters.")


@lru_cache(maxsize=4096)
def _judge(method: str) -> tuple[MethodFault, ...]:
    if not method.strip():
        return ()  # pass 1 says that it is missing
    if (fault := _characters(method)) is not None:
        return (fault,)
    name = method.upper()
    if name in HTTP_METHODS:
        verbs = HTTP_METHODS[name]
        return (MethodFault("http", f"{method} is a method of HTTP", f"Write {' or '.join(verbs)}.", verbs[0]),)
    form, verdict = classify(method), action_intent(method)
    if verdict.kind == "state" and form.kind != "compound":
        kind = _BY_GROUP.get(verdict.group, "being")
        advice = _meant(verdict, "Write what is to be done.")
        return (MethodFault(kind, f"{method} is not an action: {verdict.reason}", advice),)
    if (fault := _form_fault(method, form)) is not None:
        return (fault,)
    found = []
    if form.kind == "phrasal":
        message = f"{method} is a verb and a particle in one word"
        found.append(MethodFault("phrasal", message, "A plain verb reads better."))
    if verdict.kind == "borderline":
        message = f"{method} is not a clear action: {verdict.reason}"
        found.append(MethodFault("vague", message, _meant(verdict, "Choose a plainer verb.")))
    if len(method) < _SHORTEST:
        found.append(MethodFault("length", f"{method} has {len(method)} letters", "Write a verb of 3 to 32 letters."))
    if method != name:
        found.append(MethodFault("case", f"{method} is not in capitals", f"Write {name}.", name, safe=True))
    return tuple(found)


def _characters(method: str) -> MethodFault | None:
    if method.isascii() and method.isalpha():
        return None
    shown = method if method.isprintable() and " " not in method and method.isascii() else brief(method)
    return _spaces(method) or _separators(method, shown) or _odd_character(method, shown)


def _spaces(method: str) -> MethodFault | None:
    words = method.split()
    if len(words) > 1:
        verb, things = _verb_and_things(words)
        return MethodFault("whitespace", f"{brief(method)} is {len(words)} words", _write(verb, things), verb)
    if not words or method == method.strip():
        return None
    message, advice = f"{brief(method)} has spaces around it", f"Write {words[0]}."
    return MethodFault("whitespace", message, advice, words[0], safe=True)


def _separators(method: str, shown: str) -> MethodFault | None:
    """Report a namespace before a method, or words that signs join."""
    if (namespaced := _NAMESPACED.fullmatch(method)) is not None:
        verb = namespaced[2]
        advice = f"Write {verb}; the namespace stands in the vocabulary block."
        return MethodFault("characters", f"{shown} has the namespace {namespaced[1]} in it", advice, verb)
    pieces = re.split(r"[^A-Za-z]+", _plain(method).strip("_-./:+0123456789"))
    sign = next((char for char in method if not char.isalnum()), "")
    if not sign or len(pieces) < 2 or not all(pieces):
        return None
    verb, things = _verb_and_things(pieces)
    message = f"{shown} joins {len(pieces)} words with {_SIGNS.get(sign, brief(sign))}"
    return MethodFault("compound", message, _write(verb, things), verb)


def _odd_character(method: str, shown: str) -> MethodFault:
    odd = next(char for char in method if not (char.isascii() and char.isalpha()))
    what = "a digit" if odd.isdecimal() else _SIGNS.get(odd, brief(odd))
    letters = _plain(method).strip("_-./:+!?0123456789").upper()
    if not letters.isalpha():
        return MethodFault("characters", f"{shown} has {what} in it", "Write a verb with the letters A to Z.")
    return MethodFault("characters", f"{shown} has {what} in it", f"Write {letters}.", letters)


def _plain(method: str) -> str:
    """Return the text without accents: E for É."""
    return unicodedata.normalize("NFKD", method).encode("ascii", "ignore").decode("ascii")


def _form_fault(method: str, form: Form) -> MethodFault | None:
    if form.kind == "inflected" and form.base is not None:
        verb = _action(form.base)
        shown = "past tense" if form.inflection == "past" else form.inflection
        return MethodFault("inflected", f"{method} is a {shown}", f"Write {verb}.", verb)
    pieces = split(method)
    joined = len(pieces) > 1 and not method.isupper()
    if form.kind == "compound" and form.base is not None and form.rest is not None and not joined:
        words = lexicon()
        usual = form.base in words.lists["methods"] or form.base in words.paths["usual"]
        # A rare verb and a noun are in a word of another language by chance: FIN and DEN.
        if not usual and method.lower().endswith(INFINITIVES):
            return MethodFault("unknown", f"{method} is not a known verb")
        verb = _action(form.base)
        what = "a verb and a noun" if form.rest else "two words"
        return MethodFault("compound", f"{method} joins {what}", _write(verb, form.rest), verb)
    if joined and form.kind in ("compound", "unknown"):
        verb, things = _verb_and_things(pieces)
        return MethodFault("compound", f"{method} joins {len(pieces)} words", _write(verb, things), verb)
    return MethodFault("unknown", f"{method} is not a known verb") if form.kind == "unknown" else None


def _verb_and_things(pieces: list[str]) -> tuple[str, str]:
    """Split joined words into the verb and the rest as a path segment."""
    lower = [piece.lower() for piece in pieces]
    verbs = [(at, form.base) for at, piece in enumerate(lower) if (form := classify(piece)).base] or [(0, lower[0])]
    sure = lexicon().paths["sure"]
    at, base = next((found for found in verbs if found[1] in sure), verbs[0])
    if lower[at] in MANNERS and len(verbs) > 1:
        at, base = verbs[1]
    rest = [piece for number, piece in enumerate(lower) if number != at and piece.isalpha() and piece not in MANNERS]
    verb = _action(base or pieces[at])
    # What follows a state is what is true of the thing, not the thing: isAvailable, hasSeats.
    return verb, "" if action_intent(base or "").kind == "state" else "-".join(rest)


def _action(base: str) -> str:
    """Return the method to suggest for a verb: never one that is itself refused."""
    name = base.upper()
    if name in HTTP_METHODS:
        return HTTP_METHODS[name][0]
    verdict = action_intent(base)
    return verdict.instead[0] if verdict.kind == "state" and verdict.instead else name


def _write(verb: str, things: str) -> str:
    return f"Write {verb} /{things}." if things else f"Write {verb}."


def _meant(verdict: ActionIntent, otherwise: str) -> str:
    return f"Write {' or '.join(verdict.instead)}, if that is meant." if verdict.instead else otherwise
