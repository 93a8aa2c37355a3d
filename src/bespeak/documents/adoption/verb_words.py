"""The words that may name the action of a candidate: in its name, in its path, in its prose.

The first word of a name is its verb if that is an action (AGIS C.3(a)). A word that is a noun as well needs the
support of the prose: `git_log` with "Shows the logs" is not about logging.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.documents.adoption.facade import Candidate
from bespeak.text.language.head_verb import HeadVerb, head_verbs
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.names import (
    COMMANDS,
    ENDINGS,
    LIGHT,
    METHODS,
    SPOKEN,
    changes,
    is_plural,
    main_class,
    singular,
    without_manner,
    words,
)
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.phrases import DETERMINERS
from bespeak.text.language.segment import is_plain_verb, judge_segment
from bespeak.text.language.sentence import listed, word_set
from bespeak.text.language.verb_form import action_intent, lemmas, two_word_verb

_SAYING: Final = word_set("get delete patch")  # methods that name the action; POST and PUT may mean anything
_GENERIC: Final = METHODS | listed("generic-commands")
"""Verbs that are less specific than a final segment such as /cancel."""
_LEADING: Final = listed("leading-commands")
"""Words that are the command if they begin a segment of several words."""
_SWITCHING: Final = listed("switching")  # commands that are also nouns
EMPTY: Final = frozenset({"invoke", "call", "use"})  # verbs of prose that say nothing: `Invoke action move`
_SAYING_LITTLE: Final = EMPTY | {"perform", "do", "make"}  # Their object says what happens: `Perform a search`.
_LITTLE_CHANGE: Final = _SAYING_LITTLE | {"request", "ping"}  # They are said of calls that only read too.
READING_COMMANDS: Final = listed("reading-commands")
"""Words that mean reading even as a command on one thing, and in prose: /orders/{id}/preview."""
SURE: Final = 0.85  # trust in a word that is hardly ever a noun in its place
_SEPARATOR: Final = re.compile(r"[^A-Za-z0-9-]+")
_LONGEST: Final = 400
_FAR: Final = 24  # characters after a verb among which its determiner stands
_KNOWN: Final = 0.9  # reliability of the classes of a verb that a list or its prefix names
_PARTICLES: Final = [["up"], ["out"], ["off"], ["down"]]
_TAG: Final = re.compile(r"</?[a-z][^<>]{0,40}>", re.IGNORECASE)


class Said(NamedTuple):
    """A word that may be the verb."""

    word: str
    source: str
    trust: float


def said_words(candidate: Candidate) -> Iterator[Said]:
    """Yield the words that may be the verb, the most reliable first."""
    method = (candidate.method or "").lower()
    named, tail, heads = name_verb(candidate), path_verb(candidate) or _opening_verb(candidate), _prose_verbs(candidate)
    name, end = named.word if named else "", tail.word if tail else ""
    told = command_of(candidate)
    acts_on_one = candidate.bare_path.rstrip("/").rpartition("/")[0].endswith("}")  # /orders/{id}/cancel
    if tail and candidate.claims_to_read and told and not changes(told) and changes(end) and not acts_on_one:
        tail = None  # /commands/send with "Fetch the commands"
    if tail and (name in ("", end) or name in _GENERIC) and (tail.trust >= SURE or end in (name, *heads)):
        yield tail._replace(trust=0.9)
    if named and name == method and method in _SAYING:
        text = (candidate.summary or candidate.description).lower()
        if name == "get" and text.startswith(tuple(READING_COMMANDS.intersection(heads[:1]))):
            yield Said(heads[0], "the summary", 0.9)  # getSetlists with "Search for setlists"
        yield named
    elif named and name != method and (named.trust >= SURE or name in (end, *heads)):
        yield named._replace(trust=max(named.trust, 0.9))
    yield from (Said(word, "the summary" if candidate.summary else "the description", 0.9) for word in heads)
    # A word that is a noun as well, and that no other place confirms.
    yield from (one._replace(trust=0.6) for one in (tail, named) if one and one.word != method)
    if "to" in words((_literals(candidate) or [""])[-1])[1:-1]:  # /html-to-pdf
        yield Said("convert", "the path", 0.6)


def is_verb(word: str) -> bool:
    """Return True if a word of a name is mostly used as a verb."""
    return bool(base(word)) and (word in SPOKEN or is_plain(base(word)))


def changing_words(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yield the verbs anywhere in a candidate's words that change something, each with its place."""
    named = [part for section in _sections(candidate) for part in section]
    if named[:1] == [(candidate.method or "").lower()]:
        named = named[1:]
    for at, word in enumerate(named):
        if (is_plain(word) or (at == 0 and word in SPOKEN)) and changes(word):
            yield word, candidate.name_kind
    for text, source in ((candidate.summary, "the summary"), (candidate.description, "the description")):
        for head in heads_of(text):
            if head.kind not in ("hint", "reading") and head.verb not in _SAYING_LITTLE and changes(head.verb):
                yield head.verb, source


