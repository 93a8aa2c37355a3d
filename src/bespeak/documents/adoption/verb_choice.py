"""The verb of a candidate, always from the catalog (AGTP-API 14.1): by its words, then by its method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.naming import is_plural, words
from bespeak.documents.adoption.path_choice import COMMANDS, bare_path
from bespeak.text.language.action_intent import action_intent
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.operation_class import CHANGING, operation_classes
from bespeak.text.language.segment import is_plain_verb
from bespeak.text.language.suggestion import fitting_verbs, third_person
from bespeak.text.language.verb_form import lemmas

_SAID: Final = {
    **dict.fromkeys(("get", "show", "view", "read", "return", "returns", "give", "display"), ("FETCH", "RETRIEVE")),
    **dict.fromkeys(("post", "add", "new", "make", "insert", "save", "store", "put"), ("CREATE", "SUBMIT")),
    **dict.fromkeys(("upload",), ("SUBMIT", "CREATE")),
    **dict.fromkeys(("delete", "destroy", "del", "drop", "erase", "clear", "discard"), ("REMOVE", "PURGE")),
    **dict.fromkeys(("patch", "edit"), ("MODIFY", "UPDATE")),
    **dict.fromkeys(("login", "signin", "logon"), ("AUTHENTICATE", "AUTHORIZE")),
    **dict.fromkeys(("logout", "signout", "logoff"), ("DISCONNECT", "TERMINATE")),
    **dict.fromkeys(("signup",), ("REGISTER", "ENROLL")),
    **dict.fromkeys(("count",), ("COUNT",)),
    **dict.fromkeys(("lookup",), ("LOOKUP", "FIND")),
    **dict.fromkeys(("does", "is", "has", "exists", "test", "can"), ("CHECK", "VERIFY")),
    **dict.fromkeys(("move",), ("TRANSFER", "CHANGE")),
    **dict.fromkeys(("copy", "clone"), ("DUPLICATE", "CREATE")),
    **dict.fromkeys(("mark", "lock", "unlock", "pin", "unpin", "toggle", "change"), ("SET", "UPDATE")),
    **dict.fromkeys(("upsert",), ("SET", "REPLACE")),
    **dict.fromkeys(("leave",), ("WITHDRAW", "REMOVE")),
    **dict.fromkeys(("star", "like", "tag", "label", "vote"), ("SET", "CREATE")),
    **dict.fromkeys(("unstar", "unlike", "untag", "unfollow"), ("UNLINK", "REMOVE")),
    **dict.fromkeys(("trigger", "do", "perform", "call"), ("EXECUTE", "RUN")),
    **dict.fromkeys(("preview",), ("RENDER", "FETCH")),
    **dict.fromkeys(("rerun",), ("RETRY", "RUN")),
}
"""Verbs for words that APIs use and the catalog lacks or understands differently."""

_BY_METHOD: Final = {
    "GET": ("FETCH", "RETRIEVE", "QUERY"),
    "HEAD": ("CHECK", "VERIFY"),
    "OPTIONS": ("DESCRIBE", "INSPECT"),
    "POST": ("CREATE", "SUBMIT", "EXECUTE"),
    "PUT": ("REPLACE", "SET", "UPDATE"),
    "PATCH": ("MODIFY", "UPDATE", "CHANGE"),
    "DELETE": ("REMOVE", "CANCEL", "PURGE"),
}
_ALONE: Final = {"DELETE": 0.8, "PATCH": 0.8, "POST": 0.4, "": 0.3}
"""Confidence in a method by itself: a POST may be anything, and without a method nothing is known."""
_LISTS: Final = ("LIST", "DISCOVER", "QUERY")
_HTTP_WORDS: Final = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})
_GENERIC: Final = frozenset({*_HTTP_WORDS, "create", "execute", "process", "handle", "run"})
"""Verbs that are less specific than a final segment such as /cancel."""
_LIST_WORDS: Final = frozenset({"list", "all", "lists", "index", "every"})
_SEVERAL: Final = frozenset({"batch", "bulk", "mass"})
"""Words before the verb that give a number: batchGet."""
_LEADING: Final = frozenset({"mark", "add", "get", "delete", "set"})
"""Words of _SAID that are the command if they begin a name of several words."""
_REFUSED: Final = frozenset({"CONNECT", "TRACE"})
"""Verbs of the catalog that AGIS 4.3 reserves for HTTP."""
_FLOOR: Final = frozenset({"PROPOSE", "DELEGATE", "ESCALATE", "CONFIRM", "SUSPEND", "PLAN"})
"""Verbs with a meaning between agents; only the exact word chooses them."""
_LIGHT: Final = frozenset({"place", "make", "do", "perform", "take"})
"""Verbs whose object names the action: placeOrder."""
_ENDINGS: Final = frozenset({"list", "create", "retrieve", "update", "destroy", "delete", "get", "search", "query"})
"""Verbs that frameworks write after the noun: orders_list."""
_MORE: Final = {
    "READ": ("FETCH", "RETRIEVE", "QUERY", "FIND", "LOOKUP", "READ", "OBTAIN", "ACCESS", "INSPECT", "EXAMINE"),
    "ANALYZE": ("CHECK", "EVALUATE", "ASSESS", "ANALYZE", "REVIEW", "EXAMINE"),
    "CREATE": ("CREATE", "SUBMIT", "REGISTER", "ESTABLISH", "PRODUCE", "ISSUE", "DEFINE", "GENERATE"),
    "UPDATE": ("UPDATE", "MODIFY", "REPLACE", "SET", "CHANGE", "EDIT", "REVISE", "ADJUST", "AMEND", "ALTER"),
    "DELETE": ("REMOVE", "PURGE", "CANCEL", "TERMINATE", "WITHDRAW"),
    "SEND": ("SEND", "NOTIFY", "PUBLISH", "MESSAGE", "REPORT"),
    "CONTROL": ("EXECUTE", "RUN", "START", "INITIATE", "PROCESS"),
}
"""Alternatives by class of operation, for a verb whose path is taken."""
_USUAL: Final = frozenset(verb for verbs in _MORE.values() for verb in verbs)


@dataclass(frozen=True, slots=True)
class VerbChoice:
    """A verb of the catalog for a candidate."""

    verb: str
    confidence: float
    why: str
    others: tuple[str, ...] = ()
    """Verbs that fit as well, the best first."""
    word: str = ""
    """Word of the description that chose the verb; empty if only the method decided."""


def choose_verb(candidate: Candidate, catalog: Catalog) -> VerbChoice:
    """Choose the verb of a candidate, with a confidence and alternatives."""
    names = catalog.names - _REFUSED
    for word, source, trust in _said(candidate):
        found, sure = _verbs_for(word, names)
        if not found or not _is_possible(word, candidate):
            continue
        if word in ("get", "show", "return", "read", "view") and is_list(candidate):
            found = tuple(verb for verb in (*_LISTS, *found) if verb in names)
        agrees = _agrees(word, candidate)
        confidence = round(min(0.95, trust * sure * (1.0 if agrees else 0.7)), 2)
        doubt = "" if agrees else f", which {candidate.method or 'its read-only hint'} does not suggest"
        return VerbChoice(found[0], confidence, f"{source} says '{word}'{doubt}", found[1:], word)
    method = candidate.method or ("GET" if candidate.claims_to_read and not any(changing_words(candidate)) else "")
    usual = (*_LISTS, *_BY_METHOD["GET"]) if method == "GET" and is_list(candidate) else None
    found = tuple(verb for verb in usual or _BY_METHOD.get(method, ("EXECUTE",)) if verb in names)
    why = f"by {candidate.method} alone" if candidate.method else "no word names the action"
    return VerbChoice(found[0], _ALONE.get(candidate.method or "", 0.7), why, found[1:])


def further_verbs(choice: VerbChoice, catalog: Catalog) -> Iterator[str]:
    """Yield other verbs for the same action, for a path that is taken."""
    seen = {choice.verb}
    classes = operation_classes(choice.verb.lower())
    for verb in (*choice.others, *(_MORE[classes.main] if classes else ())):
        if verb not in seen and verb in catalog.names:
            seen.add(verb)
            yield verb


def changes(word: str) -> bool:
    """Return True if a verb changes state."""
    classes = operation_classes(word.lower())
    return classes is not None and classes.main in CHANGING


def is_verb(word: str) -> bool:
    """Return True if a word of a name is mostly used as a verb."""
    return bool(_base(word)) and (word in _SAID or is_plain_verb(_base(word), lexicon()))


def changing_words(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yield the verbs anywhere in a candidate's words that change something, each with its place."""
    for word in words(candidate.name):
        if is_verb(word) and changes(_base(word)):
            yield _base(word), candidate.name_kind
    for text, source in ((candidate.summary, "the summary"), (candidate.description, "the description")):
        for head in head_verbs(text[:400]) if text else ():
            if head.kind in ("head", "coordinated", "meant", "nominal") and changes(head.verb):
                yield head.verb, source


