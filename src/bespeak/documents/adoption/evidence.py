"""Evidence of what a call does: the sentences and fields of an upstream that say it changes, reads or undoes something.

Without evidence that a POST only reads, it counts as a change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from bespeak.contract.endpoint import DeclaredError
from bespeak.contract.handler import UPSTREAM_ERRORS
from bespeak.documents.adoption.facade import READING, Candidate, Guess
from bespeak.documents.adoption.sanitizer import first_sentence, plain_text
from bespeak.documents.adoption.verb_words import (
    EMPTY,
    READING_COMMANDS,
    SURE,
    base,
    changing_words,
    command_of,
    is_plain,
    is_verbal,
    name_verb,
    path_verb,
    said_words,
)
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.lexicon import meanings
from bespeak.text.language.names import SPOKEN, changes, is_plural, main_class, singular, words
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.sentence import listed, word_pairs, word_set
from bespeak.text.language.verb_form import lemmas

STRONG: Final = listed("surely-changing")  # in any form, even where a noun is the subject: "the key is regenerated"
_PLAIN: Final = STRONG | listed("plainly-changing")
"""Verbs that a GET does not say of itself if it only reads."""
EFFECTS: Final = _PLAIN | listed("effects-of-calls")
"""Verbs by which a sentence about the call itself says that it does more than answer."""
_OF_FIELDS: Final = STRONG | listed("changing-in-fields")
"""Verbs that are hardly ever nouns in the text of a field."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+|(?<=;)\s")
_MARK: Final = re.compile(r"^(?:[\W_]+|\d{1,2}[.)]\s+)+")  # Before a line: a bullet, a number, an emoji, a heading.
_LABEL: Final = re.compile(r"^[A-Z][\w ]{0,24}(?::\s+|\s+\|\s+)(?=\S)")  # Before a sentence: `Purpose: `, `Notion | `
_SUBJECT: Final = re.compile(  # words before a verb whose subject is the call
    r"(?:also|it|this|the|an?|and|then|will|can|may|might|both|automatically|immediately|calling|running|using|invoking"
    r"|tool|call|endpoint|operation|method|request|function|action|command|server|which|api|resource|service"
    r"|permanently|\w+ly|\W)+",
    re.IGNORECASE,
)
_PASSIVE: Final = re.compile(
    r"(?<!can )(?<!could )(?<!may )(?<!must )(?<!should )(?<!to )\b(?:is|are|will be|gets|get|be)\s+(?:(?:also|then"
    r"|automatically|immediately|permanently|first|now|re)\s+)*(\w+)\b",
    re.IGNORECASE,
)
_NEW: Final = re.compile(r"\b(?:a|an|another)? ?new\b", re.IGNORECASE)
_MADE: Final = listed("making-new")
_ITSELF: Final = re.compile(  # the end of an endpoint, not what it does: "This method will be removed"
    r"\b(?:this|these) (?:\w+ )?(?:endpoints?|methods?|operations?|apis?|parameters?|fields?|features?|property"
    r"|properties|values?|versions?|functionality|resource|tool) (?:is|are|will be) (?:\w+ (?:and )?){0,4}?"
    r"(?:deprecat|remov|replac|renam|mov|disabl|delet|suspend)"
    r"|\b(?:deprecated|sunset|(?:future|next|later|this) (?:major )?(?:version|release))\b",
    re.IGNORECASE,
)
_OTHERWISE: Final = re.compile(  # words of a sentence about another time, another actor, a condition or nothing at all
    r"\b(?:by (?!this|the call|default)|every|daily|nightly|hourly|weekly|periodically|regularly|previously|currently"
    r"|will soon|already|not|never|cannot|n't|only (?:if|when)|until|unless"
    r"|(?:when|once|after|if|whether|which|that|who|where|before|during|because) (?!this|true|set|called|calling"
    r"|reading|the (?:call|request|endpoint)|you call|enabled|specified|it))\b",
    re.IGNORECASE,
)
_PURPOSE: Final = re.compile(
    r"\b(?:to|whether to|if true,?|will|and then|then|also)\s+(?:\w+ly )?(\w+)\b", re.IGNORECASE
)
_ASKED_FOR: Final = re.compile(r"\b(?:query|queries|search|filter|expression to match|select)\b", re.IGNORECASE)
_TOLD: Final = re.compile(  # signs that a command is addressed to the caller, or is about another tool
    r"\b(?:use|call|see|you|first|before|instead|must|should|please|avoid|note|via|with)\b|\w_\w|`", re.IGNORECASE
)