@lru_cache(maxsize=4096)
def base(word: str) -> str:
    """Return the base form of a verb; empty for other words."""
    if word in SPOKEN or operation_classes(word) is not None:
        return word
    found = [lemma.verb for lemma in lemmas(word) if lemma.form in ("third", "gerund", "base")]
    return next((verb for verb in found if operation_classes(verb) is not None), "")


def is_plain(word: str) -> bool:
    """Return True if a word in a name is a verb wherever it stands; not `pat`, which nobody assigned to a class."""
    if word in lexicon().paths["sure"]:
        return True
    return is_plain_verb(word, lexicon()) and is_known(word)


def is_known(verb: str) -> bool:
    """Return True if a list or its prefix, and not its neighbours alone, says what a verb does."""
    classes = operation_classes(verb)
    return classes is not None and classes.confidence >= _KNOWN


def heads_of(text: str) -> Sequence[HeadVerb]:
    return head_verbs(_TAG.sub(" ", text[: 2 * _LONGEST])[:_LONGEST].lstrip()) if text else ()


def _is_command(head: HeadVerb, text: str) -> bool:
    """Return True if a word of prose is certainly a verb: "Rent a flat", but not "Rent estimate"."""
    after = _TAG.sub(" ", text).lstrip()[head.end : head.end + _FAR].lower().split()
    return (
        is_plain(head.verb)
        or after[:1] in (["if"], ["whether"])
        or not DETERMINERS.isdisjoint(after[: 1 + (after[:1] in _PARTICLES)])
    )


def _prose_verbs(candidate: Candidate) -> list[str]:
    """Return the verbs of the summary, else of the description. What a noun names counts only for reading calls."""
    kinds = ("head", "meant", "nominal") if candidate.claims_to_read else ("head", "light", "meant", "nominal")
    for text in (candidate.summary, candidate.description):
        heads = heads_of(text)
        usable = [one for one in heads if one.kind in kinds and one.verb not in EMPTY]
        framed = [one.verb for one in heads if (one.start, one.kind, one.verb) == (0, "frame", "schedule")]
        if framed:  # "Schedules a message to be sent" does not send it
            return framed
        if candidate.claims_to_read:  # in `Projects of the caller` the resource looks like a verb
            usable = [one for one in usable if _may_be_of_a_reading(one, text)]
            usable = [one for one in usable if not _is_name(one, text)]
            things = {part for segment in _literals(candidate) for part in words(segment)} - ENDINGS - COMMANDS
            things.difference_update(words(candidate.name)[:1])
            usable = [one for one in usable if one.verb not in things or _is_command(one, text)]
        if not candidate.claims_to_read:
            # "Returns the newly created pet"
            usable = [one for one in heads_of(text) if one.kind == "reading" and changes(one.verb)] or usable
            method = (candidate.method or "").lower()  # in `Feature Post` for /post/feature it is the thing
            # Neither does `Puts preferences` say more than the method.
            silent = method == "put" or method in _resources(candidate)
            usable = [one for one in usable if one.verb != method or not silent]
            nouns = [one for one in usable if one.kind in ("meant", "nominal")]
            clear = [one for one in usable if one not in nouns or changes(one.verb)]
            usable = clear or [one for one in usable if one.kind == "meant"]  # a collection is not a verb
        if usable:
            return [one.verb for one in usable]
    return []


