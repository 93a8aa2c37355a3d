"""The verb of the catalog for a candidate, and the impact of a call under it, whether it may be repeated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.contract.catalog.catalog import Catalog
from bespeak.documents.adoption.evidence import FETCHING, acts, contradicts, is_issued, only_reads
from bespeak.documents.adoption.facade import READING, UNSURE, Candidate, Guess, Risk
from bespeak.documents.adoption.sanitizer import first_sentence
from bespeak.documents.adoption.verb_words import (
    Said,
    change_words,
    command_of,
    said_words,
    tool_words,
)
from bespeak.text.language.consistency import fitting_verbs, judge, third_person
from bespeak.text.language.lexicon import NOT_UNDOING, meanings
from bespeak.text.language.names import METHODS, SAME_VERB, VERBS_FOR, changes, is_plural, main_class, singular, words
from bespeak.text.language.operation_class import fit, operation_classes
from bespeak.text.language.sentence import listed, word_lists, word_pairs
from bespeak.text.language.verb_form import action_intent

_BY_METHOD: Final = word_lists(
    "GET=FETCH,RETRIEVE,QUERY HEAD=CHECK,VERIFY OPTIONS=DESCRIBE,INSPECT POST=CREATE,SUBMIT,EXECUTE "
    "PUT=REPLACE,SET,UPDATE PATCH=MODIFY,UPDATE,CHANGE DELETE=REMOVE,CANCEL,PURGE"
)
_TAKING_AWAY: Final = frozenset({"ARCHIVE", "RESET", "CLOSE", "REVERT", "UNDO", "CLEAR", "UNASSIGN", "EXPIRE"})
"""Verbs of a DELETE that are not of the class for removing."""
_GENERAL: Final = word_pairs("READ=FETCH ANALYZE=EVALUATE CREATE=CREATE UPDATE=UPDATE DELETE=REMOVE SEND=SEND")
"""Verbs for words of a class that the catalog has no synonym of; the path keeps the word."""
_ALONE: Final = {"DELETE": 0.8, "PATCH": 0.8, "POST": 0.4, "": 0.3}
"""Confidence in a method by itself: a POST may be anything, and without a method nothing is known."""
_LISTS: Final = ("LIST", "DISCOVER", "QUERY")
_LIST_WORDS: Final = frozenset({"list", "all", "every"})
_OF_ONE: Final = listed("plurals-of-one")  # plurals for what there is of one thing
_REFUSED: Final = frozenset({"CONNECT", "TRACE"})  # verbs of the catalog that AGIS 4.3 reserves for HTTP
_FLOOR: Final = frozenset({"PROPOSE", "DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "PLAN"})
"""Verbs with a meaning between agents; only the exact word chooses them."""
_READING: Final = frozenset({"discovery", "retrieval", "analysis"})  # Categories that change nothing.
_NOT_AGAIN: Final = listed("not-again")  # words in re- that do not repeat anything
_SAVING: Final = frozenset({"save", "store"})  # A PUT that saves replaces.
_ONTO: Final = frozenset({"on", "onto", "into"})
_DOUBTFUL: Final = 0.5
_SYNONYM: Final = 0.7  # trust in a verb that means about the same as a word
_CONTRADICTED: Final = 0.45  # confidence in a verb that the summary contradicts
_SUSPECT: Final = 0.65  # confidence in one that the summary does not quite confirm
_NEAR: Final = 4  # words of a sentence among which `list` is its verb or object: "Get a list of users"
_SURELY: Final = 0.6  # highest confidence in a verb for reading that a POST does not prove


@dataclass(frozen=True, slots=True)
class VerbChoice:
    verb: str
    confidence: float
    why: str
    others: tuple[str, ...] = ()  # verbs that fit as well, the best first
    word: str = ""  # word of the description that chose the verb; empty if only the method decided
    refused: str = ""  # more reliable word that the method contradicts: `cancel` of a GET

    @property
    def says_all(self) -> bool:
        """True if the verb has the whole meaning of the word. What is sent again is sent."""
        own = (self.word, self.word.removeprefix("re"), self.word.removeprefix("un"))
        return self.verb.lower() in own[:2] or self.word in SAME_VERB or meanings().opposite(own[2], self.verb.lower())


def choose_verb(candidate: Candidate, catalog: Catalog) -> VerbChoice:
    """Choose the verb of a candidate, with a confidence and alternatives. What its words contradict is in doubt."""
    choice = _choose(candidate, catalog)
    sentence = first_sentence(candidate.summary or candidate.description)
    doubt = acts(candidate) if is_reading(choice.verb, catalog) else ""
    judged = judge(choice.verb, sentence) if sentence and not doubt else None
    if judged is not None and judged.verdict in ("violation", "warning"):
        doubt = judged.head or ""
    sure = _SUSPECT if judged is not None and judged.verdict == "warning" else _CONTRADICTED
    if not doubt or choice.confidence <= sure or choice.refused:
        return choice
    return replace(choice, confidence=sure, why=f"{choice.why}, although its words say '{doubt}'")


def _choose(candidate: Candidate, catalog: Catalog) -> VerbChoice:
    names = _acting(catalog.names)
    refused = ""
    onto = not _ONTO.isdisjoint(candidate.summary.lower().split())
    for word, source, trust in _said(candidate):
        word = "drag" if word == "drop" and onto else word  # noqa: PLW2901 - it does not remove what it drops
        given, sure = _verbs_for("set" if word in _SAVING and candidate.method != "POST" else word, names)
        # The plurals in the names of tools are often of one thing: its contents.
        listed = is_list(candidate) if candidate.method else "list" in candidate.summary.lower().split()[:_NEAR]
        if candidate.method == "POST" and word in FETCHING and is_issued(candidate):
            given = ("ISSUE", *given)
        elif listed and word in ("get", "show", "return", "read", "view"):
            given = tuple(verb for verb in (*_LISTS, *given) if verb in names)
        found = tuple(verb for verb in given if permits(candidate, verb, catalog))
        if not found and candidate.method == "DELETE" and word in words(candidate.name) and changes(word):
            # A true sentence may win over the method: "Mark a thread as done".
            given = found = ("CLEAR", "RESET", *given) if word == command_of(candidate) else ()
        if not found or found[0] != given[0]:
            if candidate.method not in READING or contradicts(candidate, word):
                refused = refused or word
            continue
        confidence = round(min(0.95, trust * sure), 2)
        doubt = ""
        if refused:
            confidence, doubt = min(confidence, 0.5), f", although '{refused}' is said too"
        elif candidate.method == "POST" and is_reading(found[0], catalog) and not only_reads(candidate, word):
            if confidence < _DOUBTFUL:  # neither that it is a verb nor that it reads
                continue
            confidence, doubt = min(confidence, _SURELY), ", which a POST does not prove"
        return VerbChoice(found[0], confidence, f"{source} says '{word}'{doubt}", found[1:], word, refused)
    method = candidate.method or ("GET" if candidate.claims_to_read and not any(change_words(candidate)) else "")
    usual = (*_LISTS, *_BY_METHOD["GET"]) if method == "GET" and is_list(candidate) else None
    found = tuple(verb for verb in usual or _BY_METHOD.get(method, ("EXECUTE",)) if verb in names)
    why = f"by {candidate.method} alone" if candidate.method else "no word names the action"
    sure = _ALONE.get(candidate.method or "", 0.7)
    if refused:
        why, sure = f"{why}: it contradicts '{refused}'", min(sure, 0.4)
    return VerbChoice(found[0], sure, why, found[1:], refused=refused)


@lru_cache(maxsize=8)
def _acting(names: frozenset[str]) -> frozenset[str]:
    """Return the verbs that ask for an action (AGIS 4.2, C.3(a)); OPEN is a state."""
    return frozenset(name for name in names - _REFUSED if action_intent(name).kind != "state")


def permits(candidate: Candidate, verb: str, catalog: Catalog) -> bool:
    """Return True if a method allows a verb: a GET never one that changes something, a DELETE never one that reads."""
    if candidate.method is None or candidate.method == "POST":
        return True
    if candidate.method in READING:
        return is_reading(verb, catalog)
    if not changes(verb) or catalog.verbs[verb].categories[0] in ("retrieval", "analysis"):
        return False
    classes = operation_classes(verb.lower())
    ends = classes is not None and max(classes.of("DELETE"), classes.of("END")) >= 0.4
    return candidate.method != "DELETE" or ends or verb in _TAKING_AWAY


def is_reading(verb: str, catalog: Catalog) -> bool:
    """Return True if a verb of the catalog changes nothing, by its class and by its categories."""
    return not changes(verb) and not _READING.isdisjoint(catalog.verbs[verb].categories)


def _said(candidate: Candidate) -> Iterator[Said]:
    """Yield the words that may be the verb. Without a method, a word for a change comes first."""
    if candidate.method is not None:
        yield from said_words(candidate)
        return
    said = list(tool_words(candidate))
    if not changes(said[0].word if said else ""):
        for word, source in change_words(candidate):
            if (word == "delete" or word not in METHODS) and source == candidate.name_kind:
                yield Said(word, source, 0.6)
    yield from said


@lru_cache(maxsize=4096)
def _verbs_for(word: str, names: frozenset[str]) -> tuple[tuple[str, ...], float]:
    """Return the catalog's verbs for a word, the best first, and how well they match."""
    if word in VERBS_FOR:
        return tuple(verb for verb in VERBS_FOR[word] if verb in names), 0.95
    capital = word.upper()
    near = fitting_verbs(f"{third_person(word)} the thing", names - _FLOOR)
    if capital in names:
        return (capital, *(verb for verb in near if verb != capital)), 1.0
    again = capital.removeprefix("RE")  # to resend is to send
    if again != capital and again in names and word not in _NOT_AGAIN:
        return (again, *(verb for verb in near if verb != again)), 0.75
    same = tuple(verb for verb in near if meanings().synonymous(word, verb.lower()))
    base = word.removeprefix("un")  # to unsuspend is to activate
    if not same and base != word and operation_classes(base) is not None:
        undoing = (verb for verb in sorted(names - _REFUSED) if meanings().opposite(base, verb.lower()))
        same = tuple(verb for verb in undoing if (fit(word, verb.lower()) or 0) >= _DOUBTFUL)
    if same:
        return same, _SYNONYM
    main = main_class(word)
    general = _GENERAL.get(main, "EXECUTE") if main else ""
    return ((general, *(verb for verb in near if verb != general)), 0.65) if general in names else (near, 0.65)


