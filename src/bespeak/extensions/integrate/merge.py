"""MERGE: rows and objects of several sources become one, and every conflict is told (Tier 2 6.1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.acquire.methods import read_thing
from bespeak.extensions.acquire.store import NewRow, PutResources, ReadResources
from bespeak.extensions.data.collection import MOST_ROWS, Row, find_named, value_of
from bespeak.extensions.integrate.methods import LONGEST_KEY, MOST_PUT, MOST_ROW, check_room, check_target
from bespeak.protocol.exchange.instant import read_instant, write_instant
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import compute_in_thread, run_in_thread
from bespeak.runtime.handling import check_needs, effects, handler, invalid, new_id, refusal, to_json

_MERGE = STANDARD["MERGE"]
_MOST_TOLD: Final = 1000  # conflicts of an answer
_MOST_REFUSED: Final = 100  # conflicts of a refusal
_OF_SERVER: Final[Mapping[str, frozenset[str]]] = {
    "resources": frozenset(("resource_id",)),
    "entities": frozenset(("entity_id", "owner", "version", "updated_at")),
}  # members of rows that are the server's, by the kind of their collection
_ABSENT: Final = object()


class _Entry(NamedTuple):
    """A row, or one value of it, with where it comes from."""

    source: str
    value: Any
    time: float | None  # when it was changed; None if that is not known


class _Source(NamedTuple):
    name: str
    entries: list[_Entry]
    is_object: bool = False  # True if it is one thing and not rows


@handler
async def merge(call: RoutedCall) -> Effects | Envelope:
    """Answer MERGE /. A conflict that no policy resolves is a refusal, unless the strategy leaves it to a person."""
    given, into = call.input, call.input.get("into")
    if into is not None:
        check_needs(call)
        await check_target(call, _MERGE, into, "into")
    key = [given["key"]] if isinstance(given.get("key"), str) else given.get("key", [])
    places = {f"sources/{number}": one for number, one in enumerate(given["sources"])}
    sources: list[_Source] = []
    left = MOST_ROWS
    for place, one in (places | ({"base": given["base"]} if "base" in given else {})).items():
        sources.append(await _read(call, one, place, key, left))
        left -= len(sources[-1].entries)
    base = sources.pop() if "base" in given else None
    if base is not None and given.get("strategy") == "intersection":
        raise invalid("strategy", "is intersection, but a base tells what is added and removed; use union.")
    merging = _Merging(given, key, whole=all(one.is_object for one in sources))
    merged = await compute_in_thread(call.agent_id, merging.combine, sources, base)
    manual, unresolved = given.get("strategy") == "manual", merging.unresolved
    if unresolved and not (manual and into is None):
        message = f"{unresolved} of {merging.count} conflicts are not resolved; name a policy in `conflict_resolution`."
        told = merging.conflicts[:_MOST_REFUSED]
        raise refusal(_MERGE, "merge-conflict", message, conflicts=told, conflict_count=merging.count)
    result = {
        "merge_id": new_id("merge"),
        "strategy": given.get("strategy", "union"),
        "merged": merged[0] if merging.whole and merged else merged,
        "count": len(merged),
        "sources": [{"source": one.name, "rows": len(one.entries)} for one in sources],
        "conflicts": merging.conflicts,
        "conflict_count": merging.count,
        "unresolved": unresolved,
        "removed": merging.removed,
        "merged_at": write_instant(time.time()),
    }
    if into is None:
        return Envelope(result)
    rows = await run_in_thread(_check_rows, merged, key)
    await check_room(call, _MERGE, len(rows))
    put = PutResources(into, call.agent_id or "", rows, "overwrite")
    return effects([put], lambda done: {**result, "into": into, **msgspec.to_builtins(done[0])}, {})


async def _read(call: RoutedCall, given: Any, place: str, key: Sequence[str], left: int) -> _Source:
    """Read a source: rows, a collection, a resource or an object. It may have as many rows as are left."""
    member, name = place.partition("/")[0], place

    def timed(row: Row, changed: float | None = None) -> _Entry:
        told = value_of(row, call.input["time"]) if "time" in call.input else changed
        told = read_instant(told) if isinstance(told, str) else told
        return _Entry(name, row, float(told) if isinstance(told, int | float) else None)

    if isinstance(given, list):
        if len(given) > left:
            raise invalid(member, f"must have at most {MOST_ROWS:,} rows in all.")
        if not all(isinstance(row, Mapping) for row in given):
            raise invalid(member, f"has a row in {place} that is not an object.")
        return _Source(name, [timed(row) for row in given])
    if isinstance(given, Mapping) and not ("collection" in given and given.keys() <= {"collection", "filter"}):
        return _Source(name, [timed(given)], True)
    wanted = given if isinstance(given, str) else given["collection"]
    found = await read_thing(call, wanted) if isinstance(given, str) else None
    if found is not None:
        name = found["resource_id"]
        if not isinstance(found["content"], Mapping):
            raise invalid(member, f"has {name} in {place}, which is not an object.")
        return _Source(name, [timed(found["content"], found.get("updated"))], True)
    filters = {} if wanted is given else given.get("filter", {})
    if not isinstance(wanted, str) or not isinstance(filters, Mapping):
        raise invalid(member, f"names a collection wrongly in {place}.")
    collection, conditions = await find_named(call, _MERGE, {"collection": wanted, "filter": filters}, member)
    rows = await collection.gather(conditions, left)
    name, hidden = collection.name, _OF_SERVER.get(collection.kind, frozenset()) - set(key)
    times: dict[Any, float | None] = {}
    store, asked = call.server.store, (call.input.get("strategy"), call.input.get("conflict_resolution"))
    if collection.kind == "resources" and store is not None and "latest" in str(asked) and "time" not in call.input:
        ids = tuple(int(row["resource_id"].removeprefix("res-")) for row in rows)
        times = {one.resource_id: one.updated for one in await store.read(ReadResources(ids))}
    elif collection.kind == "entities":
        times = {row["entity_id"]: read_instant(row["updated_at"]) for row in rows}
    changed = [times.get(row.get("resource_id", row.get("entity_id"))) for row in rows]
    shown = [{one: value for one, value in row.items() if one not in hidden} for row in rows]
    return _Source(name, list(map(timed, shown, changed)))


def _encode(value: Any) -> bytes:
    return b"" if value is _ABSENT else msgspec.json.encode(value, order="sorted")


def _check_rows(rows: Sequence[Row], key: Sequence[str]) -> tuple[NewRow, ...]:
    """Return the rows as they are stored, with the text of their key."""
    if len(rows) > MOST_PUT:
        raise invalid("into", f"takes at most {MOST_PUT:,} rows of one call; the result has {len(rows):,}.")
    made: list[NewRow] = []
    for row in rows:
        values = [value_of(row, name) for name in key]
        plain = len(values) == 1 and isinstance(values[0], str | int) and not isinstance(values[0], bool)
        text, data = str(values[0]) if plain else to_json(values), to_json(row)
        if "resource_id" in row or len(data) > MOST_ROW or len(text) > LONGEST_KEY or "\0" in text or not text:
            reason = f"has a member resource_id, more than {MOST_ROW // 1024} KiB, or a key that is empty or too long"
            raise invalid("into", f"cannot take the row with the key {text[:80]!r}: it {reason}.")
        made.append(NewRow(text if key else None, data))
    return tuple(made)


class _Merging:
    """One merge: what it was asked for, and what it has met."""

    def __init__(self, given: Mapping[str, Any], key: Sequence[str], *, whole: bool) -> None:
        self.strategy = given.get("strategy", "union")
        policy = given.get("conflict_resolution", {})
        self._policies = {"*": policy} if isinstance(policy, str) else policy
        self._otherwise = self._policies.get("*", "latest" if self.strategy == "latest" else None)
        self._key = key
        self.whole = whole and not key  # True if the sources are objects that become one
        self.conflicts: list[dict[str, Any]] = []
        self.count = self.unresolved = self.removed = 0

    def combine(self, sources: Sequence[_Source], base: _Source | None) -> list[dict[str, Any]]:
        groups: dict[bytes, list[list[_Entry]]] = {}
        known = {self._identify(one, "base"): one for one in (base.entries if base else ())}
        for identity in known:
            groups[identity] = [[] for _ in sources]
        for number, source in enumerate(sources):
            for entry in source.entries:
                identity = self._identify(entry, "sources")
                groups.setdefault(identity, [[] for _ in sources])[number].append(entry)
        merged: list[dict[str, Any]] = []
        for identity, found in groups.items():
            if self.strategy == "intersection" and not all(found):
                continue
            before = known.get(identity)
            entries = list(chain.from_iterable(found))
            if before is not None and not all(found):
                entries = self._decide_removal(sources, found, before)
            if entries:
                merged.append(self._merge(entries, before))
            else:
                self.removed += 1
        return merged

    def _identify(self, entry: _Entry, member: str) -> bytes:
        if not self._key:
            return b"" if self.whole else _encode(entry.value)
        values = [value_of(entry.value, name) for name in self._key]
        if None in values:
            raise invalid(
                member, f"has a row in {entry.source} without {self._key[values.index(None)]!r:.80}, the key."
            )
        return _encode(values)

    def _decide_removal(
        self, sources: Sequence[_Source], found: Sequence[list[_Entry]], before: _Entry
    ) -> list[_Entry]:
        """Return the entries of a row that some sources have removed; none if it is removed."""
        kept = list(chain.from_iterable(found))
        if all(_encode(entry.value) == _encode(before.value) for entry in kept):
            return []
        sides = [own or [_Entry(source.name, _ABSENT, None)] for source, own in zip(sources, found, strict=True)]
        chosen = self._resolve(before.value, "", list(chain.from_iterable(sides)))
        return [] if chosen is not None and chosen.value is _ABSENT else kept

    def _merge(self, entries: Sequence[_Entry], before: _Entry | None) -> dict[str, Any]:
        row: dict[str, Any] = {}
        names = dict.fromkeys(chain.from_iterable(one.value for one in (*((before,) if before else ()), *entries)))
        for name in names:
            values = [one._replace(value=one.value.get(name, _ABSENT)) for one in entries]
            if before is None:
                # What a source does not know contradicts nobody.
                told = [one for one in values if one.value is not _ABSENT and one.value is not None]
                kept = None
            else:
                kept = before.value.get(name, _ABSENT)
                told = [one for one in values if _encode(one.value) != _encode(kept)]
            if len({_encode(one.value) for one in told}) > 1:
                chosen = self._resolve(entries[0].value, name, told)
                value = _ABSENT if chosen is None else chosen.value
            else:
                value = told[0].value if told else kept
            if value is not _ABSENT:
                row[name] = value
        return row

    def _resolve(self, row: Row, field: str, values: Sequence[_Entry]) -> _Entry | None:
        """Choose one of several values and note the conflict; None if it is left to a person."""
        policy = None if self.strategy == "manual" else self._policies.get(field, self._otherwise)
        chosen = _CHOOSE[policy](values) if policy else None
        told = [{"source": one.source, **_show("value", one.value)} for one in values]
        noted: dict[str, Any] = {"key": {name: value_of(row, name) for name in self._key}, "values": told}
        noted |= {"field": field} if field else {"removed_row": True}
        if chosen is None:
            self.unresolved += 1
            why = "the times or lengths of the values are not known, or two of them are equal"
            noted["unresolved"] = f"{policy} does not decide it: {why}" if policy else "no policy decides it"
        else:
            noted |= {**_show("chosen", chosen.value), "from": chosen.source, "by": policy}
        self.count += 1
        if len(self.conflicts) < _MOST_TOLD:
            self.conflicts.append(noted)
        return chosen


def _show(name: str, value: Any) -> dict[str, Any]:
    return {"absent": True} if value is _ABSENT else {name: value}


def _best(values: Sequence[_Entry], measures: Sequence[float | None]) -> _Entry | None:
    """Return the value with the highest measure; None if one is not known, or two different values have it."""
    if None in measures:
        return None
    most = max(one for one in measures if one is not None)
    best = [value for value, measure in zip(values, measures, strict=True) if measure == most]
    return best[0] if len({_encode(one.value) for one in best}) == 1 else None


_CHOOSE: Final[Mapping[str, Callable[[Sequence[_Entry]], _Entry | None]]] = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "latest": lambda values: _best(values, [one.time for one in values]),
    "longest": lambda values: _best(
        values, [len(one.value) if isinstance(one.value, str | list) else None for one in values]
    ),
}
