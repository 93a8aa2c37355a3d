"""The verb of a candidate, always from the catalog (AGTP-API 14.1): by its words, then by its method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.documents.adoption.evidence import contradicts, only_reads
from bespeak.documents.adoption.facade import READING, Candidate
from bespeak.documents.adoption.naming import is_plural, main_class, words
from bespeak.documents.adoption.verb_words import METHODS, Said, change_words, changes, said_words, tool_words
from bespeak.text.language.consistency import fitting_verbs, third_person
from bespeak.text.language.lexicon import meanings
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.sentence import word_lists, word_pairs, word_set
from bespeak.text.language.verb_form import action_intent

_SINGLY: Final = word_lists(
    "upload=SUBMIT,CREATE signup=REGISTER,ENROLL count=COUNT lookup=LOOKUP,FIND move=TRANSFER,CHANGE "
    "upsert=SET,REPLACE leave=WITHDRAW,REMOVE preview=FETCH,RENDER write=SUBMIT,SET trash=REMOVE,ARCHIVE "
    "rerun=RETRY,RUN dryrun=SIMULATE,EVALUATE associate=LINK,ATTACH finalize=COMMIT,CLOSE kill=TERMINATE,STOP "
    "lint=VALIDATE,EVALUATE kick=REMOVE,EVICT empty=CLEAR,PURGE reverse=REVERT,UNDO assume=ACQUIRE,OBTAIN "
    "trust=AUTHORIZE,APPROVE screenshot=CAPTURE,SNAPSHOT explain=DESCRIBE,INTERPRET push=SUBMIT,SEND "
    "apply=SET,DEPLOY wait=AWAIT reconnect=RESTART,REFRESH geocode=RESOLVE,LOCATE open=OPEN,ACCESS,START "
    "diff=COMPARE,FETCH"
)
_SPOKEN: Final = {  # words that APIs use and the catalog lacks or understands differently, by the verbs for them
    "FETCH RETRIEVE": "get show view read return returns give display",
    "CREATE SUBMIT": "post add new make insert save store put",
    "REMOVE PURGE": "delete destroy del drop erase clear discard",
    "MODIFY UPDATE": "patch edit",
    "AUTHENTICATE AUTHORIZE": "login signin logon",
    "DISCONNECT TERMINATE": "logout signout logoff",
    "CHECK VERIFY": "does is has exists test can",
    "DUPLICATE CREATE": "copy clone",
    "SET UPDATE": "mark lock pin toggle",
    "CLEAR REMOVE": "unlock unpin",
    "SET CREATE": "star like tag label vote favorite",
    "UNLINK REMOVE": "unstar unlike untag unfollow",
    "EXECUTE RUN": "trigger do perform call click press tap hover drag scroll swipe navigate goto play select exec",
    "UNLINK DETACH": "dissociate disassociate",
    "BLOCK SUSPEND": "ban freeze",
    "CLOSE REJECT": "dismiss complete finish",
    "INSERT SET": "type fill",
}
_SAID: Final = {
    **{word: tuple(verbs.split()) for verbs, spoken in _SPOKEN.items() for word in spoken.split()},
    **_SINGLY,
}
_BY_METHOD: Final = word_lists(
    "GET=FETCH,RETRIEVE,QUERY HEAD=CHECK,VERIFY OPTIONS=DESCRIBE,INSPECT POST=CREATE,SUBMIT,EXECUTE "
    "PUT=REPLACE,SET,UPDATE PATCH=MODIFY,UPDATE,CHANGE DELETE=REMOVE,CANCEL,PURGE"
)
_TAKING_AWAY: Final = frozenset({"ARCHIVE", "RESET", "CLOSE", "REVERT", "UNDO", "CLEAR", "UNASSIGN", "EXPIRE"})
"""Verbs of a DELETE that are not of the class for removing."""
_ENDING: Final = 0.4
_GENERAL: Final = word_pairs("READ=FETCH ANALYZE=EVALUATE CREATE=CREATE UPDATE=UPDATE DELETE=REMOVE SEND=SEND")
"""Verbs for words of a class that the catalog has no synonym of; the path keeps the word."""
_ALONE: Final = {"DELETE": 0.8, "PATCH": 0.8, "POST": 0.4, "": 0.3}
"""Confidence in a method by itself: a POST may be anything, and without a method nothing is known."""
_LISTS: Final = ("LIST", "DISCOVER", "QUERY")
_LIST_WORDS: Final = frozenset({"list", "all", "index", "every"})
_REFUSED: Final = frozenset({"CONNECT", "TRACE"})  # verbs of the catalog that AGIS 4.3 reserves for HTTP
_FLOOR: Final = frozenset({"PROPOSE", "DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "PLAN"})
"""Verbs with a meaning between agents; only the exact word chooses them."""
_READING: Final = frozenset({"discovery", "retrieval", "analysis"})  # Categories that change nothing.
_SAME: Final = word_set(  # The verb of _SAID keeps their meaning. Of others something is lost, so they stay in the path
    "get show view read return give display add new make insert upload delete destroy del drop erase clear discard "
    "patch edit count lookup login signin logon logout signout logoff signup copy clone rerun exists move associate "
    "dissociate disassociate ban unban kill empty dismiss"
)
_NOT_AGAIN: Final = frozenset({"release", "research", "resign", "resort"})  # words in re- that do not repeat anything
_DOUBTFUL: Final = 0.5
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
        return self.verb.lower() in own[:2] or self.word in _SAME or meanings().opposite(own[2], self.verb.lower())


def choose_verb(candidate: Candidate, catalog: Catalog) -> VerbChoice:
    """Choose the verb of a candidate, with a confidence and alternatives. The method is never contradicted."""
    # AGIS C.3(a): the verb of a tool is of the class that asks for an action.
    names = catalog.names - _REFUSED if candidate.method else _acting(catalog.names)
    refused = ""
    for word, source, trust in _said(candidate):
        given, sure = _verbs_for(word, names)
        # The plurals in the names of tools are often of one thing: its contents.
        listed = is_list(candidate) if candidate.method else "list" in candidate.summary.lower().split()[:_NEAR]
        if listed and word in ("get", "show", "return", "read", "view"):
            given = tuple(verb for verb in (*_LISTS, *given) if verb in names)
        found = tuple(verb for verb in given if permits(candidate, verb, catalog))
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
    ends = classes is not None and max(classes.of("DELETE"), classes.of("END")) >= _ENDING
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
            if word not in METHODS and source == candidate.name_kind:
                yield Said(word, source, 0.6)
    yield from said


@lru_cache(maxsize=4096)
def _verbs_for(word: str, names: frozenset[str]) -> tuple[tuple[str, ...], float]:
    """Return the catalog's verbs for a word, the best first, and how well they match."""
    if word in _SAID:
        return tuple(verb for verb in _SAID[word] if verb in names), 0.95
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
        same = tuple(verb for verb in sorted(names - _REFUSED) if meanings().opposite(base, verb.lower()))
    if same:
        return same, 0.75
    main = main_class(word)
    general = _GENERAL.get(main, "EXECUTE") if main else ""
    return ((general, *(verb for verb in near if verb != general)), 0.65) if general in names else (near, 0.65)


def is_list(candidate: Candidate) -> bool:
    """Return True if the answer is a collection: by its schema, its words, or a plural at the end of path or name."""
    if candidate.returns_list:
        return True
    said = {*words(candidate.name)[:2], *candidate.summary[:200].lower().split()}
    segment = (candidate.name if candidate.path is None else candidate.path).rstrip("/").rpartition("/")[2]
    last = words(segment)
    return bool(said & _LIST_WORDS) or ("{" not in segment and bool(last) and is_plural(last[-1]))