def _is_name(head: HeadVerb, text: str) -> bool:
    """Return True for a word inside a phrase that is a noun too: "Shop filters", "Historical exchange rate"."""
    before = _TAG.sub(" ", text).lstrip()[: head.start + len(head.verb)].lower()
    first, is_inside = before.partition(" ")[0], head.start > 0 and head.kind in ("head", "nominal")
    return is_inside and before.endswith(head.verb) and not first.endswith("ly") and not _is_command(head, text)


def command_of(candidate: Candidate) -> str:
    """Return the verb of a first sentence that is certainly a command: "Force a device to send its data"."""
    text = candidate.summary or candidate.description
    first = next(iter(heads_of(text)), None)
    is_first = first is not None and first.start == 0 and _may_be_of_a_reading(first, text)
    return first.verb if first is not None and is_first and _is_command(first, text) else ""


def _may_be_of_a_reading(head: HeadVerb, text: str) -> bool:
    """Return False for a noun and for a verb that says little, where a GET would contradict them."""
    if not changes(head.verb):
        return True
    return head.kind == "head" and head.verb not in _LITTLE_CHANGE and is_known(head.verb) and _is_command(head, text)


def name_verb(candidate: Candidate) -> Said | None:
    """Return the verb of a name: its verb word, wherever it stands."""
    if not (sections := _sections(candidate)):
        return None
    kind, method = candidate.name_kind, (candidate.method or "").lower()
    first = sections[0][0]
    if first == method:
        return Said(first, kind, 0.95)
    if first in _prose_verbs(candidate) and first not in LIGHT and not is_plural(first):
        return Said(first, kind, 0.95)
    resources = _resources(candidate)
    is_snake = candidate.name == candidate.name.lower() and not set(candidate.name) & set("/.:")
    several = len(sections) > 1 and not is_snake
    # In VirtualMachines_Start and compute.instances.insert the verb follows the noun.
    for section in reversed(sections[1:] if several else [tuple(part for one in sections for part in one)]):
        if found := _verb_of(section, resources, method):
            # Where the path names nothing, the name is the command: POST / with Action=Scan.
            alone = candidate.path is not None and not _literals(candidate)
            return Said(found[0], kind, max(found[1], SURE) if alone else found[1])
    for part in sections[0] if several else ():
        if is_plain(part) and part not in resources:
            return Said(part, kind, 0.85)
    return None


def _verb_of(parts: Sequence[str], resources: frozenset[str], method: str) -> tuple[str, float] | None:
    """Return the verb in the words of a name: the first, the last or any other, and how sure it is."""
    first, last = parts[0], parts[-1]
    if first in LIGHT and len(parts) > 1 and base(parts[1]) == parts[1] and not is_plural(parts[1]):
        return parts[1], 0.85
    if (is_plain(first) or (first == "search" and len(parts) > 1)) and first not in resources:
        return first, 0.95
    if (is_plain(last) or last in ENDINGS) and last not in resources:
        return last, 0.9
    inner = next((part for part in parts[1:] if part not in METHODS and is_plain(part) and part not in resources), "")
    if inner:
        return inner, 0.85
    if base(first) and not is_plural(first) and first not in resources:
        if first in SPOKEN and first != method:
            return base(first), 0.9
        acting = action_intent(first)
        if len(parts) > 1 and (acting.kind == "action" or acting.group == "vague"):
            # In bookRoom for /rooms, the path names the object, so the word before it is the verb.
            sure = 0.95 if last in resources else SURE if is_verbal(first) and last not in ENDINGS else 0.6
            return base(first), sure
    if base(last) == last and (last in SPOKEN or is_verbal(last)) and not is_plural(last) and last not in resources:
        return last, 0.6
    return None