def is_list(candidate: Candidate) -> bool:
    """Return True if the answer is a collection: by its schema, its words, or a plural at the end of path or name."""
    named, text = words(candidate.name), candidate.summary.strip(" .") or first_sentence(candidate.description)
    segment = (candidate.name if candidate.path is None else candidate.path).rstrip("/").rpartition("/")[2]
    last = words(segment)[-1:]
    if "{" in segment and named[:1] == ("get",) and not any(map(is_plural, named)):
        return False  # getCountry for /countries/{key}, whatever its schema says
    if candidate.returns_list or "index" in named[:2] or _LIST_WORDS & {*named[:2], *text[:200].lower().split()}:
        return True
    # In `getDoc` for /api-docs the name says that it is one.
    if "{" in segment or not last or not is_plural(last[0]):
        return False
    return last[0] not in _OF_ONE and named[-1:] != (singular(last[0]),)


_RECORDS: Final = listed("history-records")
"""Things that are added to a history and not replaced."""
_ADDING: Final = re.compile(
    r"\b(?:add|append|creat|record|publish|post|sav|upload|start)(?:e?s|ing|e)? "
    r"(?:(?:a|an|another|one|more|new|next|further) )*(?:\w+ )?"
    rf"(?P<record>{'|'.join(sorted(_RECORDS))})s?\b"
)


