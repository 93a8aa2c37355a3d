"""Path of a candidate that has none: the thing that its name is about, else what its first sentence is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from bespeak.contract.grammar.path_syntax import leaking_segment
from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.naming import plural, words
from bespeak.documents.adoption.path_choice import RELATING
from bespeak.documents.adoption.tool_verb import bare_words
from bespeak.documents.adoption.verb_words import LIGHT, heads_of, is_verb
from bespeak.text.language.light_verb import object_places
from bespeak.text.language.sentence import words as sentence_words

_AUXILIARY: Final = frozenset({"is", "are", "was", "one", "more", "several", "multiple"})
_MOST_WORDS: Final = 3
"""Words of a sentence that name a thing."""


def named_paths(candidate: Candidate, word: str, verbs: frozenset[str], *, says_all: bool) -> list[str]:
    """Return paths for a candidate, the best first.

    `word` is the word of its name or sentence that is the verb. If the verb does not say all of it, the path does.
    """
    whole, parts = words(candidate.name), bare_words(candidate)
    things = _trimmed(_things(parts, word))
    short = "-".join(takewhile(lambda part: part not in RELATING, things))
    found = [short, "-".join(things), "-".join(whole)] if short else []
    found += [word] if not short and not says_all and word in parts else []
    found += ["-".join(_object(candidate)), *candidate.tags[:1]]
    names = dict.fromkeys(name for name in found if name)
    before = f"/{candidate.service}" if candidate.service else ""
    return [f"{before}/{_as_noun(name, verbs)}" for name in names] or [before]


def _things(parts: Sequence[str], word: str) -> list[str]:
    """Return a name without the verbs at its beginning: what follows the chosen one, else what precedes it."""
    start = 0
    while start < len(parts) and (parts[start] in (word, "or", "and") or is_verb(parts[start])):
        start += 1
    if not start and parts[:1] and parts[0] in LIGHT and parts[1:2] == (word,):
        start = 2
    rest = list(parts[start:])
    if not start and word in rest[1:]:
        at = rest.index(word, 1)
        return rest[at + 1 :] or rest[:at]
    return rest


def _trimmed(parts: Sequence[str]) -> list[str]:
    """Return a name without the prepositions it begins with."""
    kept = list(parts)
    while kept and kept[0] in RELATING:
        kept.pop(0)
    return kept


def _object(candidate: Candidate) -> Iterator[str]:
    """Yield the words for the object of the first sentence: `changes` in "Records changes to the repository"."""
    for text in (candidate.summary, candidate.description):
        heads = heads_of(text)
        if not heads:
            continue
        sentence = sentence_words(text)
        at = next((place for place, one in enumerate(sentence) if one.end == heads[0].end), 0)
        places = object_places([one.lower for one in sentence], at + 1)
        # Only words that follow each other name one thing.
        joined = [place for index, place in enumerate(places) if place == places[0] + index]
        named = [sentence[place].lower for place in joined if sentence[place].lower not in _AUXILIARY]
        if 0 < len(named) <= _MOST_WORDS and all(part.replace("-", "").isalnum() for part in named):
            yield from named
            return


def _as_noun(name: str, verbs: frozenset[str]) -> str:
    return name if leaking_segment(f"/{name}", verbs) is None else plural(name)