def is_action(word: str) -> bool:
    """Return True if a word is rather a verb than a noun."""
    return is_plain(word) or (operation_classes(word) is not None and is_verbal(word))


def is_verbal(word: str) -> bool:
    """Return True if a word is used as a verb more often than as a noun."""
    counts = lexicon().counts(word)
    return counts.verb > counts.noun


def _sections(candidate: Candidate) -> list[tuple[str, ...]]:
    """Split a name at its separators, without what generators add: the method, the path, `using`, a number."""
    sections = [words(part) for part in _SEPARATOR.split(candidate.name[:_LONGEST]) if words(part)]
    flat = [part for section in sections for part in section]
    method = (candidate.method or "").lower()
    path = [part for segment in candidate.bare_path.split("/") for part in words(segment)]
    if len(sections) > 2 and flat[:1] == [method] and flat[1 : len(path) + 1] == path:
        return [tuple(flat[len(path) + 1 :])] if flat[len(path) + 1 :] else []  # made of both: GET_versions/export
    called = sections[:1] == [(method,)] and len(sections[1:2] and sections[1]) > 1  # GET_DeleteLoadBalancer
    if len(flat) > 1 and flat[0] == method and (method not in _SAYING or called) and base(flat[1]) == flat[1]:
        sections[0], flat = sections[0][1:], flat[1:]  # post-checkUser: the method says nothing, and a verb follows
    kept = len(flat)
    while kept > 1 and flat[kept - 1].isdecimal():
        kept -= 1
    # The method ends the name as its verb (ComputeNode_Get), or a generator added it behind the path.
    own = len(sections) > 1 and sections[-1] == (method,) and method in _SAYING
    if method and kept > 1 and flat[kept - 1] == method and not (own and flat[: kept - 1][-len(path) :] != path):
        kept -= 1
        if path and flat[:kept][-len(path) :] == path:
            kept -= len(path)
    if kept > 1 and flat[kept - 1] == "using":
        kept -= 1
    found: list[tuple[str, ...]] = []
    for section in sections:
        rest = without_manner(section[: max(kept, 0)])
        kept -= len(section)
        if rest:
            found.append(rest)
    return found


def _resources(candidate: Candidate) -> frozenset[str]:
    """Return the words that a path uses as names of things: `issue` in /issues/{id}/transitions."""
    literals = [segment for segment in _literals(candidate) if segment.lower() not in COMMANDS]
    found: set[str] = set()
    for at, segment in enumerate(literals):
        parts = words(segment.partition(":")[0])
        # A PUT to /interest_reinvest is about a thing of that name; a POST to it may be a command.
        named = len(parts) > 1 and candidate.method != "POST"
        thing = at + 1 < len(literals) or is_plural(parts[-1] if parts else "") or named
        if parts and thing and parts[0] not in lexicon().paths["sure"]:
            found.update((parts[-1], singular(parts[-1]), parts[0]))
    return frozenset(found)


def _literals(candidate: Candidate) -> list[str]:
    segments = (segment.partition("(")[0] for segment in candidate.bare_path.split("/"))
    return [segment for segment in segments if segment and "{" not in segment]