class Deed(NamedTuple):
    """A verb that changes something, and the words around it."""

    verb: str
    words: str


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text without bullets, numbers and labels before them."""
    for count, line in enumerate(_SENTENCE.split(text[:4_000])):
        bare = _LABEL.sub("", _MARK.sub("", line.strip())).strip()
        if count > 60:
            return
        if bare and not bare.endswith(":"):
            yield bare


def deeds(text: str, *, broad: bool) -> Iterator[Deed]:
    """Yield what a text says that the call does.

    `broad` counts what an honest GET also says, such as "is stored", and commands: "Write the result to the disk".
    """
    for sentence in sentences(text):
        deed = _active(sentence, broad=broad, commands=broad) or _passive(sentence, broad=broad)
        if deed is not None:
            yield deed


def field_deeds(text: str) -> Iterator[Deed]:
    """Yield what the text of a field says that the call does: "Whether to delete the file afterwards"."""
    for sentence in sentences(text):
        deed = _active(sentence, broad=False) or _passive(sentence, broad=False, conditional=True)
        deed = deed if deed is not None and deed.verb in _OF_FIELDS else None
        for found in _PURPOSE.finditer(sentence) if deed is None and not _ASKED_FOR.search(sentence) else ():
            verb = found[1].lower()
            if verb in _OF_FIELDS:
                deed = Deed(verb, found[0])
                break
        if deed is not None:
            yield deed


def _active(sentence: str, *, broad: bool, commands: bool = False) -> Deed | None:
    """Return the verb of "Saves the file" and "This tool also deletes it"; with `commands`, of "Delete it" too."""
    heads = head_verbs(sentence)
    runs = any(head.verb in _LAUNCHING for head in heads if head.kind == "light")
    for head in heads:
        if head.kind not in ("head", "coordinated", "meant") or head.verb not in (EFFECTS if broad else _PLAIN):
            continue
        if head.kind == "meant":  # "Runs the migration"
            if commands and runs and not _TOLD.search(sentence):
                return Deed(head.verb, _shown(sentence))
            continue
        word, before = sentence[head.start : head.end], sentence[: head.start]
        forms = {lemma.form for lemma in lemmas(word.lower())}
        subject = not before or _SUBJECT.fullmatch(before) is not None or head.kind == "coordinated"
        if "third" in forms and subject and not _NEGATED.search(before) and not sentence[head.end :].startswith(" of "):
            return Deed(head.verb, _shown(sentence[head.start :]))
        if "base" in forms and _MODAL.search(before) and subject:
            return Deed(head.verb, _shown(sentence[head.start :]))
        if commands and "base" in forms and not before and head.verb in _OF_FIELDS and not _TOLD.search(sentence):
            return Deed(head.verb, _shown(sentence))
    return None


_MODAL: Final = re.compile(r"\b(?:will|can|may|might)\b", re.IGNORECASE)
_NEGATED: Final = re.compile(r"\b(?:not|never|n't)\b", re.IGNORECASE)


def _passive(sentence: str, *, broad: bool, conditional: bool = False) -> Deed | None:
    """Return the verb of "The key is regenerated" and "a new session is created".

    `conditional` means the text of a field, which says when: "If true, the file is deleted after reading".
    """
    if _ITSELF.search(sentence) or (_NEGATED if conditional else _OTHERWISE).search(sentence):
        return None
    for found in _PASSIVE.finditer(sentence):
        participles = [lemma.verb for lemma in lemmas(found[1].lower()) if lemma.form != "third"]
        made = any(verb in _MADE for verb in participles) and _NEW.search(sentence[: found.start()]) is not None
        verb = next((verb for verb in participles if verb in STRONG or made or (broad and verb in EFFECTS)), "")
        if verb:
            return Deed(verb, _shown(found[0]))
    return None


def _shown(words: str) -> str:
    return " ".join(words.split()[:3]).rstrip(".,;:")


CHOOSING: Final = frozenset({"action", "operation", "command", "subcommand", "method", "verb", "op", "task", "cmd"})
"""Fields whose value says what is done."""
_PROGRAMS: Final = listed("program-fields")  # fields that hold a program, which may do anything
_LANGUAGES: Final = word_set("sql js javascript python shell source bash node lua ruby php")
_IDENTIFYING: Final = frozenset({"code", "function", "statement", "formula", "macro", "program"})
"""Names that are also those of a value: a country code, a bank statement. In a GET they are."""
_DESCRIBED: Final = re.compile(
    r"\b(?:code|scripts?|commands?|programs?|expressions?|snippets?|statements?|functions?) "
    r"(?:that is |which is |to be |to )(?:run|executed?|evaluated?|eval)\b"
    r"|\b(?:javascript|python|shell|bash|sql|cypher|graphql|powershell|groovy|lua|typescript) (?:code|expressions?"
    r"|functions?|commands?|scripts?|quer(?:y|ies)|statements?|snippets?|source)\b"
    r"|\b(?:quer(?:y|ies)|statements?) in (?:sql|cypher|graphql)\b",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(  # words that make a field of such a name an ordinary value: `cron expression`
    r"\b(?:country|currency|language|postal|zip|status|error|product|discount|promo|coupon|airport|station|area"
    r"|verification|iso|invite|invitation|authorization|auth|locale|region|state|security|confirmation|access|booking"
    r"|tracking|stock|ticker|iata|icao|voucher|reference|one-time|short|cron|regular|regex|bank|account|glob|response"
    r"|exit|room|gift|department|unit|item|article)\b",
    re.IGNORECASE,
)
_PERFORMED: Final = re.compile(r"\bto (?:be )?(?:perform|take|execute|run|apply|do|carry)", re.IGNORECASE)
_READ_ONLY: Final = re.compile(r"\bread[- ]?only\b", re.IGNORECASE)
_QUERIES: Final = frozenset({"sql", "query", "statement"})
_MOST_FIELDS: Final = 200
_SEEN_FIELDS: Final = 2_000


def change_signs(fields: Mapping[str, Any], *, reads: bool) -> Iterator[str]:
    """Yield why the fields of an input say that a call changes something.

    `reads` means a GET, whose fields mostly filter: there only a text says what a field with an action does.
    """
    for member, schema in list(fields.items())[:_MOST_FIELDS]:
        part = schema if isinstance(schema, Mapping) else {}
        named, said, values = words(member), str(part.get("description") or "")[:_SEEN_FIELDS], part.get("enum")
        if named and named[-1] in CHOOSING and isinstance(values, list) and (not reads or _PERFORMED.search(said)):
            for value in values[:50]:
                first = next(iter(words(value)), "") if isinstance(value, str) else ""
                if first and not is_plural(first) and changes(base(first) or first):
                    yield f"its field '{member[:60]}' may be '{value[:60]}'"
            continue
        for deed in field_deeds(said) if not reads else ():
            yield f"its field '{member[:60]}' says '{deed.words}'"
            break


def program_field(fields: Mapping[str, Any], description: str, *, reads: bool, read_only: bool = False) -> str:
    """Return the field that holds a program, which may do anything; empty if there is none.

    Only a statement of a query language can be believed to read, if the text and the hint say so.
    """
    for member, schema in list(fields.items())[:_MOST_FIELDS]:
        if not _holds_program(words(member), schema if isinstance(schema, Mapping) else {}, reads=reads):
            continue
        believed = read_only and not _QUERIES.isdisjoint(words(member)[-1:])
        if not (believed and _READ_ONLY.search(description[:_SEEN_FIELDS])):
            return member[:60]
    return ""


def _holds_program(named: Sequence[str], schema: Mapping[str, Any], *, reads: bool) -> bool:
    """Return True for `sql`, `code`, `python_code` and a described program, but not for `language_code`."""
    said = f"{schema.get('title') or ''} {schema.get('description') or ''}"[:_SEEN_FIELDS]
    kind, values = schema.get("type", "string"), schema.get("enum")
    if isinstance(values, list) or kind in ("integer", "number", "boolean"):
        return False
    media = schema.get("contentMediaType")
    if _DESCRIBED.search(said) or (isinstance(media, str) and re.search(r"javascript|python|x-sh|sql", media)):
        return True
    if not named or named[-1] not in _PROGRAMS or (len(named) > 1 and named[0] not in _LANGUAGES):
        return False
    return not _VALUE.search(said) and not (reads and named[-1] in _IDENTIFYING)


FETCHING: Final = listed("fetching")
_NEW_ONE: Final = re.compile(r"\w+ (?:an?|one|next|new) ", re.IGNORECASE)
_ISSUED: Final = listed("issued-when-fetched")
"""Things that are made when somebody gets them: POST /oauth/token with `getToken`."""
_IN_A_NAME: Final = READING_COMMANDS | FETCHING | {"lookup", "describe", "check", "is", "has", "does", "can"}
"""Words that mean reading as the verb of a name. As a command they may act: /repos/{id}/fetch, /todos/{id}/check."""
_READ_EVIDENCE_MADE: Final = frozenset({"201", "202", "204"})
"""Statuses of an answer to something that was created, begun or done (RFC 9110 15.3)."""
_LAUNCHING: Final = listed("launching")
"""First words of a sentence about work that is begun: `Trigger the verification of an account`."""
_PRODUCING: Final = listed("producing-answers")
"""Verbs for making the answer itself: a GET that renders a page changes nothing."""
_ISSUING: Final = listed("issuing")
_MADE_FOR_GOOD: Final = _ISSUED | {"key", "keys", "apikey", "password", "passwords", "certificate", "pin", "keypair"}
"""Things that stay valid when they are made: GET /key/generate."""
_STATING: Final = listed("stating")
"""Verbs about what there is."""
_CHOSEN: Final = frozenset({*((word,) for word in CHOOSING), ("action", "type"), ("action", "name")})
"""Words of a path parameter that says what is done."""


def only_reads(candidate: Candidate, word: str) -> bool:
    """Return True if a word in the place of the verb means reading, and nothing speaks against it."""
    named, tail = name_verb(candidate), path_verb(candidate)
    # A sentence may say it too, but not of a thing that may be new (Get a quote), nor where the path says it of one
    # thing: /repos/{id}/fetch acts.
    told = named is None and command_of(candidate) == word and _NEW_ONE.match(candidate.summary) is None
    told = told and ("{" not in candidate.bare_path or tail is None or tail.word != word)
    if word not in (_IN_A_NAME if told or (named is not None and named.word == word) else READING_COMMANDS):
        return False
    if word in FETCHING and is_issued(candidate):
        return False
    begun = (text.partition(" ")[0].lower() for text in (candidate.summary, candidate.description))
    if not _LAUNCHING.isdisjoint(base(word) for word in begun):
        return False
    made = candidate.starts_job or not candidate.successes.isdisjoint(_READ_EVIDENCE_MADE)
    return not made and not any(changing_words(candidate))


def is_issued(candidate: Candidate) -> bool:
    """Return True if a candidate is about something that is made when somebody gets it, such as a token."""
    return not _ISSUED.isdisjoint(map(singular, words(f"{candidate.name} {candidate.path}")))


def contradicts(candidate: Candidate, word: str) -> bool:
    """Return True if a word says that a call changes something, although its method should only read.

    A word that is mostly a noun does not, unless it stands where only commands stand: `train` in `Next Trains`.
    """
    is_action = is_plain(word) or (word in SPOKEN and is_verbal(word)) or word == command_of(candidate)
    return is_action and changes(word) and word not in _STATING | EMPTY and _is_deed(candidate, word)


def acts(candidate: Candidate) -> str:
    """Return the verb by which a call that should only read does more: `cancel` in GET /orders/{id}/cancel."""
    if candidate.method not in READING:
        return ""
    found = [one for one in (name_verb(candidate), path_verb(candidate)) if one is not None and one.trust >= SURE]
    acting = [
        one.word for one in found if one.word not in EMPTY and changes(one.word) and _is_deed(candidate, one.word)
    ]
    if acting and found[0].word == acting[0]:
        return acting[0]
    last = words(candidate.bare_path.rpartition("/")[2])
    if last[:1] and last[0] in _ISSUING and not _ISSUED.isdisjoint(last[1:]):
        return last[0]  # GET /request-token
    for before, segment in pairwise((candidate.path or "").split("/")):
        # A parameter says what is done: /pods/{id}/{action}, but not /actions/{action}.
        named = words(segment[1:-1]) if segment[:1] == "{" else ()
        if named[:2] in _CHOSEN and singular(before) != named[0]:
            return "control"
    told = command_of(candidate)
    if told and contradicts(candidate, told):
        return told
    for said in said_words(candidate):
        if contradicts(candidate, said.word):
            return said.word
        if said.trust >= SURE and not changes(said.word):
            break
    said_later = (deed.verb for text in (candidate.summary, candidate.description) for deed in deeds(text, broad=False))
    return next((verb for verb in said_later if _is_deed(candidate, verb)), "")


def _is_deed(candidate: Candidate, verb: str) -> bool:
    """Return False for a verb that only makes the answer itself."""
    about = words(f"{candidate.name} {candidate.path} {candidate.summary[:200]}")
    return verb not in _PRODUCING or not _MADE_FOR_GOOD.isdisjoint(about)


def takes_back(one: str, other: str) -> bool:
    """Return True if one verb restores what was before the other. What is made anew is not what has ended."""
    classes = operation_classes(one)
    remade = main_class(one) == "CREATE" and classes is not None and classes.of("BEGIN") == 0
    return not remade and meanings().opposite(one, other)


_NAMES: Final = word_pairs(
    "400=invalid_input 401=not_authenticated 402=payment_required 403=not_permitted 404=not_found "
    "406=format_not_offered 408=took_too_long 409=conflict 410=gone 412=precondition_failed 413=too_large "
    "415=format_not_supported 422=invalid_values 423=locked 424=dependency_failed 428=precondition_required "
    "429=rate_limited 451=legally_withheld 501=not_supported 503=temporarily_unavailable"
)
_TEXTS: Final = {
    "invalid_input": "The upstream does not accept the input.",
    "not_found": "The requested resource does not exist.",
    "conflict": "The request conflicts with the current state.",
    "invalid_values": "A value of the input is not valid.",
    "rate_limited": "Too many calls; try again later.",
    "upstream_timeout": "The upstream did not answer in time.",
    "upstream_connection_error": "The upstream could not be reached.",
    "upstream_malformed_response": "The answer of the upstream could not be read.",
    "upstream_authentication_failed": "The upstream refused this server.",
    "upstream_error": "The upstream failed.",
}
_OWN_TO_SERVER: Final = ("401", "403")  # They concern this server's credential, if one is sent, not the caller's input.
_RANGE: Final = {"4": ("400", "404", "409", "422", "429"), "5": ("503",)}
_GENERIC: Final = listed("failures-of-any-kind")
_ANY_FAILURE: Final = _GENERIC | {"request", "server", "internal", "http", "client", "api"}
"""Words of names that fit any failure: `bad_request`, `unexpected_error`."""
_SILENT: Final = frozenset({"a", "an", "the", "is", "was", "are", "be", "of", "or", "and", "to", "for", "this", "that"})
_MOST_WORDS: Final = 4
_AT: Final = "/handler/error_map"


@dataclass(slots=True)
class ErrorShape:
    errors: tuple[DeclaredError, ...] = ()
    error_map: dict[str, str] = field(default_factory=dict)
    guesses: list[Guess] = field(default_factory=list)


def shape_errors(candidate: Candidate, *, has_credential: bool) -> ErrorShape:
    """Name the errors of a candidate. If this server sends a credential, 401 and 403 concern that credential."""
    documented = {status.upper(): text for status, text in candidate.failures.items()}
    shape = ErrorShape()
    described: dict[str, str] = {}
    for status, text in sorted(documented.items()):
        if len(status) == 3 and status.isdigit() and _is_named(status, has_credential=has_credential):
            name = _name(status, text)
            shape.error_map[status] = name
            described.setdefault(name, first_sentence(text, 200) or _TEXTS.get(name, ""))
            if fault := plain_text(text).fault:
                why = f"the upstream's text about {status} holds {fault}"
                shape.guesses.append(Guess("/errors", "left out", why, 0.3, risk="high"))
    added = [status for status in _assumed(candidate, documented) if status not in documented]
    for status in added:
        shape.error_map[status] = _NAMES[status]
        described.setdefault(_NAMES[status], _TEXTS.get(_NAMES[status], ""))
    if added:
        names = ", ".join(f"{status} {_NAMES[status]}" for status in sorted(added))
        why = "the description gives a range" if any("X" in status for status in documented) else "none is documented"
        shape.guesses.append(Guess(_AT, names, why, 0.6, "the upstream's actual answers"))
    if not has_credential and any(status in shape.error_map for status in _OWN_TO_SERVER):
        why = "no credential is sent, so 401 and 403 are the upstream's own answer to the caller"
        shape.guesses.append(Guess(_AT, "401 and 403 are named", why, 0.7, "upstream_authentication_failed"))
    shape.error_map = dict(sorted(shape.error_map.items()))
    described.update({name: _TEXTS[name] for name in UPSTREAM_ERRORS})
    shape.errors = tuple(DeclaredError(name, text) for name, text in described.items())
    return shape


def _is_named(status: str, *, has_credential: bool) -> bool:
    if status in _OWN_TO_SERVER:
        return not has_credential
    # Other 5xx statuses are upstream_error without a mapping.
    return not status.startswith("5") or status in ("501", "503")


def _assumed(candidate: Candidate, documented: dict[str, str]) -> tuple[str, ...]:
    """Return undocumented statuses to map: those of a documented range, or the usual ones if nothing is documented."""
    if candidate.method is None:
        return ()
    ranged = tuple(status for first in "45" if f"{first}XX" in documented for status in _RANGE[first])
    if ranged or any(status.isdigit() and _is_named(status, has_credential=True) for status in documented):
        return ranged
    missing = ("404",) if "{" in (candidate.path or "") else ()
    conflict = ("409",) if candidate.method in ("POST", "PUT", "PATCH") else ()
    return ("400", *missing, *conflict, "429")


def _name(status: str, text: str) -> str:
    """Derive a name from a short description, else from the status."""
    sentence = first_sentence(text, 120)
    parts = [word for word in words(sentence) if word not in _SILENT] if sentence.isascii() else []
    name = "_".join(parts)
    usable = 2 <= len(parts) <= _MOST_WORDS and len(name) <= 40 and name[0].isalpha()
    usable = usable and "".join(parts) not in _GENERIC and not any(part.isdigit() for part in parts)
    if usable and name not in UPSTREAM_ERRORS and not _ANY_FAILURE.issuperset(parts):
        return name
    return _NAMES.get(status, f"refused_with_{status}")