def adds_record(candidate: Candidate) -> str:
    """Return why each PUT adds a record, such as another version; empty if nothing says so."""
    if candidate.method != "PUT":
        return ""
    if candidate.successes == {"201"}:
        return "each PUT is answered with 201, so it creates something"
    last = (candidate.path or "").rstrip("/").rpartition("/")[2]
    named = words(last) if "{" not in last else []
    # `/comments/{id}` names one comment, which a PUT replaces; `/comments` gets another one.
    if named and singular(named[-1]) in _RECORDS:
        return f"a PUT to '{last}' may add to a history"
    text = " ".join(words(f"{candidate.summary[:500]} {candidate.description[:500]}"))
    found = _ADDING.search(text.lower())
    return f"its text says that it adds: '{found.group()}'" if found else ""


_UNDONE_BY: Final = listed("undone-by-verbs")  # verbs that another verb of the catalog undoes
_OF_SESSIONS: Final = frozenset({"logout", "signout", "logoff"})  # Only the owner of a password can undo these.
_OVERWRITING: Final = listed("overwriting")  # verbs and words that only replace values
_UNDOING: Final = ("un", "dis", "de")  # prefixes of words for taking back: doing it again restores what was
_LEAVING: Final = listed("leaving")
"""Things that have left, or money that has moved, once they exist; deleting the record does not bring them back."""
_AGAINST: Final = {  # capabilities that contradict an impact (AGIS 6.2)
    "informational": frozenset({"transaction", "modification", "creation"}),
    "reversible": frozenset({"discovery", "retrieval"}),
    "irreversible": _READING,
}
_FINAL: Final = re.compile(  # words of a description for what cannot be undone
    r"can(?:no|')t be (?:undone|reverted|recovered)|irreversibl[ey]|permanent(?:ly)?|unrecoverabl[ey]"
    r"|(?:is|are|be) lost|overwrit(?:es?|ten|ing)",
    re.IGNORECASE,
)
_TRIED: Final = listed("tried")
"""Words that look like reading but may act: a test mail is sent, a test hook is called."""
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})
"""Methods whose effect a repetition does not add to. A GET that acts after all keeps to nothing."""