def path_verb(candidate: Candidate) -> Said | None:
    """Return the command at the end of a path: /orders/{id}/cancel, /jobs/{id}:run, /chat.delete."""
    method = candidate.method or ""
    before, _, segment = candidate.bare_path.rstrip("/").rpartition("/")
    # A method of an RPC style: /dialog.open
    called = "." in segment and "{" not in segment and is_action(next(iter(words(segment.rpartition(".")[2])), ""))
    marked = ":" in segment or called
    command = marked or (method == "POST" and before.endswith("}"))
    if "{" in segment or (marked and not called):
        segment = segment.rpartition(":")[2] if not segment.endswith("}") else ""
    parts = without_manner(words(segment.rpartition(".")[2]))
    if not parts or is_plural(parts[0]):
        return None
    word, where = "".join(parts), "the end of the path"
    if parts[-1] == "exists":
        return Said("exists", where, 0.9)
    if len(parts) > 1 and operation_classes(word) is None:
        acting = name_verb(candidate)
        if acting is not None and parts[-1] in COMMANDS and acting.word == parts[-1]:
            return Said(parts[-1], where, 0.86)  # /onboard-depart-search with searchForVehicles
        # mark_uncollectible, reset-password: the first word is the command.
        leads = is_plain(parts[0]) or (command and parts[0] in _LEADING)
        # Things are many, so a plural is rather a name, unless its first word is hardly ever a noun: /delete-users.
        verdict = judge_segment("-".join(parts)) if is_plural(segment) else None
        named = is_plural(segment) and (verdict is None or verdict.tier != "error")
        return Said(parts[0], where, 0.86 if command else 0.6) if leads and not named else None
    if word in COMMANDS and (method in ("GET", "POST") or word in SPOKEN):
        return Said(word, where, 0.9)
    if operation_classes(word) is None and word not in SPOKEN:
        return None
    # A command follows a colon, and mostly also the resource of a POST, even if the word can be a noun.
    # After one thing, a GET too may be a command, if the word is for beginning, ending or sending: /vms/{id}/start.
    one = before.endswith("}") and not candidate.returns_list
    heads = _prose_verbs(candidate) if one else []
    starts = main_class(word) in ("BEGIN", "END", "SEND", "DELETE", "CONTROL")
    sets_going = word in _SWITCHING or (starts and is_verbal(word))
    acts = one and sets_going and (word in heads or not heads)
    sure = marked or is_plain(word) or acts or (command and (is_verbal(word) or word in SPOKEN))
    return None if not sure and method != "POST" else Said(word, where, 0.9 if sure else 0.5)


def _opening_verb(candidate: Candidate) -> Said | None:
    """Return the command at the beginning of a path without parameters: /generate/url."""
    first, *others = [part for part in _literals(candidate) if words(part)] or [""]
    fits = others and "{" not in candidate.bare_path and is_plain(first) and not candidate.name
    return Said(first, "the path", SURE) if fits else None


_TOOL_SAYING: Final = frozenset({"head", "light", "meant", "nominal", "doubtful"})  # They say what a sentence is about.
_SURE: Final = 0.85
_LIKELY: Final = 0.8  # trust in a word that the prose must not contradict
_POSSIBLE: Final = 0.5  # trust in a word that the prose must confirm
_OFTEN: Final = 10  # uses of a word as a verb below which the counts say little
_PRODUCING: Final = listed("producing-for-tools")
"""Verbs whose result is the answer itself. A hint that the call only reads does not contradict them."""
OPERATING: Final = listed("operating")
"""Verbs for what a person does on a screen. They look harmless, but may buy or send something."""


def tool_words(candidate: Candidate) -> Iterator[Said]:
    """Yield the words that may be the verb, the most reliable first."""
    prose = _prose(candidate)
    heads = [one.verb for one in prose if one.kind in _TOOL_SAYING and one.verb not in EMPTY]
    weak: list[Said] = []
    light = _is_light(bare_words(candidate))
    for word, trust in sorted(_named(candidate), key=lambda one: (light and one[0] in LIGHT, one[0] not in heads)):
        said = Said(word, candidate.name_kind, trust)
        # The word and the prose agree if both read or both change something.
        agrees = not heads or changes(word) == changes(heads[0])
        if trust >= _SURE or word in heads or (trust >= _LIKELY and agrees):
            yield said._replace(trust=max(trust, _SURE))
        else:
            weak.append(said)
    source = "the summary" if candidate.summary else "the description"
    # What an object means precedes the verb it belongs to: `search` of "performs a search".
    meant = [one.verb for one in prose if one.kind == "meant" and one.verb in heads]
    yield from (Said(verb, source, 0.9) for verb in (*meant, *(verb for verb in heads if verb not in meant)))
    yield from weak


