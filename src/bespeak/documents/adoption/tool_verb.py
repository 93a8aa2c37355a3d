"""Words of a candidate without a method, such as an MCP tool: its verb, and what says that it changes something.

The first word of a name is its verb if that is an action (AGIS C.3(a)). A word that is a noun as well needs the
support of the prose: `git_log` with "Shows the logs" is not about logging.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.naming import is_plural, without_manner, words
from bespeak.documents.adoption.path_choice import COMMANDS
from bespeak.documents.adoption.verb_words import EMPTY, ENDINGS, LIGHT, SPOKEN, Said, base, changes, heads_of, is_verb
from bespeak.text.language.head_verb import HeadVerb
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.operation_class import operation_classes

_SAYING: Final = frozenset({"head", "light", "meant", "nominal", "doubtful"})
"""Kinds of verbs that say what a sentence is about."""
_SURE: Final = 0.85
_LIKELY: Final = 0.8
"""Trust in a word that the prose must not contradict."""
_POSSIBLE: Final = 0.5
"""Trust in a word that the prose must confirm."""
METHODS: Final = frozenset({"get", "post", "put", "patch"})
"""Methods of HTTP, which are not action verbs (AGIS C.3(a)); the sentence may say more: `API-post-search` searches."""
_OFTEN: Final = 10
"""Uses of a word as a verb below which the counts say little."""
_JOINING: Final = frozenset({"and", "or", "then"})
_PRODUCING: Final = frozenset(
    {
        "screenshot",
        "snapshot",
        "capture",
        "render",
        "convert",
        "format",
        "draw",
        "echo",
        "wait",
        "await",
        "open",
        "ping",
    }
)
"""Verbs whose result is the answer itself. A hint that the call only reads does not contradict them."""
OPERATING: Final = frozenset(
    {"click", "press", "tap", "hover", "drag", "drop", "scroll", "swipe", "navigate", "goto", "type", "fill", "play"}
)
"""Verbs for what a person does on a screen. They look harmless, but may buy or send something."""


def tool_words(candidate: Candidate) -> Iterator[Said]:
    """Yield the words that may be the verb, the most reliable first."""
    prose = _prose(candidate)
    heads = [one.verb for one in prose if one.kind in _SAYING and one.verb not in EMPTY]
    weak: list[Said] = []
    for word, trust in sorted(_named(candidate), key=lambda one: one[0] not in heads):
        said = Said(word, candidate.name_kind, trust)
        if trust >= _SURE or word in heads or (trust >= _LIKELY and (not heads or _agrees(word, heads[0]))):
            yield said._replace(trust=max(trust, _SURE))
        else:
            weak.append(said)
    source = "the summary" if candidate.summary else "the description"
    yield from (Said(verb, source, 0.9) for verb in _meant_first(prose, heads))
    yield from weak


def change_words(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yield the verbs in the name and in the first sentence that change something, each with its place."""
    parts = bare_words(candidate)
    prose = _prose(candidate)
    reading = bool(parts) and _reads(parts[0]) and (is_verb(parts[0]) or parts[0] in ENDINGS)
    agreed = reading and bool(prose) and _reads(prose[0].verb)
    light = _is_light(parts)
    for at, word in enumerate(parts):
        beside = at > 0 and parts[at - 1] in _JOINING
        last = at == len(parts) - 1 and (word in ENDINGS or not reading)
        # In get_create_fields the second verb says which fields, if the sentence says that it reads.
        inside = not agreed and not (light and at == 0) and (is_verb(word) or _deletes(word))
        if (at == int(light) or beside or last or inside) and _is_deed(word) and _acts(word, candidate):
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
    parts = bare_words(candidate)
    if not parts:
        return
    first, *others = parts
    if _is_light(parts):
        yield others[0], 0.85
    yield from _placed(first, 0.95 if first not in METHODS else _LIKELY, _LIKELY)
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


def _meant_first(prose: Sequence[HeadVerb], heads: Sequence[str]) -> list[str]:
    """Return the verbs with what an object means before the verb it belongs to: `search` of "performs a search"."""
    meant = [one.verb for one in prose if one.kind == "meant" and one.verb in heads]
    return [*meant, *(verb for verb in heads if verb not in meant)]


def _agrees(word: str, head: str) -> bool:
    """Return True if two verbs both read or both change something."""
    return changes(word) == changes(head)


def _reads(word: str) -> bool:
    verb = base(word) or word
    return operation_classes(verb) is not None and not changes(verb) and verb not in OPERATING


def _is_verbal(word: str) -> bool:
    counts = lexicon().counts(word)
    mostly = counts.verb >= _OFTEN and counts.verb > 2 * counts.noun
    return base(word) == word and (mostly or word in SPOKEN or word in COMMANDS)


def _deletes(word: str) -> bool:
    classes = operation_classes(word)
    return classes is not None and classes.main == "DELETE"


def _is_deed(word: str) -> bool:
    """Return True if a word of a name may be a verb that acts."""
    return is_verb(word) or _is_verbal(word) or word in OPERATING or _deletes(word)


def _acts(word: str, candidate: Candidate) -> bool:
    verb = base(word) or word
    if verb in OPERATING:
        return True
    return changes(verb) and not (candidate.read_only and verb in _PRODUCING)
