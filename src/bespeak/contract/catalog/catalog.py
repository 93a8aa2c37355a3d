"""The catalog of approved verbs (AGTP-API 3, 4). Near matches are look-ups: a stranger's typo must not cost time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from bespeak.contract.endpoint import format_warning

_LONGEST: Final = 40  # limit of a text's length; a longer one is not a typo
_SHORTEST_STEM: Final = 4
_LONGEST_SEARCH: Final = 300
_MOST_FOUND: Final = 10
_USUAL_WORD: Final = 10  # a word in more than one of so many descriptions says nothing
_WORD: Final = re.compile(r"[a-z]{3,}")


class NearWords:
    """An index of words by what remains without one letter: words that differ by one letter share a remainder."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = frozenset(words)
        self._rests: dict[str, list[str]] = {}
        for word in sorted(self._words):
            for rest in set(_rests(word)):
                self._rests.setdefault(rest, []).append(word)

    def near(self, text: str) -> list[str]:
        """Return up to three words: by a typo, or the stem of the text (BOOKING: BOOK)."""
        wanted = text.upper()
        if len(wanted) > _LONGEST:
            return []
        found = {word for rest in _rests(wanted) for word in self._rests.get(rest, ()) if _is_slip(wanted, word)}
        found.update(self._stems(wanted))
        return sorted(found, key=lambda word: (abs(len(word) - len(wanted)), word))[:3]

    def _stems(self, wanted: str) -> Iterator[str]:
        for end in range(len(wanted) - 1, _SHORTEST_STEM - 1, -1):
            if wanted[:end] in self._words:
                yield wanted[:end]
                return


def _is_slip(text: str, word: str) -> bool:
    """Return True if one letter is added, missing or wrong, or two are swapped: ERASE is not a slip of LEASE.

    A text with another first letter is another word, as CEASE is.
    """
    if len(text) != len(word):
        return True
    wrong = [at for at in range(len(text)) if text[at] != word[at]]
    if len(wrong) < 2:
        return wrong != [0]
    return len(wrong) == 2 and text[wrong[0]] == word[wrong[1]] and text[wrong[1]] == word[wrong[0]]


def _rests(word: str) -> Iterator[str]:
    yield word
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One approved verb."""

    name: str
    categories: tuple[str, ...]  # categories; the first is the primary one
    description: str
    deprecated_in: str | None = None
    removed_in: str | None = None
    successor: str | None = None

    @property
    def warning(self) -> str | None:
        """Value of AGTP-Catalog-Warning, or None for a verb that is not deprecated (AGTP-API 4.4)."""
        return format_warning(self.successor, self.removed_in) if self.deprecated_in else None

    def to_json(self) -> dict[str, Any]:
        """Return the verb's entry in a catalog document; deprecation appears if it is set."""
        entry: dict[str, Any] = {"name": self.name, "categories": [*self.categories], "description": self.description}
        deprecation = {key: getattr(self, key) for key in ("deprecated_in", "removed_in", "successor")}
        return entry | {key: value for key, value in deprecation.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyVerb:
    """An HTTP verb and the AGTP verb to use instead."""

    name: str
    preferred: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """One version of the vocabulary."""

    version: str
    embedded: tuple[str, ...]
    legacy: Mapping[str, LegacyVerb]
    categories: Mapping[str, str]
    verbs: Mapping[str, Verb]

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all approved verbs, for membership tests on the hot path and the leakage check."""
        return frozenset(self.verbs)

    def warns_of(self, method: str) -> str | None:
        """Return the warning for a method, or None (AGTP-API 4.4)."""
        verb = self.verbs.get(method)
        return verb.warning if verb is not None else None

    @cached_property
    def _near(self) -> NearWords:
        return NearWords(self.names)

    def near(self, method: str) -> list[str]:
        """Return approved verbs spelt like an unknown word; for a legacy verb, the one to use instead."""
        legacy = self.legacy.get(method.upper())
        return [legacy.preferred] if legacy else self._near.near(method)

    def suggest(self, method: str) -> list[str]:
        """Return approved verbs to use instead of an unknown word.

        A verb of English is not a typo: it leads to verbs that mean the same, if there are any. Loads English.
        """
        unknown = method.upper() not in self.legacy and len(method) <= _LONGEST
        meant = _mean_alike(method.lower(), self.names) if unknown and method.upper() not in self.names else ()
        return list(meant) or self.near(method)

    def search(self, text: str) -> list[Verb]:
        """Return verbs that mean what a verb, noun or sentence says, best first, then verbs described by its words.

        Loads English.
        """
        wanted = text[:_LONGEST_SEARCH].strip().lower()
        legacy = self.legacy.get(wanted.upper())
        named = (wanted.upper(), legacy.preferred if legacy else "")
        meant, half = _mean_alike(wanted, self.names, _MOST_FOUND), _MOST_FOUND // 2
        found = dict.fromkeys((*named, *meant[:half], *self._described(wanted)[:half], *meant))
        return [self.verbs[name] for name in found if name in self.verbs][:_MOST_FOUND]

    def _described(self, text: str) -> list[str]:
        """Return the verbs whose descriptions have words of a text, those with rare words first."""
        told = {name: {*_WORD.findall(verb.description.lower())} for name, verb in self.verbs.items()}
        uses = Counter(word for words in told.values() for word in words)
        asked = {word for word in _WORD.findall(text) if uses[word] * _USUAL_WORD <= len(told)}
        scores = {name: sum(1 / uses[word] for word in words & asked) for name, words in told.items()}
        return sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))

    def verbs_in(self, category: str) -> list[Verb]:
        return [verb for verb in self.verbs.values() if category in verb.categories]


@lru_cache(maxsize=4096)
def _mean_alike(text: str, names: frozenset[str], most: int = 3) -> tuple[str, ...]:
    from bespeak.text.language.consistency import fitting_verbs  # noqa: PLC0415 - servers do without English
    from bespeak.text.language.lexicon import lexicon, meanings  # noqa: PLC0415
    from bespeak.text.language.verb_form import lemmas  # noqa: PLC0415

    if " " in text:
        return fitting_verbs(text, sorted(names), most)
    forms = [text, *(lemma.verb for lemma in lemmas(text)), meanings().verb_of(text)]
    verb = next((form for form in forms if form in lexicon().verbs), None)
    return fitting_verbs(f"{verb.capitalize()} the item.", sorted(names), most) if verb else ()


_VERSION = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:[-+][0-9A-Za-z.+-]{1,64})?")


class Version(NamedTuple):
    """A parsed version, ordered. Labels after `-` or `+` do not count."""

    major: int
    minor: int
    patch: int


def parse_version(text: str) -> Version | None:
    match = _VERSION.fullmatch(text)
    return Version(int(match[1]), int(match[2]), int(match[3])) if match else None


def common_version(preferred: str, mine: Iterable[str], theirs: Iterable[str]) -> str | None:
    """Return the version to use: the preferred one if both support it, else the highest common one, else None."""
    shared = set(mine) & set(theirs)
    if preferred in shared:
        return preferred
    ranked = [(parsed, text) for text in shared if (parsed := parse_version(text)) is not None]
    return max(ranked)[1] if ranked else None