def _said(candidate: Candidate) -> Iterator[tuple[str, str, float]]:
    """Yield the words that may be the verb, each with its place and confidence."""
    if candidate.method is not None:
        yield from _verb_words(candidate, candidate.method)
        return
    said = list(_verb_words(candidate, ""))
    # github_get_issue: no method is repeated in the name, so its `get` is the verb.
    said += [(word, candidate.name_kind, 0.8) for word in words(candidate.name) if word in _HTTP_WORDS]
    if not changes(said[0][0] if said else ""):
        # Only the words show whether a call changes something, so a word for a change comes first.
        yield from ((word, source, 0.6) for word, source in changing_words(candidate))
    yield from said


def _verb_words(candidate: Candidate, method: str) -> Iterator[tuple[str, str, float]]:
    parts = _without_number(words(candidate.name))
    tail = _verb_at_end(method, bare_path(candidate.path or ""))
    first = parts[0] if parts else ""
    if tail and (not first or first in _GENERIC or first == tail or not _base(first)):
        yield tail, "the end of the path", 0.9
    if first in _LIGHT and len(parts) > 1 and _base(parts[1]) == parts[1] and not is_plural(parts[1]):
        yield parts[1], candidate.name_kind, 0.85
    elif first and first != method.lower() and _is_verb_here(first, parts):
        yield _base(first), candidate.name_kind, 0.95
    summary = _summary_verb(candidate)
    if summary:
        yield summary, "the summary", 0.9
    # In pets_list, PetController_create and repos/list-for-org the verb follows the noun.
    for word in parts[1:]:
        if word not in _HTTP_WORDS and _base(word) == word and is_plain_verb(word, lexicon()):
            yield word, candidate.name_kind, 0.85
    if len(parts) > 1 and parts[-1] in _ENDINGS:
        yield parts[-1], candidate.name_kind, 0.85
    if first in _HTTP_WORDS and first == method.lower():
        yield first, candidate.name_kind, 0.95


