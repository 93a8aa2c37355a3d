"""Path of a candidate by the rules of AGTP: nouns and parameters, no verbs, no versions. The upstream keeps its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count, pairwise, takewhile
from typing import Final
from urllib.parse import unquote

from bespeak.contract.grammar.syntax import leaking_segment
from bespeak.documents.adoption.facade import Candidate, bare_path
from bespeak.text.identifiers import unused
from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.names import (
    COMMANDS,
    METHODS,
    RELATING,
    hyphenated,
    is_plural,
    main_class,
    plural,
    singular,
    snake_case,
    without_manner,
    words,
)
from bespeak.text.language.segment import judge_segment
from bespeak.text.language.sentence import listed

_PARAMETER: Final = re.compile(r"\{([^{}]*)\}")
_VERSION: Final = re.compile(r"v[0-9]+(?:[a-z]+[0-9]*)?(?:[.-][0-9]+)*|[0-9]+(?:\.[0-9]+)+|[0-9]{4}-[0-9]{2}-[0-9]{2}")
_PREFIXES: Final = frozenset({"api", "rest", "public", "services"})  # leading segments that do not name a resource
_OF_METHOD: Final = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE)_(?=[A-Z])")  # before a name: POST_CreateLoadBalancer
_KEYED: Final = re.compile(r"([A-Za-z][\w.-]*)\(")  # collection before a key in OData notation: users('{id}')
_SHOWN: Final = 60
_OF_DEEDS: Final = ("ion", "ment", "al", "ance", "ence", "ure")  # endings of nouns for actions; -er names who acts


@dataclass(frozen=True, slots=True)
class PathChoice:
    """A path with its parameters and the reasons why it differs from the described one."""

    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)  # Names in this path, by upstream name.
    reasons: tuple[str, ...] = ()
    version: str = ""  # version that was removed from the path

    def url_path(self, described: str) -> str:
        """Rename the parameters of the described path to their names in this one."""
        return _PARAMETER.sub(lambda found: f"{{{self.parameters[found[1]]}}}", described)


def choose_path(
    described: str,
    verb: str,
    verbs: frozenset[str],
    *,
    name: str = "",
    topic: str = "",
    word: str = "",
    says_all: bool = True,
) -> PathChoice:
    """Choose the path for a verb.

    `name` is the name of the candidate, which may say what a command acts on: blockUser for /user/block. `topic` is its
    subject, for paths that do not name a resource. A segment that repeats `word`, which chose the verb, is removed if
    the verb says all that it means.
    """
    return _PathWriter(verb, verbs, word, word if says_all else "", topic, words(name)).write(described)


@dataclass(slots=True)
class _PathWriter:
    verb: str
    verbs: frozenset[str]
    command: str  # word that the verb was chosen for
    word: str  # the same word, if the verb says all that it means
    topic: str
    things: tuple[str, ...]  # words of the candidate's name, which may name what a command acts on
    reasons: list[str] = field(default_factory=list)
    segments: list[str] = field(default_factory=list)

    def write(self, described: str) -> PathChoice:
        names: dict[str, str] = {}
        for found in dict.fromkeys(_PARAMETER.findall(described.partition("#")[0])):
            names[found] = unused(snake_case(found, "id"), names.values())
            if names[found] != found:
                self.reasons.append(f"{{{found[:_SHOWN]}}} is renamed to {{{names[found]}}}")
        described = bare_path(described)
        pieces, version = self._divide(described, names)
        topic = self.topic if len(pieces) == 1 else ""
        for piece, following in pairwise((*pieces, "")):
            if not piece.startswith("{"):
                self._add_literal(piece, following, topic)
            elif piece not in self.segments:  # one value fills both places of a repeated parameter
                self.segments.append(piece)
        self.segments, later = _without_version(self.segments, self.reasons)  # a removed verb may have preceded it
        self._begin_with_noun()
        if described.endswith("/") and len(described) > 1:
            self.reasons.append("no trailing slash")
        return PathChoice("/" + "/".join(self.segments), names, tuple(dict.fromkeys(self.reasons)), version or later)

    def _divide(self, described: str, names: Mapping[str, str]) -> tuple[list[str], str]:
        """Return the literals and parameters of a path, and the version that was removed from them."""
        parts = [
            part
            for segment in described.split("/")
            if segment
            for part in _commands_apart(segment, self.command, self.verb)
        ]
        pieces = [piece for part in parts for piece in _pieces(part, names, self.reasons)]
        self.reasons += [f"{piece[:_SHOWN]!r} has no letters" for piece in pieces if not _is_named(piece)]
        pieces, version = _without_version([piece for piece in pieces if _is_named(piece)], self.reasons)
        return _described_things(pieces, "" if self.command == "read" else "read"), version

    def _add_literal(self, piece: str, following: str, topic: str) -> None:
        if self._repeats_verb(piece, following):
            self.reasons.append(f"{piece[:_SHOWN]!r} only repeats {self.verb}")
            return
        verb, verbs = self.verb, self.verbs
        # The word before a version is the name of an API: /compute/v1.
        is_api = not self.segments and _is_version(following) and not _is_fine(hyphenated(piece), verb, verbs)
        named = f"{piece}-api" if is_api else piece
        if segment := _segment(named, verb, verbs, self.reasons, word=self.word, topic=topic, selected=following):
            self.segments.append(segment)

    def _repeats_verb(self, piece: str, following: str) -> bool:
        """Return True if a segment says no more than the verb about what stands before it."""
        several = bool(self.segments) and is_plural(self.segments[-1])
        is_object = singular(piece.lower()) in map(singular, self.things[1:]) and piece.lower() not in (
            self.command,
            self.verb.lower(),
        )
        says_verb = not is_object and _says(hyphenated(piece), self.verb, several=several)
        if not self.segments:
            # The first segment owns the parameters of a path, unless a noun follows: /search/issues.
            return says_verb and following[:1] not in ("", "{")
        says_word = bool(self.word) and "".join(without_manner(words(piece))) == self.word
        last, name = self.segments[-1], "".join(words(piece))
        # /orders/{id}/cancel acts on what stands before it, /store/order does not.
        acts = last.startswith("{") or is_plural(last) or name in COMMANDS or not _is_noun(name)
        named = singular("".join(words(last)[-1:])) in map(singular, self.things)
        return (says_word or says_verb) and last not in _AREAS and (named or acts)

    def _begin_with_noun(self) -> None:
        if not self.segments or self.segments[0].startswith("{"):
            thing = _thing(self.topic, self.segments, self.verb, self.verbs)
            self.reasons.append(f"a path begins with a noun: {thing}")
            self.segments.insert(0, thing)
        if self.segments[0].isdecimal():
            self.segments.insert(0, _thing(self.topic, self.segments, self.verb, self.verbs))
            self.reasons.append("a path does not begin with a number")


def _described_things(pieces: list[str], state: str) -> list[str]:
    """Join each participle with the noun it describes: /aggregated/instances, /users/deleted, /boards/{id}/closed.

    `state` is another word for a state, if it ends the path of one thing: /comments/{id}/read.
    """
    found: list[str] = []
    for piece in pieces:
        before = found[-1] if found else "{"
        if not piece.startswith("{") and _is_participle(before):
            found[-1] = f"{before}-{piece}"
        elif _is_participle(piece) and not before.startswith("{") and _is_thing(before):
            found[-1] = f"{piece}-{before}"
        else:
            found.append(piece)
    if found[-2:-1] and found[-2].startswith("{") and found[-1] == state:
        found[-1] += "-state"
    return [f"{piece}-state" if _is_participle(piece) else piece for piece in found]


def _is_thing(piece: str) -> bool:
    return piece not in _PREFIXES and judge_segment(hyphenated(piece)) is None


@lru_cache(maxsize=8192)
def _is_participle(piece: str) -> bool:
    verdict = judge_segment(hyphenated(piece)) if not piece.startswith("{") else None
    return verdict is not None and (verdict.tier, verdict.reason) == ("error", "past")


def other_paths(
    choice: PathChoice, described: str, verb: str, verbs: frozenset[str], names: Iterable[str] = ()
) -> Iterator[str]:
    """Yield alternatives to a path that is taken: with the removed parts or another name, then numbered."""
    segments = choice.path[1:].split("/")
    first, last = segments[0], segments[-1]
    if choice.version:
        yield "/" + "/".join([f"{first}-{hyphenated(choice.version)}", *segments[1:]])
    parts = bare_path(described).split("/")
    lost = [name for part in parts for name in _literals(part) if name and name not in segments]
    yield from _longer(choice.path, reversed(lost), verb, verbs)
    if last.startswith("{") and (by := next(_nouns(f"by-{last[1:-1].replace('_', '-')}", verb, verbs), "")):
        yield "/" + "/".join([*segments[:-1], by, last])
    yield from _longer(choice.path, names, verb, verbs)
    yield from ("/" + "/".join([f"{first}-{number}", *segments[1:]]) for number in count(2))


def _longer(path: str, names: Iterable[str], verb: str, verbs: frozenset[str]) -> Iterator[str]:
    for name in names:
        noun = next(_nouns(name, verb, verbs), "")
        if noun and noun not in path.split("/"):
            yield f"{path}/{noun}"


def topic_of(candidate: Candidate, verbs: frozenset[str] = frozenset()) -> str:
    """Return the subject of a candidate: its first tag, its first literal segment, or the noun in its name."""
    path = candidate.bare_path
    literals = [name for part in path.split("/") for name in _literals(part.partition(":")[0])]
    things = [name for name in map(hyphenated, literals) if name and name not in _PREFIXES]
    # A path that is only a command does not name a resource.
    if len(things) == 1 and (leaking_segment(f"/{things[0]}", verbs) is not None or judge_segment(things[0])):
        things = [_object_of(candidate), *things] if "{" not in path else []
    if path.lstrip("/").partition("/")[2].startswith("{") and _is_version(path.split("/")[1]):
        if collection := _collection_of(candidate):
            return collection
        things = []
    # A tag is not a part of the upstream's path, so it need not stay if it looks like a verb.
    topics = [tag for tag in map(hyphenated, candidate.tags[:1]) if judge_segment(tag) is None]
    found = (*topics, *map(hyphenated, (*things, "" if "{" in path else _object_of(candidate))))
    return next((name for name in found if _names(name)), "")


def _collection_of(candidate: Candidate) -> str:
    """Return what the first parameter of /v1/{name} or /v1/{parent}/topics selects, by pubsub.projects.topics.get."""
    *parts, last = map(hyphenated, candidate.name.split(".")[1:] or [""])
    segments = candidate.bare_path.split("/")[2:]
    if len(segments) == 1 and ":" not in segments[0] and "-" in last:  # locations.getSettings
        parts.append(last.partition("-")[2])
    for segment in reversed(segments[1:]):
        if parts and parts[-1] == hyphenated(segment.partition(":")[0]):
            parts.pop()
    return next((part for part in reversed(parts) if _names(part)), "")


def _names(text: str) -> bool:
    return any(map(str.isalpha, text)) and _VERSION.fullmatch(text) is None


def _object_of(candidate: Candidate) -> str:
    """Return the noun in a name: `table` in `CreateTable`, `root` in `read_root__get`."""
    _, *rest = words(_OF_METHOD.sub("", candidate.name)) or ("",)
    while rest and rest[0] in RELATING and rest[0] != "using":
        rest.pop(0)
    rest = list(takewhile(lambda word: word not in RELATING, rest))
    while rest and rest[-1] in METHODS:
        rest.pop()
    return "-".join(rest[:4])


def _commands_apart(segment: str, word: str, verb: str) -> tuple[str, ...]:
    """Split `users.list` of an API that calls functions, if the last part is the verb."""
    before, _, last = segment.rpartition(".")
    is_command = "{" not in segment and words(last)[:1] in ((word,), (verb.lower(),))
    return (before, last) if before and word and is_command else (segment,)


def _pieces(segment: str, names: Mapping[str, str], reasons: list[str]) -> Iterator[str]:
    """Split a segment into parameters and literals: `{base}...{head}` is two, and `{name}.json` keeps only the name."""
    if "{" not in segment:
        yield from (part for part in segment.split(":") if part) if ":" in segment else (unquote(segment),)
        return
    end = 0
    for found in _PARAMETER.finditer(segment):
        yield from _literal_piece(segment[end : found.start()], segment, reasons)
        yield f"{{{names[found[1]]}}}"
        end = found.end()
    yield from _literal_piece(segment[end:], segment, reasons)


def _literal_piece(text: str, segment: str, reasons: list[str]) -> Iterator[str]:
    if text:
        reasons.append(f"{segment[:_SHOWN]!r} is more than a parameter")
    keyed = _KEYED.match(text)
    if keyed is not None and segment.startswith(text):
        yield keyed[1]
    elif text.startswith(":") and hyphenated(text):
        yield text[1:]
    elif segment.startswith(text) and len(hyphenated(text)) >= 3:
        yield text.lstrip("{")  # a brace that is not closed does not make a parameter


def _without_version(pieces: list[str], reasons: list[str]) -> tuple[list[str], str]:
    """Remove the version at the beginning, with the words before it that do not name a resource: /rest/api/3."""
    general = 0
    while general < len(pieces) and pieces[general].lower() in _PREFIXES:
        general += 1
    numbered = general < len(pieces) - (not general) and pieces[general].isdecimal()
    if general == len(pieces) or not (numbered or _is_version(pieces[general])):
        return pieces, ""
    dropped, rest = pieces[: general + 1], pieces[general + 1 :]
    reasons += [f"{piece[:_SHOWN]!r} does not name a resource" for piece in dropped]
    more, later = _without_version(rest, reasons)
    return more, later or ("" if numbered else dropped[-1])


def _is_named(piece: str) -> bool:
    return piece.startswith("{") or bool(hyphenated(piece))


def _is_version(piece: str) -> bool:
    names = (piece.lower(), hyphenated(piece))
    return any(_VERSION.fullmatch(name) for name in names)


def _segment(
    piece: str, verb: str, verbs: frozenset[str], reasons: list[str], *, word: str, topic: str, selected: str
) -> str:
    """Return a noun for a literal segment; empty if it only repeats the verb.

    `topic` is that of a lone segment, `selected` what follows the segment.
    """
    name = hyphenated(piece)
    by = f"-by-{hyphenated(selected)}" if selected.startswith("{") else "-"
    if name.removesuffix(by) != name:  # getServiceByID/{serviceID}
        name = name.removesuffix(by)
    if name != piece:
        reasons.append(f"{piece[:_SHOWN]!r} is written {name!r}")
    if word and name.startswith(f"{word}-") and _is_fine(name[len(word) + 1 :], verb, verbs):
        reasons.append(f"{name!r} begins with {word!r}, as the method says")
        return name[len(word) + 1 :]
    if _is_fine(name, verb, verbs):
        return name
    compound = "-" in name and next(_nouns(name, verb, verbs), name)
    if compound and compound != name and not compound.startswith(name):
        reasons.append(f"{name!r} is a method name; the noun is {compound!r}")
        return compound
    if topic not in ("", name) and _is_fine(topic, verb, verbs):
        reasons.append(f"{name!r} is a verb; the noun is {topic}")
        return topic
    noun = next(_nouns(name, verb, verbs), "")
    reasons.append(f"{name!r} is a method name; the noun is {noun!r}" if noun else f"{name!r} is a method name")
    return noun


def _says(name: str, verb: str, *, several: bool) -> bool:
    """Return True if a segment only repeats the verb: the same one, or another for reading."""
    parts = words(name)
    word = "".join(parts)
    if word == verb.lower():
        return True
    # A word for reading may rather be a noun, as in /status and /view; `delete` never is, nor `list` of several things.
    is_thing = _is_noun(word) and main_class(word) != "DELETE" and not (several and word == "list")
    return len(parts) == 1 and main_class(verb.lower()) in ("READ", "DELETE") and _agree(word, verb) and not is_thing


def _agree(word: str, verb: str) -> bool:
    """Return True if a word and the method do the same kind of thing."""
    return word == verb.lower() or main_class(verb.lower()) == main_class(word) != ""


def _is_noun(word: str) -> bool:
    counts = lexicon().counts(word)
    return (counts.noun > 0 and counts.noun >= counts.verb) or is_plural(word)


@lru_cache(maxsize=8192)
def style_fault(name: str, verb: str) -> bool:
    """Return True if a segment follows AGTP-API 5.1, but lint would take it for a form of a verb: `starred`."""
    verdict = judge_segment(name, verb)
    return verdict is not None and verdict.tier == "warning"


@lru_cache(maxsize=8192)
def _is_fine(name: str, verb: str, verbs: frozenset[str]) -> bool:
    """Return True if a segment may stay: it is not a method (AGTP-API 5.1), and does not plainly say an action."""
    verdict = judge_segment(name, verb)
    return leaking_segment(f"/{name}", verbs) is None and (verdict is None or verdict.tier == "warning")


def _nouns(name: str, verb: str, verbs: frozenset[str]) -> Iterator[str]:
    """Yield what may stand for a segment that is a method or plainly a verb, the closest first."""
    name = hyphenated(name)
    if not name:
        return
    verdict = judge_segment(name, verb)
    # What is left without a verb is the same thing only if the method says that verb; a noun of action always is.
    left = instead = (verdict.instead or "") if verdict is not None else ""
    action = instead if "-" not in name else ""
    if verdict is None or action or instead in RELATING or not (name.endswith("-exists") or _agree(verdict.verb, verb)):
        instead = ""
    last = words(name)[-1]
    names_things = lexicon().counts(last).noun or is_plural(last) or last not in lexicon().verbs or verdict is None
    several = plural(name) if names_things else ""
    asked = name.partition("-")[2] if name.startswith(("is-", "has-")) else ""
    undone = name.removeprefix("un") if verb == "CLEAR" else ""  # what is cleared by an unlock is a lock
    things = (undone, name, several, instead, plural(instead) if instead else "", asked, _deed(name), action)
    for choice in (*things, plural(name) if last in lexicon().verbs else "", f"{name}-request", f"{name}-record", left):
        # The upstream's own name may look like a verb; a name made here may not.
        if choice and _is_fine(choice, verb, verbs) and (choice == name or judge_segment(choice, verb) is None):
            yield choice


@lru_cache(maxsize=1)
def _deeds() -> Mapping[str, str]:
    """Return the noun of each verb, the most usual or shortest of several: cancellation of cancel."""
    count = lexicon().counts
    nouns = sorted(
        meanings().nouns.items(), key=lambda pair: (pair[0][-3:] != "ure", count(pair[0]).noun, -len(pair[0]))
    )
    return {verb: noun for noun, verb in nouns if noun.endswith(_OF_DEEDS) and noun[-4:] != "xion"}


def _deed(name: str) -> str:
    """Return the noun of the last word, if it is a verb: `interest-reinvestment`."""
    before, hyphen, last = name.rpartition("-")
    again = "re" if last.startswith("re") and last not in _deeds() else ""
    noun = f"{last[:-1]}ation" if last.endswith("ize") else _deeds().get(last.removeprefix(again), "")
    return f"{before}{hyphen}{again}{noun}" if noun else ""


_AREAS: Final = frozenset({"admin", "api", "gen", "system"})  # segments that do not name what a command acts on
_NAMELESS: Final = listed("nameless-parameters")
"""Words of parameters that do not name what they select."""


def _thing(topic: str, segments: list[str], verb: str, verbs: frozenset[str]) -> str:
    """Return the first segment for a path that is empty or begins with a parameter."""
    parameter = next((part[1:-1] for part in segments if part.startswith("{")), "")
    bare = [word for word in parameter.split("_") if word and word not in _NAMELESS]
    own = plural("-".join(bare)) if bare else ""
    # The parameter names what it selects: /{organization}/projects; a topic may do so too: {notebook_instance}.
    named = not bare or (topic not in segments and own.endswith(plural(topic)))
    itself = plural(parameter) if parameter in ("resource", "parent") else ""
    for choice in (topic if named else own, own, topic, itself, "items"):
        found = next(_nouns(choice, verb, verbs), "") if choice else ""
        if _names(found):
            return found
    return "items"


def _literals(segment: str) -> list[str]:
    return [unquote(part) for part in re.split(r"\{[^{}]*\}|[.:]", segment) if part]
