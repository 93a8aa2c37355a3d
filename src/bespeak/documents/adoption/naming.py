"""Conversion of names: words, snake_case, hyphens, plural and singular."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Final

from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.sentence import word_set

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")
_UNDOING: Final = re.compile(r"\bun (?=[a-z])")  # a prefix that is written apart: `unSuspend`
_LONGEST: Final = 60
_HISSING: Final = ("s", "x", "z", "ch", "sh")
_SPELLED: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "ø": "o", "ł": "l"}
)
"""Spellings of letters that ASCII does not have."""
MANNERS: Final = frozenset({"batch", "bulk", "mass", "multi"})
"""Words before a verb that say how many things it is about."""
_JOINED: Final = frozenset({"re", "dry"})  # words that make one verb with the next: re-run, dry-run
_NO_PLURALS: Final = frozenset(
    {
        *("news", "series", "species", "dns", "sms", "gps", "https", "aws", "ios", "kubernetes", "canvas", "alias"),
        *("atlas", "redis", "debris", "exists"),
    }
)


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """Split a name into lower-case words: `createPet`, `create_pet` and `create-pet` give the same ones."""
    text = text[:400]
    if not text.isascii():
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFC", text).translate(_SPELLED))
        text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = _UNDOING.sub("un", " ".join(_NO_WORD.split(_HUMP.sub(" ", text))).lower())
    return tuple(text.split())


def without_manner(parts: Sequence[str]) -> Sequence[str]:
    """Return the words of a name from its verb on: `batchGetItem` and `re-run` begin with `get` and `rerun`."""
    if len(parts) > 1 and parts[0] in MANNERS:
        return parts[1:]
    return (parts[0] + parts[1], *parts[2:]) if len(parts) > 1 and parts[0] in _JOINED else parts


def snake_case(text: str, otherwise: str = "field") -> str:
    """Return a name in snake_case that starts with a letter."""
    name = "_".join(words(text))[:_LONGEST].strip("_")
    if not name:
        return otherwise
    return name if name[0].isalpha() else f"{otherwise}_{name}"


def hyphenated(text: str) -> str:
    """Join the words of a name into a path segment; empty if it has none."""
    return "-".join(words(text))[:_LONGEST].strip("-")


def plural(word: str) -> str:
    """Return the plural of the last word in a segment; a plural stays as it is."""
    if word.endswith(("ss", "us", "sis", "xis")) or not word.endswith("s"):
        if word.endswith("y") and word[-2:-1] not in "aeiou":
            return word[:-1] + "ies"
        return word + ("es" if word.endswith(_HISSING) else "s")
    return word


def singular(word: str) -> str:
    """Return the singular of a word that may be a plural."""
    if not is_plural(word):
        return word
    if word.endswith("ies") and len(word) > 4 and not _ends_in_ie(word[:-1]):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes", "uses")) and not lexicon().counts(word[:-1]).noun:
        return word[:-2]  # branches; but caches and houses are of `cache` and `house`
    return word[:-1]


def _ends_in_ie(word: str) -> bool:
    """Return True for `movie` and `pie`, which are nouns, unlike `movy` and `py`."""
    nouns = lexicon().nouns
    return word in nouns and word[:-2] + "y" not in nouns


def is_plural(word: str) -> bool:
    """Return True if a word looks like a plural."""
    return (
        word.endswith("s")
        and not word.endswith(("ss", "us", "sis", "xis"))
        and len(word) > 3
        and word not in _NO_PLURALS
    )


def unused(name: str, taken: Container[str]) -> str:
    """Return the name, with the first free number appended if it is taken."""
    number, found = 2, name
    while found in taken:
        found = f"{name}_{number}"
        number += 1
    return found


_ABBREVIATIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ids", "uid", "gid", "uuid", "guid"), "id"),
    "acct": "account",
    "addr": "address",
    "amt": "amount",
    "cust": "customer",
    "dept": "department",
    "desc": "description",
    "doc": "document",
    "emp": "employee",
    "img": "image",
    "lat": "latitude",
    "lng": "longitude",
    "lon": "longitude",
    "mail": "email",
    "msg": "message",
    "num": "number",
    "org": "organization",
    "organisation": "organization",
    "people": "person",
    "pic": "picture",
    "postcode": "zip",
    "qty": "quantity",
    "repo": "repository",
    "tel": "phone",
    "telephone": "phone",
    "trx": "transaction",
    "txn": "transaction",
}
CURSORS: Final = word_set(
    "after continuation continuation_token cursor next next_cursor next_page_token next_token page_cursor page_token "
    "starting_after token"
)
PAGES: Final = word_set("page page_number")
OFFSETS: Final = word_set("offset skip start_index")
LIMITS: Final = word_set("count first limit max_item max_result page_limit page_size per_page size take top")
"""Names of inputs that ask for a page of a list, in words joined by `join`: a cursor, a page, an offset, a limit."""


@lru_cache(maxsize=16_384)
def stems(name: str) -> tuple[str, ...]:
    """Split a name into its words, in singular and without abbreviations; `idBoard` is the id of a board."""
    found = [_stem(word) for word in words(name[:120])]
    for at in range(len(found) - 1):
        if found[at] == "e" and found[at + 1] == "email":  # e-mail
            found[at] = ""
    found = [word for word in found if word]
    return (*found[1:], "id") if found[:1] == ["id"] else tuple(found)


def _stem(word: str) -> str:
    word = _ABBREVIATIONS.get(word, word)
    return _ABBREVIATIONS.get(singular(word), singular(word))


def join(parts: tuple[str, ...]) -> str:
    """Write words as one term."""
    return "_".join(parts)