def _without_number(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name from its verb on: `batchGetItem` and `re-run` begin with `get` and `rerun`."""
    if len(parts) > 1 and parts[0] in _SEVERAL:
        return parts[1:]
    return (f"re{parts[1]}", *parts[2:]) if len(parts) > 1 and parts[0] == "re" else parts


def _summary_verb(candidate: Candidate) -> str:
    for text in (candidate.summary, candidate.description):
        heads = head_verbs(text[:400]) if text else ()
        usable = [head for head in heads if head.kind in ("head", "meant", "nominal")]
        if usable:
            return usable[0].verb
    return ""


def _verb_at_end(method: str, path: str) -> str:
    """Return the last segment if it is a command: /orders/{id}/cancel, /jobs/{id}:run."""
    before, _, segment = path.rstrip("/").rpartition("/")
    command = ":" in segment or (method == "POST" and before.endswith("}"))
    if "{" in segment or ":" in segment:
        segment = segment.rpartition(":")[2] if not segment.endswith("}") else ""
    parts = _without_number(words(segment))
    if not parts or is_plural(parts[0]):
        return ""
    word = parts[0] if len(parts) == 1 else "".join(parts)
    if command and len(parts) > 1 and not is_plural(parts[-1]) and operation_classes(word) is None:
        # mark_uncollectible, reset-password: the first word is the command.
        return parts[0] if is_plain_verb(parts[0], lexicon()) or parts[0] in _LEADING else ""
    if word in COMMANDS and (method in ("GET", "POST") or word in _SAID):
        return word
    # A command follows a colon, and mostly also the resource of a POST, even if the word can be a noun.
    sure = command or is_plain_verb(word, lexicon())
    return word if sure and (operation_classes(word) is not None or word in _SAID) else ""


def _is_verb_here(word: str, parts: tuple[str, ...]) -> bool:
    """Return True if the first word of a name is its verb: it is in `orderPizza`, not in `orderHistory`."""
    if word in _SAID or is_plain_verb(word, lexicon()):
        return bool(_base(word))
    if len(parts) > 1 and parts[-1] in _ENDINGS:
        return False
    return bool(_base(word)) and not is_plural(word) and len(parts) > 1 and action_intent(word).kind == "action"


@lru_cache(maxsize=4096)
def _base(word: str) -> str:
    """Return the base form of a verb; empty for other words."""
    if word in _SAID or operation_classes(word) is not None:
        return word
    found = [lemma.verb for lemma in lemmas(word) if lemma.form in ("third", "gerund", "base")]
    return next((verb for verb in found if operation_classes(verb) is not None), "")


@lru_cache(maxsize=4096)
def _verbs_for(word: str, names: frozenset[str]) -> tuple[tuple[str, ...], float]:
    """Return the catalog's verbs for a word, the best first, and how well they match."""
    if word in _SAID:
        found = tuple(verb for verb in _SAID[word] if verb in names)
        return found, 0.95
    capital = word.upper()
    near = fitting_verbs(f"{third_person(word)} the thing", names - _FLOOR)
    if capital in names:
        return (capital, *(verb for verb in near if verb != capital and verb in _USUAL)), 1.0
    return near[:1] + tuple(verb for verb in near[1:] if verb in _USUAL), 0.75


def _is_possible(word: str, candidate: Candidate) -> bool:
    """Return True if a word can be the verb: for a GET, two places must say that it changes something."""
    if candidate.claims_to_read and word == "invoke":
        return False  # `Invoke function delta` means reading in OData
    if not candidate.claims_to_read or candidate.method is None or not changes(word) or word in _SAID:
        return True
    summary = _summary_verb(candidate)
    return changes(summary) if summary else is_plain_verb(word, lexicon())


def _agrees(word: str, candidate: Candidate) -> bool:
    if candidate.claims_to_read:
        return not changes(word) or word == "count"
    if candidate.method == "DELETE":
        classes = operation_classes(word)
        return classes is not None and (classes.of("DELETE") >= 0.4 or word in ("delete", "remove"))
    return candidate.method in ("POST", None) or changes(word)


def is_list(candidate: Candidate) -> bool:
    """Return True if the answer is a collection: by its schema, its words, or a plural at the end of path or name."""
    if candidate.returns_list:
        return True
    said = {*words(candidate.name), *words(candidate.summary[:200])}
    segment = (candidate.name if candidate.path is None else candidate.path).rstrip("/").rpartition("/")[2]
    last = words(segment)
    return bool(said & _LIST_WORDS) or ("{" not in segment and bool(last) and is_plural(last[-1]))
