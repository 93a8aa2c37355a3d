"""Token hints: `compact`, `fields` and `since` in the query, with which a caller asks for less of a response."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.instant import read_moment
from bespeak.protocol.exchange.refusal import Refused

COMPACT: Final = "compact"
FIELDS: Final = "fields"
SINCE: Final = "since"
HINTS: Final = frozenset({COMPACT, FIELDS, SINCE})
MOST_CHARACTERS: Final = 2_000
MOST_FIELDS: Final = 100
MOST_LEVELS: Final = 10
LIST: Final = "[]"  # marker in a place for every item of a list
UNCHANGED: Final = object()  # marker for a response in which nothing has changed
Wanted = dict[str, Any]  # requested members by name; None for all of a member, or the members requested inside it
Place = tuple[str, ...]  # place in an output: member names and LIST
_SHOWN: Final = 80
_DATE: Final = len("2026-12-01")


class TokenHints(msgspec.Struct, frozen=True):
    compact: bool = False
    fields: Wanted | None = None
    since: datetime | None = None


def read_hints(given: Mapping[str, str]) -> TokenHints | Refused:
    compact, listed, moment = given.get(COMPACT), given.get(FIELDS), given.get(SINCE)
    if compact is not None and compact not in ("true", "false"):
        return _wrong(COMPACT, f"{compact[:_SHOWN]!r} is not valid; write true or false.")
    fields = None if listed is None else read_fields(listed)
    if isinstance(fields, str):
        return _wrong(FIELDS, fields)
    since = None if moment is None else read_since(moment)
    if moment is not None and since is None:
        advice = "write a date or time of ISO 8601, like 2026-12-01T10:00:00Z; without an offset it is UTC."
        return _wrong(SINCE, f"{moment[:_SHOWN]!r} is not a valid time: {advice}")
    return TokenHints(compact == "true", fields, since)


def read_fields(text: str) -> Wanted | str:
    """Parse a list of member names, nested by dots, or return what is wrong with it."""
    if len(text) > MOST_CHARACTERS:
        return f"a list of fields may have at most {MOST_CHARACTERS} characters; got {len(text)}."
    names = text.split(",")
    if len(names) > MOST_FIELDS:
        return f"at most {MOST_FIELDS} fields are allowed; got {len(names)}."
    wanted: Wanted = {}
    for name in names:
        parts = [part.strip() for part in name.split(".")]
        if not all(parts):
            return f"{name[:_SHOWN]!r} is not a field name; write names separated by commas, like id,owner.name."
        if len(parts) > MOST_LEVELS:
            return f"{name[:_SHOWN]!r} has more than {MOST_LEVELS} levels."
        *around, last = parts
        place: Wanted | None = wanted
        for part in around:
            place = None if place is None else place.setdefault(part, {})
        if place is not None:  # else all of a member around it is wanted
            place[last] = None
    return wanted


def read_since(text: str) -> datetime | None:
    # In a query string a plus is a space, which few callers know: before an offset it can only be a plus.
    return read_moment(text.replace(" ", "+") if "T" in text else text)


def read_place(text: str) -> Place | None:
    """Parse a place such as `rooms[].updated_at`; None if it does not end in a member."""
    place: list[str] = []
    if len(text) > MOST_CHARACTERS:
        return None
    for index, part in enumerate(text.split(".")):
        name = part
        lists = 0
        while name.endswith(LIST):
            name = name.removesuffix(LIST)
            lists += 1
        if name:
            place.append(name)
        elif index or not lists:
            return None
        place += [LIST] * lists
    return None if place[-1] == LIST else tuple(place)


def select(value: Any, wanted: Wanted) -> Any:
    """Keep only the requested members, in each item of a list. Missing members are omitted."""
    if type(value) is list:
        return [select(item, wanted) for item in value if item is None or type(item) in _CONTAINERS]
    if type(value) is not dict:
        return value
    chosen = {}
    for name, inside in wanted.items():
        if name in value:
            item = value[name]
            if inside is None or item is None:
                chosen[name] = item
            elif type(item) in _CONTAINERS:
                chosen[name] = select(item, inside)
    return chosen


_CONTAINERS: Final = (dict, list)


def keep_changed(value: Any, place: Place, since: datetime) -> Any:
    """Remove unchanged items; return UNCHANGED for an unchanged object. Items without a time stay."""
    if LIST not in place:
        return UNCHANGED if _is_unchanged(value, place, since) else value
    step, rest = place[0], place[1:]
    if step == LIST:
        if type(value) is not list:
            return value
        if LIST in rest:
            return [keep_changed(item, rest, since) for item in value]
        return [item for item in value if not _is_unchanged(item, rest, since)]
    if type(value) is not dict or step not in value:
        return value
    return {**value, step: keep_changed(value[step], rest, since)}


def _is_unchanged(value: Any, place: Place, since: datetime) -> bool:
    for name in place:
        if type(value) is not dict or name not in value:
            return False
        value = value[name]
    moment = read_moment(value) if type(value) is str else None
    # A date is a whole day: the change may have come at its end.
    return moment is not None and since - moment >= timedelta(days=1 if len(value) <= _DATE else 0)


def _wrong(name: str, why: str) -> Refused:
    return Refused(status.BAD_REQUEST, "invalid-token-hint", f"{name}: {why}", {"parameter": name})