@dataclass(frozen=True, slots=True)
class ImpactGuess:
    """Impact, capability and idempotency, with the guesses behind them."""

    impact: str
    capability: str
    is_idempotent: bool
    confidence: float  # confidence of the endpoint in its outcome
    guesses: tuple[Guess, ...]


class _Impact(NamedTuple):
    """An impact with its reason, how sure it is, and what it may be instead."""

    impact: str
    why: str
    confidence: float
    otherwise: str


def guess_impact(candidate: Candidate, choice: VerbChoice, catalog: Catalog) -> ImpactGuess:
    """Guess the impact of a call, whether it may be repeated, and its capability."""
    judge = _impact if candidate.method else _impact_without_method
    impact, why, sure, other = judge(candidate, choice, catalog)
    grave = impact == "irreversible" or (impact == "informational" and not candidate.claims_to_read)
    risk: Risk = "high" if grave else "medium" if impact == "reversible" else "low"
    adding = adds_record(candidate)
    if not adding and impact != "informational":
        adding = _adds_again(candidate, choice, catalog)
    repeatable = candidate.method in _IDEMPOTENT and not adding
    idempotent = impact == "informational" or repeatable or (candidate.idempotent is True and not adding)
    outcome = 0.9 if impact == "informational" else 0.8
    said = f"{'may' if idempotent else 'may not'} be repeated"
    repeated = adding or _repetition_reason(candidate, impact)
    sure_of_it = 0.8 if candidate.method not in ("POST", None) else 0.7
    of_repeating: Risk = "medium" if idempotent and impact != "informational" else "low"
    guesses = [
        Guess("/semantic/impact", f"impact {impact}", why, sure, other, risk),
        Guess("/semantic/is_idempotent", said, repeated, sure_of_it, risk=of_repeating),
        Guess("/semantic/confidence", f"confidence {outcome}", "descriptions do not state a confidence", 0.5),
    ]
    verb = catalog.verbs[choice.verb]
    capability = next((name for name in verb.categories if name not in _AGAINST[impact]), "")
    if not capability:
        capability = "retrieval" if impact == "informational" else "transaction"
        why = f"{choice.verb} is {verb.categories[0]} in the catalog, which contradicts impact {impact}"
        guesses.append(Guess("/semantic/capability", f"capability {capability}", why, 0.5, risk="medium"))
    elif candidate.method is None:
        # AGIS C.3(d): a person classifies the capability of a tool.
        why = f"the catalog has {choice.verb} as {capability}"
        guesses.append(Guess("/semantic/capability", f"capability {capability}", why, 0.7))
    return ImpactGuess(impact, capability, idempotent, outcome, tuple(guesses))


