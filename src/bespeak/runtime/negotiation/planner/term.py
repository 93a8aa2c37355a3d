"""Terms: names as words in singular, with the noun they name, what they compare, and what else they are called."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.documents.adoption.naming import singular, words
from bespeak.text.language.sentence import word_set

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
COLLECTIVE: Final = word_set("collection data detail entry history info list log profile record")
"""Last words that say how a noun is kept, not what it is: a transaction history holds transactions."""
WRAPPERS: Final = word_set(
    "body content datum data document edge element entity entry hit item list member node object output page payload "
    "record response result row value"
)
"""Containers that say nothing about what they contain."""
GENERIC: Final = word_set(
    "category code color country currency date external first format id key kind language last level locale mode name "
    "next object parent position previous resource role self sort source state status target text time title type "
    "unique unit url value version"
)
"""Words that are attributes or roles although an id may follow them: a bare `status` is not a key."""
POSITIONS: Final = word_set("external first last next original parent previous root self source target unique")
"""Words before an id that place a thing among its own kind: `parent_id` of a folder is the id of a folder."""
KEYS: Final = word_set(
    "account_number barcode code email handle iban isbn key login name number phone reference serial_number sku slug "
    "symbol title username vin"
)
"""Attributes besides the id that usually tell one thing from the others of its kind."""
SHARED: Final = frozenset(("label", "name", "title"))
"""Keys that two things may have in common, so that a caller may choose by them, and a plan may not."""
SEARCHES: Final = word_set("keyword phrase q query search search_term search_text term text")
"""Inputs that take words to look for."""
TEXTS: Final = SEARCHES | SHARED | {"email", "username"}
"""Attributes that one can search for as text."""
_COMPARING_FIRST: Final[Mapping[str, str]] = {
    "min": "gte",
    "minimum": "gte",
    "max": "lte",
    "maximum": "lte",
    "before": "lt",
    "after": "gt",
    "since": "gte",
    "until": "lte",
}
_COMPARING_LAST: Final[Mapping[str, str]] = {
    **_COMPARING_FIRST,
    "gte": "gte",
    "lte": "lte",
    "gt": "gt",
    "lt": "lt",
    "from": "gte",
    "to": "lte",
    "contain": "contains",
    "like": "contains",
}
_SYNONYMS: Final = (
    word_set("created_at created creation_date date_created created_on created_date"),
    word_set("updated_at updated modified modified_at last_modified last_updated"),
    word_set("phone phone_number"),
    word_set("zip zip_code postal_code"),
    word_set("email email_address"),
    word_set("url link href"),
    word_set("customer client"),
    word_set("booking reservation"),
    word_set("movie film"),
    word_set("employee staff"),
    word_set("picture photo image"),
    word_set("vendor supplier"),
)
_OTHER_NAMES: Final = {word: sorted(group - {word}) for group in _SYNONYMS for word in group}


class Comparison(NamedTuple):
    """An input that compares: `max_price` is `lte` of `price`."""

    op: str
    attribute: str


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


@lru_cache(maxsize=16_384)
def noun_of(parts: tuple[str, ...]) -> str:
    """Return the noun that words name, without a last word that only says how it is kept."""
    while len(parts) > 1 and parts[-1] in COLLECTIVE:
        parts = parts[:-1]
    return join(parts)


def other_names(term: str) -> list[str]:
    """Return synonyms of an attribute or a noun."""
    return _OTHER_NAMES.get(term, [])


def comparison(parts: tuple[str, ...], *, is_time: bool = False) -> Comparison | None:
    """Return what an input compares; None if its name does not say so. `from_x` is a bound only of times."""
    if len(parts) < 2:
        op = _COMPARING_FIRST.get(parts[0]) if parts and is_time else None
        return Comparison(op, "date") if op else None
    first = _COMPARING_LAST.get(parts[0]) if is_time else _COMPARING_FIRST.get(parts[0])
    if first:
        return Comparison(first, join(parts[1:]))
    last = _COMPARING_LAST.get(parts[-1])
    return Comparison(last, join(parts[:-1])) if last else None