def change_words(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yield the verbs in the name and in the first sentence that change something, each with its place."""
    parts = bare_words(candidate)
    prose = _prose(candidate)
    reading = bool(parts) and _reads(parts[0]) and (is_verb(parts[0]) or parts[0] in ENDINGS)
    agreed = reading and bool(prose) and _reads(prose[0].verb)
    light = _is_light(parts)
    for at, word in enumerate(parts):
        beside = at > 0 and parts[at - 1] in {"and", "or", "then"}
        last = at == len(parts) - 1 and (word in ENDINGS or not reading)
        # In get_create_fields the second verb says which fields, if the sentence says that it reads.
        names_action = is_verb(word) or main_class(word) == "DELETE"
        inside = not agreed and not (light and at == 0) and names_action
        may_act = names_action or _is_verbal(word) or word in OPERATING
        if (at == int(light) or beside or last or inside) and may_act and _acts(word, candidate):
            yield word, candidate.name_kind
    text = candidate.summary or candidate.description
    meant = any(one.kind == "meant" for one in prose)
    for one in prose:
        noun = one.kind == "coordinated" and not text[one.end :].strip(" .")
        if one.kind in ("hint", "reading") or noun or (meant and one.kind == "light"):
            continue
        if one.verb not in EMPTY and _acts(one.verb, candidate):
            yield one.verb, "the summary" if candidate.summary else "the description"


def bare_words(candidate: Candidate) -> Sequence[str]:
    """Return the words of a name without the manner before its verb: `batch_get_item`, `reverse_geocode`."""
    parts = without_manner(words(candidate.name))
    return parts[1:] if parts[:2] == ("reverse", "geocode") else parts


def _named(candidate: Candidate) -> Iterator[tuple[str, float]]:
    """Yield the words of a name that may be its verb: the first, the last, then the others."""
    if not (parts := bare_words(candidate)):
        return
    first, *others = parts
    if joined := two_word_verb(first, parts, 0) if others else None:
        yield joined, 0.95  # turn_on
        return
    if _is_light(parts):
        yield others[0], 0.85
    yield from _placed(first, _LIKELY if first in METHODS and first != "delete" else 0.95, _LIKELY)
    if others:
        yield from _placed(others[-1], _SURE, _POSSIBLE)
        yield from ((part, _LIKELY) for part in others[:-1] if is_verb(part))


def _is_light(parts: Sequence[str]) -> bool:
    """Return True if the second word names the action: take_screenshot."""
    return parts[0] in LIGHT and base(parts[1]) == parts[1] and not is_plural(parts[1]) if len(parts) > 1 else False


def _placed(word: str, sure: float, likely: float) -> Iterator[tuple[str, float]]:
    """Yield a word in a place where verbs stand, with the trust in it."""
    if base(word) != word or is_plural(word):
        return
    if is_verb(word) or word in ENDINGS:
        yield word, sure
    else:
        yield word, likely if _is_verbal(word) else _POSSIBLE


def _prose(candidate: Candidate) -> Sequence[HeadVerb]:
    return heads_of(candidate.summary) or heads_of(candidate.description)


def _reads(word: str) -> bool:
    verb = base(word) or word
    return operation_classes(verb) is not None and not changes(verb) and verb not in OPERATING


def _is_verbal(word: str) -> bool:
    counts = lexicon().counts(word)
    mostly = counts.verb >= _OFTEN and counts.verb > 2 * counts.noun
    return base(word) == word and (mostly or word in SPOKEN or word in COMMANDS)


def _acts(word: str, candidate: Candidate) -> bool:
    verb = base(word) or word
    return verb in OPERATING or (changes(verb) and not (candidate.read_only and verb in _PRODUCING))