def _adds_again(candidate: Candidate, choice: VerbChoice, catalog: Catalog) -> str:
    """Return why a hint that a call may be repeated is not believed: a second mail is not the first one."""
    pays = catalog.verbs[choice.verb].categories[0] == "transaction"
    adds = pays or main_class(choice.verb.lower()) in ("CREATE", "SEND")
    reason = f"{choice.verb} may add something each time, although its hints say else"
    return reason if candidate.idempotent and adds else ""


def _repetition_reason(candidate: Candidate, impact: str) -> str:
    if impact == "informational" and (candidate.method is None or not candidate.claims_to_read):
        return "reading can be repeated"
    if candidate.method:
        return f"{candidate.method} repeats like that in HTTP"
    return "its hints say so" if candidate.idempotent else "nothing says that it can be repeated"


def _impact_without_method(candidate: Candidate, choice: VerbChoice, catalog: Catalog) -> _Impact:
    """Guess by words and hints, which an upstream that nobody has checked gives about itself.

    A hint can confirm the words but never overrule them. A call is informational only if nothing says that it changes
    something: no word, no field, no hint. Of two that contradict each other, the worse counts.
    """
    word, source = next(change_words(candidate), ("", ""))
    sign = f"{source} says '{word}'" if word else next(iter(candidate.signs), "")
    sign = f"its field '{candidate.program}' holds a program" if candidate.program else sign
    sign = sign or (f"'{choice.word}' changes something" if changes(choice.word) and not candidate.read_only else "")
    sign = sign or (f"'{choice.word}' may act" if choice.word in _TRIED and not candidate.read_only else "")
    if candidate.destructive is not True and not sign:
        if candidate.read_only:
            return _Impact("informational", "its hints say that it only reads", 0.8, "")
        clear = choice.word and choice.word not in _TRIED and choice.confidence >= UNSURE
        reads = main_class(choice.verb.lower()) in ("READ", "ANALYZE") and not changes(choice.word)
        if candidate.read_only is None and clear and reads:
            return _Impact("informational", f"'{choice.word}' only reads", 0.6, "irreversible")
    found = _change_of(candidate, choice, catalog)
    if not candidate.read_only:
        return found
    why = f"{sign or found.why}, although its hints say that it only reads"
    return _Impact(found.impact, why, min(found.confidence, 0.4), "informational")


