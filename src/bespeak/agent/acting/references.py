"""Words that stand for what an earlier answer had, such as "the cheapest" or "it", and the items that they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.subschemas import inline
from bespeak.text.language.names import singular
from bespeak.text.reading.table import as_mapping

MOST_EACH: Final = 10  # items that one step is repeated for
MOST_ITEMS: Final = 1_000
_MEASURES: Final[tuple[tuple[str, str, str], ...]] = (
    ("price cost amount total rate fare fee", "cheapest,least expensive,lowest-priced", "most expensive,priciest"),
    ("size area capacity beds seats volume sqm", "smallest", "largest,biggest,greatest"),
    ("departure start begin arrival time date", "earliest,soonest", "latest"),
    ("created published updated date time", "oldest", "newest,most recent"),
    ("distance", "nearest,closest", "farthest,furthest"),
    ("duration minutes hours length time", "fastest,quickest,shortest", "longest,slowest"),
    ("rating score stars", "worst", "best rated,top rated,highest rated,best"),
)
"""Names of fields that are compared, with the words for their least and their greatest value."""
_BEST: Final = {
    word: (tuple(fields.split()), is_max)
    for fields, least, most in _MEASURES
    for is_max, words in ((False, least), (True, most))
    for word in words.split(",")
}
_ORDINALS: Final = {
    word: number
    for number, words in enumerate(
        [("first", "1st"), ("second", "2nd"), ("third", "3rd"), ("fourth", "4th"), ("fifth", "5th"),
         ("sixth", "6th"), ("seventh", "7th"), ("eighth", "8th"), ("ninth", "9th"), ("tenth", "10th")]
    )
    for word in words
}  # fmt: skip
_COUNTS: Final = {
    word: number
    for number, word in enumerate(("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 2)
}
_COUNT: Final = rf"({'|'.join(_COUNTS)}|[2-9]|10)"
_BEHIND: Final = r"(?:\s+(?:ones?|options?|of (?:these|them|those)))?\b"
_SUPERLATIVE: Final = re.compile(
    rf"\bthe\s+(?:{_COUNT}\s+)?({'|'.join(sorted(map(re.escape, _BEST), key=len, reverse=True))})\b"
    rf"(?:\s+{_COUNT}\b)?{_BEHIND}",
    re.IGNORECASE,
)
_ORDINAL: Final = re.compile(
    rf"(?<!from )(?<!on )(?<!until )(?<!till )(?<!to )(?<!by )\b(?:the\s+)?({'|'.join(_ORDINALS)}|last)\b"
    r"(?!\s+(?:of (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|name|class|floor|week|month|year|night|day))"
    rf"(?:\s+{_COUNT}\b)?{_BEHIND}",
    re.IGNORECASE,
)
_ALL: Final = re.compile(
    r"\b(?:them all|(?:all|each|every one|both) of (?:them|these|those)|each|both|them|these|those)\b",
    re.IGNORECASE,
)
_ANY: Final = re.compile(
    r"\b(?:one|any)(?: of (?:them|these|those))?\s*$|\bone of (?:them|these|those)\b", re.IGNORECASE
)
_IT: Final = re.compile(r"\b(?:it|that one|this one)\b|\b(?:that|this)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """Words of an instruction that mean items of an earlier answer."""

    words: str
    span: tuple[int, int]
    kind: str  # best, number, all, any or it
    number: int = 0  # of an item, from 0; -1 for the last
    count: int = 1
    fields: tuple[str, ...] = ()  # that may be compared, the likeliest first
    is_max: bool = False

    @property
    def many(self) -> bool:
        """True if the step is repeated for each item."""
        return self.kind == "all" or self.count > 1


def find_reference(text: str) -> Reference | None:
    """Find the words of a text that mean something in an earlier answer."""
    if found := _SUPERLATIVE.search(text):
        fields, is_max = _BEST[found[2].lower()]
        return Reference(found[0], found.span(), "best", 0, _count(found[1] or found[3]), fields, is_max)
    if found := _ORDINAL.search(text):
        number = -1 if found[1].lower() == "last" else _ORDINALS[found[1].lower()]
        return Reference(found[0], found.span(), "number", number, _count(found[2]))
    for kind, pattern in (("all", _ALL), ("any", _ANY), ("it", _IT)):
        if found := pattern.search(text):
            return Reference(found[0], found.span(), kind)
    if digits := re.fullmatch(r"(?:number |no\. ?|#)?([1-9]\d{0,3})", text.strip(), re.IGNORECASE):
        return Reference(text, (0, len(text)), "number", int(digits[1]) - 1)
    return None


def _count(word: str | None) -> int:
    return 1 if not word else _COUNTS.get(word.lower()) or int(word)


def substitute(text: str, noun: str, found: Reference) -> str:
    """Return a text that says what it is about: "book the room" for "book it"."""
    behind = text[found.span[1] :]
    named = re.match(rf"\s*(?:the\s+)?{re.escape(noun)}", behind, re.IGNORECASE) if noun else None
    thing = "" if named else f" {noun or 'one'}"
    return f"{text[: found.span[0]]}the{thing}{behind}"


class UnclearError(Exception):
    """What a reference means cannot be said; the text says why."""


def choose_items(items: Sequence[Any], found: Reference) -> tuple[list[Any], str]:
    """Return the items that a reference means, and what they were chosen by. Raises UnclearError if it is not clear."""
    if not items:
        raise UnclearError("nothing was found")
    if found.kind == "all" and len(items) > MOST_EACH:
        raise UnclearError(f"{found.words} means {len(items)} items, and at most {MOST_EACH} are taken at once")
    if found.kind == "it" and len(items) > 1:
        raise UnclearError(f"{len(items)} items were found, and {found.words!r} does not say which")
    if found.kind == "best":
        field, values = _compared(items, found)
        order = sorted(range(len(items)), key=values.__getitem__, reverse=found.is_max)[: found.count]
        ties = sum(value == values[order[-1]] for value in values)
        tied = f", the first of {ties} that are alike" if ties > 1 and found.count == 1 else ""
        return [items[at] for at in order], f"{found.words} by {field}{tied}"
    if found.kind == "number":
        start = max(len(items) - found.count, 0) if found.number < 0 else found.number
        if not (picked := list(items[start : start + found.count])):
            raise UnclearError(f"there are only {len(items)} items, so {found.words!r} means none of them")
        return picked, f"{found.words} of {len(items)}"
    return (list(items), found.words) if found.kind == "all" else ([items[0]], found.words)


def _compared(items: Sequence[Any], found: Reference) -> tuple[str, list[Any]]:
    names = list(items[0]) if all(isinstance(one, Mapping) for one in items) else []
    for name in compared_fields(names, found):
        values = [_measure(one.get(name)) for one in items]
        units = {str(unit) for one in items for unit in _units(one, one.get(name))}
        kinds = {(type(value), getattr(value, "tzinfo", None) is None) for value in values}
        if len(kinds) == 1 and len(units) <= 1 and values[0] is not None:
            return name, values
    raise UnclearError(f"nothing in the answer says which is {found.words!r}")


def compared_fields(names: Iterable[str], found: Reference) -> list[str]:
    """Return the fields that a superlative may compare: those that are named like it, then those that contain it."""
    listed = [str(name) for name in names]
    exact = [name for field in found.fields for name in listed if name.lower() == field]
    return list(dict.fromkeys([*exact, *(name for field in found.fields for name in listed if field in name.lower())]))


def _measure(value: Any) -> Any:
    """Return a value that can be compared: a number, or a time; None if there is none."""
    if isinstance(value, Mapping):
        value = value.get("amount", value.get("value"))
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = Decimal(value if isinstance(value, int) else str(value))  # a long integer cannot be written as text
        return number if number.is_finite() else None
    except InvalidOperation:
        pass
    try:
        return datetime.fromisoformat(str(value))
    except ValueError:
        return None


def _units(item: Mapping[str, Any], value: Any) -> list[Any]:
    inner = value if isinstance(value, Mapping) else {}
    return [one[name] for one in (item, inner) for name in ("currency", "unit") if one.get(name) is not None][-1:]


@dataclass(frozen=True, slots=True)
class Shape:
    """What the answers of an endpoint are made of."""

    noun: str
    fields: Mapping[str, Any]  # schemas of the members of an item; empty if the contract does not say
    member: str | None  # member that has the list; None if the answer is one item
    is_list: bool


def shape_of(endpoint: Endpoint) -> Shape:
    """Return what the output schema of an endpoint says of its items."""
    root = endpoint.output_schema
    resource = next((part for part in reversed(endpoint.path.split("/")) if part and part[0] != "{"), "item")
    noun = singular(resource.replace("_", " ").replace("-", " "))
    schema = inline(root, root)
    if isinstance(schema.get("items"), Mapping):
        return Shape(noun, _members(schema["items"], root), None, True)
    members = _members(schema, root)
    lists = [name for name, one in members.items() if isinstance(one.get("items"), Mapping)]
    if len(lists) == 1:
        [name] = lists
        return Shape(singular(name.replace("_", " ")), _members(members[name]["items"], root), name, True)
    return Shape(noun, members, None, False)


def _members(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    listed = as_mapping(inline(schema, root).get("properties")).items()
    return {name: part for name, one in listed if isinstance(part := inline(one, root), Mapping)}


def items_in(output: Any) -> tuple[str, list[Any]]:
    """Return the list that an output is or has as its only one, with its name; else the output as a list of one."""
    if isinstance(output, list):
        return "", output[:MOST_ITEMS]
    lists = (
        [(name, one) for name, one in output.items() if isinstance(one, list)] if isinstance(output, Mapping) else []
    )
    if len(lists) == 1:
        return lists[0][0], lists[0][1][:MOST_ITEMS]
    return "", [] if output is None else [output]


def member_for(name: str, members: Iterable[str], noun: str) -> str | None:
    """Return the member of an item that an argument is named after: `room_id` for `room_id`, `room` or `id`."""
    known, flat = set(members), noun.replace(" ", "_")
    own = (f"{flat}_id", f"{flat}Id", "id")
    wanted = (name, *own) if name in (*own[:2], flat) else (name,)
    return next((one for one in wanted if one in known), None)