def _change_of(candidate: Candidate, choice: VerbChoice, catalog: Catalog) -> _Impact:
    """Guess whether a change can be undone, for a call without a method."""
    verb, word = choice.verb, choice.word
    if candidate.program:
        return _Impact("irreversible", f"its field '{candidate.program}' holds a program", 0.8, "informational")
    if candidate.destructive:
        return _Impact("irreversible", "its hints say that it is destructive", 0.8, "reversible")
    if final := _FINAL.search(candidate.description[:4_000]):
        return _Impact("irreversible", f"its description says '{final.group().lower()}'", 0.8, "reversible")
    if candidate.signs and not changes(verb):
        return _Impact("irreversible", candidate.signs[0], 0.5, "reversible")
    if undone := _undone_by_call(verb, word):
        return undone
    if verb in _OVERWRITING and (not word or word.upper() in _OVERWRITING):
        return _overwritten(candidate)
    if candidate.is_undone and _can_be_taken_back(candidate, verb, catalog):
        return _Impact("reversible", "another tool deletes or reverses it", 0.6, "irreversible")
    return _Impact("irreversible", "nothing says that it can be undone", 0.6, "reversible")


def _undone_by_call(verb: str, word: str) -> _Impact | None:
    if verb in _UNDONE_BY and word not in _OF_SESSIONS:
        return _Impact("reversible", f"another call undoes {verb}", 0.6, "irreversible")
    if word.startswith("un") and _takes_back(word):
        return _Impact("reversible", f"doing it again undoes '{word}'", 0.6, "irreversible")
    return None


def _overwritten(candidate: Candidate) -> _Impact:
    if candidate.has_readable_state:
        return _Impact("reversible", "the former state can be read and written back", 0.6, "irreversible")
    return _Impact("reversible", "the former values can be written back", 0.5, "irreversible, if nobody knows them")


def _impact(candidate: Candidate, choice: VerbChoice, catalog: Catalog) -> _Impact:
    method, verb, word = candidate.method, choice.verb, choice.word
    if candidate.claims_to_read:
        acting = acts(candidate) or choice.refused
        sign = f"its words say '{acting}'" if acting else next(iter(candidate.signs), "")
        sign = f"its field '{candidate.program}' holds a program" if candidate.program else sign
        if sign:  # what the importer itself doubts is never informational
            return _Impact("irreversible", f"{sign}, although {method} should only read", 0.4, "informational")
        return _Impact("informational", f"{method} changes nothing", 0.9, "")
    says_change = bool(candidate.program or candidate.signs)
    if method == "POST" and not says_change and is_reading(verb, catalog) and only_reads(candidate, word):
        return _Impact("informational", f"'{word}' only reads, although it is a {method}", 0.7, "irreversible")
    if undone := _undone_by_call(verb, word):
        return undone
    if method == "DELETE":
        if _takes_back(word or choice.refused):
            return _Impact("reversible", f"doing it again undoes '{word or choice.refused}'", 0.5, "irreversible")
        if candidate.is_undone:
            return _Impact("reversible", "another call of the description restores it", 0.5, "irreversible")
        return _Impact("irreversible", "deleted data is lost", 0.9, "reversible, if it can be restored")
    marked = (method, word) == ("PATCH", "mark")  # a POST that marks as lost may decide something for good
    if verb in _OVERWRITING and (not word or marked or word.upper() in _OVERWRITING) and not changes(choice.refused):
        return _overwritten(candidate)
    if candidate.is_undone and _can_be_taken_back(candidate, verb, catalog):
        return _Impact("reversible", "another call of the description deletes or corrects it", 0.6, "irreversible")
    return _Impact("irreversible", f"nothing says that a {method} can be undone", 0.6, "reversible")


def _takes_back(word: str) -> bool:
    rests = (word.removeprefix(prefix) for prefix in _UNDOING if word.startswith(prefix))
    return any(operation_classes(rest) is not None for rest in rests) and word not in NOT_UNDOING


def _can_be_taken_back(candidate: Candidate, verb: str, catalog: Catalog) -> bool:
    """Return True unless something has been sent, paid or destroyed."""
    if main_class(verb.lower()) in ("", "SEND", "DELETE") or "transaction" in catalog.verbs[verb].categories[:1]:
        return False
    literals = [words(part) for part in (candidate.path or "").split("/") if part and "{" not in part]
    return not literals or singular(literals[-1][-1] if literals[-1] else "") not in _LEAVING
