"""Resources in the store: rows that agents import, their earlier versions, and the words by which they are found."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.state.store.store import Command, Notify, Result, Statement, Steps, read_all, read_number, read_one

TOPIC: Final = "resources"  # topic to watch for resources that are not indexed yet
MOST_INDEXED: Final = 1000  # resources of one write that are found by their words at once; more are indexed afterwards
MOST_CANDIDATES: Final = 2000  # matches that are ranked: all of them would take seconds for a common word
_LARGE: Final = 100_000  # resources of a store from which on words are not weighted by how rare they are
_SAMPLES: Final = (64, 8)  # one resource of so many has the word of this sample
_RUN: Final = 256  # positions that are in the same samples: neighbours are read together
_LONGEST_WORDS: Final = 100_000  # characters of a resource by which it is found
_WORD: Final = re.compile(r"\w+")
_PLACES: Final = 500  # values of one statement: SQLite takes 32,766 parameters


class StoredResource(msgspec.Struct, frozen=True):
    """A row that an agent imported."""

    position: int
    collection: str
    owner: str
    key: str | None
    version: int
    data: str  # JSON
    created: float
    updated: float

    @property
    def resource_id(self) -> str:
        return f"res-{self.position}"

    @property
    def digest(self) -> str:
        return digest_of(msgspec.json.decode(self.data))


COLUMNS: Final = ", ".join(StoredResource.__struct_fields__)


class FindResource(Command, frozen=True):
    """Find a resource by its position, or by its key in a collection of an owner."""

    position: int | None = None
    owner: str = ""
    collection: str = ""
    key: str = ""

    def steps(self) -> Result[StoredResource | None]:
        if self.position is not None:
            return read_one(StoredResource, f"SELECT {COLUMNS} FROM resources WHERE position = ?", self.position)
        where = "collection = ? AND owner = ? AND key = ?"
        sql = f"SELECT {COLUMNS} FROM resources WHERE {where}"
        return read_one(StoredResource, sql, self.collection, self.owner, self.key)


class FindKeys(Command, frozen=True):
    """Find resources by their keys in a collection of an owner."""

    collection: str
    owner: str
    keys: tuple[str, ...]
    locks: bool = False  # True if they are changed, or others added, in the same transaction

    def steps(self) -> Result[dict[str, StoredResource]]:
        known: dict[str, StoredResource] = {}
        if self.locks:
            yield Statement("{in_order}", (self.collection,))
        for part, places in in_parts(self.keys):
            rows = yield Statement(
                f"SELECT {COLUMNS} FROM resources WHERE collection = ? AND owner = ? "
                f"AND key IN ({places}) {'{lock}' if self.locks else ''}",
                (self.collection, self.owner, *part),
            )
            known |= {row[3]: StoredResource(*row) for row in rows}
        return known


class ResourceVersion(msgspec.Struct, frozen=True):
    version: int
    data: str
    updated: float


class FindVersion(Command, frozen=True):
    """Find an earlier version of a resource."""

    position: int
    version: int

    def steps(self) -> Result[ResourceVersion | None]:
        sql = "SELECT version, data, updated FROM resource_versions WHERE position = ? AND version = ?"
        return read_one(ResourceVersion, sql, self.position, self.version)


class ListResources(Command, frozen=True):
    """List the resources of a collection behind a position, in the order in which they were added."""

    collection: str
    owners: tuple[str, ...]  # owners of which one must own it; empty for all
    after: int
    limit: int

    def steps(self) -> Result[list[StoredResource]]:
        owned = f" AND owner IN ({', '.join('?' * len(self.owners))})" if self.owners else ""
        sql = f"SELECT {COLUMNS} FROM resources WHERE collection = ? AND position > ?{owned} ORDER BY position LIMIT ?"
        return read_all(StoredResource, sql, self.collection, self.after, *self.owners, self.limit)


class ListCollections(Command, frozen=True):
    """List the names of collections in which some owners have resources, or in which anybody has."""

    owners: tuple[str, ...]
    names: tuple[str, ...] = ()  # collections of anybody that are listed too
    limit: int = 1000

    def steps(self) -> Result[list[str]]:
        conditions = [
            f"{column} IN ({', '.join('?' * len(values))})"
            for column, values in (("owner", self.owners), ("collection", self.names))
            if values
        ]
        rows = yield Statement(
            f"SELECT DISTINCT collection FROM resources WHERE {' OR '.join(conditions) or 'FALSE'} "
            "ORDER BY collection LIMIT ?",
            (*self.owners, *self.names, self.limit),
        )
        return [row[0] for row in rows]


class CountOwned(Command, frozen=True):
    """Count the resources of an owner, of all collections or of one, up to a limit."""

    owner: str
    most: int
    collection: str = ""

    def steps(self) -> Result[int]:
        where, of = ("owner = ? AND collection = ?", (self.collection,)) if self.collection else ("owner = ?", ())
        counted = f"SELECT 1 FROM resources WHERE {where} LIMIT ?"
        return read_number(f"SELECT count(*) FROM ({counted}) AS counted", self.owner, *of, self.most)


class NewRow(msgspec.Struct, frozen=True):
    key: str | None
    data: str


class PutResources(Command, frozen=True):
    """Add rows to a collection. What becomes of a row whose key is there is the policy: overwrite, skip or merge.

    A merge of JSON objects keeps the members that only the older one has. The version before is kept.
    """

    collection: str
    owner: str
    rows: tuple[NewRow, ...]
    policy: str
    expected: Mapping[str, str | None] = {}  # digests of what must be there by key; where it is not, a row is skipped

    def steps(self) -> Result[PutCount]:
        keys = tuple(row.key for row in self.rows if row.key is not None)
        known = yield from FindKeys(self.collection, self.owner, keys, locks=True).steps()
        counts = {"added": 0, "changed": 0, "skipped": 0}
        changed: list[int] = []
        fresh: list[NewRow] = []
        pending: dict[str, int] = {}  # keys of rows of this command that come twice
        stale: list[str] = []
        for row in self.rows:
            old = None if row.key is None else known.get(row.key)
            if row.key is not None and row.key in self.expected and self.expected[row.key] != (old and old.digest):
                stale.append(row.key)
                counts["skipped"] += 1
            elif old is None and row.key in pending and row.key is not None:
                at = pending[row.key]
                if self.policy == "skip":
                    counts["skipped"] += 1
                else:
                    fresh[at] = NewRow(row.key, self._join(fresh[at].data, row.data))
                    counts["changed"] += 1
            elif old is None:
                if row.key is not None:
                    pending[row.key] = len(fresh)
                fresh.append(row)
                counts["added"] += 1
            elif self.policy == "skip":
                counts["skipped"] += 1
            else:
                data = self._join(old.data, row.data)
                if data != old.data:
                    known[row.key or ""] = yield from _replace(old, data)
                    changed.append(old.position)
                counts["changed" if data != old.data else "skipped"] += 1
        positions = yield from self._insert(fresh)
        yield from _mark(positions + changed)
        if len(positions) + len(changed) <= MOST_INDEXED:
            yield from IndexResources(MOST_INDEXED).steps()
        else:
            yield Notify(TOPIC)
        return PutCount(**counts, stale=tuple(stale))

    def _join(self, old: str, new: str) -> str:
        if self.policy != "merge":
            return new
        before, after = msgspec.json.decode(old), msgspec.json.decode(new)
        both = isinstance(before, dict) and isinstance(after, dict)
        return msgspec.json.encode({**before, **after}).decode() if both else new

    def _insert(self, rows: Sequence[NewRow]) -> Result[list[int]]:
        positions: list[int] = []
        for part, places in in_parts(rows, "(?, ?, ?, 1, ?, {now}, {now})"):
            inserted = yield Statement(
                f"INSERT INTO resources (collection, owner, key, version, data, created, updated) VALUES {places} "
                "RETURNING position",
                tuple(value for row in part for value in (self.collection, self.owner, row.key, row.data)),
            )
            positions += [row[0] for row in inserted]
        return positions


class AnalyzeResources(Command, frozen=True):
    """Let the database know how many resources there are: PostgreSQL reads whole collections for lack of statistics."""

    def steps(self) -> Steps:
        yield Statement("{analyze} resources")
        return None


class PutCount(msgspec.Struct, frozen=True, omit_defaults=True):
    added: int
    changed: int
    skipped: int
    stale: tuple[str, ...] = ()  # keys of those among them that were not in the place of what was expected


def digest_of(value: Any) -> str:
    """Return a digest of a value as JSON, whatever the order of its members."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:24]


def _replace(old: StoredResource, data: str) -> Result[StoredResource]:
    yield Statement(
        "INSERT INTO resource_versions (position, version, data, updated) VALUES (?, ?, ?, ?)",
        (old.position, old.version, old.data, old.updated),
    )
    rows = yield Statement(
        f"UPDATE resources SET data = ?, version = version + 1, updated = {{now}} WHERE position = ? "
        f"RETURNING {COLUMNS}",
        (data, old.position),
    )
    return StoredResource(*rows[0])


def _mark(positions: Sequence[int]) -> Steps:
    for part, places in in_parts(positions, "(?)"):
        yield Statement(
            f"INSERT INTO resources_unindexed (position) VALUES {places} ON CONFLICT DO NOTHING", tuple(part)
        )
    return None


class RemoveResources(Command, frozen=True):
    """Remove resources of a collection of an owner, with their versions and their words; return their positions."""

    owner: str
    collection: str
    limit: int
    position: int | None = None  # position of the only one to remove; None for the first ones

    def steps(self) -> Result[list[int]]:
        one = "" if self.position is None else " AND position = ?"
        rows = yield Statement(
            f"SELECT position FROM resources WHERE owner = ? AND collection = ?{one} "
            "ORDER BY position LIMIT ? {lock}",
            (self.owner, self.collection, *([self.position] if one else []), self.limit),
        )
        positions = [row[0] for row in rows]
        for part, places in in_parts(positions):
            for table in ("resources_unindexed", "resource_versions", "resources"):
                yield Statement(f"DELETE FROM {table} WHERE position IN ({places})", tuple(part))
            yield Statement(f"DELETE FROM resources_text WHERE {{text_id}} IN ({places})", tuple(part))
        return positions


class IndexResources(Command, frozen=True):
    """Add the words of resources that are not indexed yet; return their number."""

    limit: int

    def steps(self) -> Result[int]:
        rows = yield Statement(
            "SELECT position FROM resources_unindexed ORDER BY position LIMIT ? {skip}", (self.limit,)
        )
        for part, places in in_parts([row[0] for row in rows]):
            found = yield Statement(
                f"SELECT position, collection, owner, data FROM resources WHERE position IN ({places})", tuple(part)
            )
            yield Statement(f"DELETE FROM resources_text WHERE {{text_id}} IN ({places})", tuple(part))
            if found:
                values = ", ".join(["(?, {text_of})"] * len(found))
                texts = [(row[0], _indexed(*row)) for row in found]
                yield Statement(
                    f"INSERT INTO resources_text ({{text_id}}, words) VALUES {values}",
                    tuple(value for pair in texts for value in pair),
                )
            yield Statement(f"DELETE FROM resources_unindexed WHERE position IN ({places})", tuple(part))
        return len(rows)


class MarkUnindexed(Command, frozen=True):
    """Have all resources indexed if none is: a store that was imported has no index."""

    def steps(self) -> Steps:
        empty = yield Statement("SELECT 1 FROM resources_text LIMIT 1")
        if not empty:
            yield Statement(
                "INSERT INTO resources_unindexed (position) SELECT position FROM resources WHERE TRUE "
                "ON CONFLICT DO NOTHING"
            )
        return None


class CountUnindexed(Command, frozen=True):
    """Count the resources that are not found by their words yet, up to a limit."""

    def steps(self) -> Result[int]:
        return read_number("SELECT count(*) FROM (SELECT 1 FROM resources_unindexed LIMIT 100000) AS waiting")


class SearchResources(Command, frozen=True):
    """Find the resources of a collection that have all words, the best first; at most MOST_CANDIDATES are ranked."""

    collection: str
    owners: tuple[str, ...]  # owners of which one must own it; empty for all
    words: tuple[str, ...]  # as `split_words` returns them

    def steps(self) -> Result[list[Match]]:
        """Return the position and the score of each match."""
        found: list[Match] = []
        highest = yield from read_number("SELECT coalesce(max(position), 0) FROM resources")
        search = "{text_quick}" if highest > _LARGE else "{text_search}"
        for of in [_token(self.collection, owner) for owner in self.owners] or [_token(self.collection)]:
            rows: Sequence[Sequence[Any]] = ()
            # PostgreSQL finds all matches before it returns one. Of common words a sample has enough.
            for sample in _SAMPLES if highest > _LARGE else ():
                rows = yield self._find("{text_sample}", f"{of}x{sample}")
                if len(rows) == MOST_CANDIDATES or len(rows) * _SAMPLES[-1] < MOST_CANDIDATES:
                    break  # the next sample has about eight times as many
            if len(rows) < MOST_CANDIDATES:
                rows = yield self._find(search, of)
            found += [Match(*row) for row in rows]
        return sorted(found, key=lambda one: (-one.score, one.position))[:MOST_CANDIDATES]

    def _find(self, search: str, token: str) -> Statement:
        wanted = " ".join(f'"{one}"' for one in (token, *self.words))
        return Statement(f"{search} LIMIT {MOST_CANDIDATES:d}", (wanted,))


class Match(msgspec.Struct, frozen=True):
    position: int
    score: float  # larger is better; comparable within one answer only


class ReadResources(Command, frozen=True):
    """Read resources by their positions."""

    positions: tuple[int, ...]

    def steps(self) -> Result[list[StoredResource]]:
        found: list[StoredResource] = []
        for part, places in in_parts(self.positions):
            sql = f"SELECT {COLUMNS} FROM resources WHERE position IN ({places})"
            found += yield from read_all(StoredResource, sql, *part)
        return found


def split_words(text: str, most: int = 16) -> tuple[str, ...]:
    """Return the words of a text as they are indexed, without anything that a query language could mean."""
    return tuple(_WORD.findall(text.lower())[:most])


def _indexed(position: int, collection: str, owner: str, data: str) -> str:
    """Return the words of a resource, and those that tell whose it is: a search reads only what may match."""
    words = " ".join(_WORD.findall(" ".join(_texts(msgspec.json.decode(data)))[:_LONGEST_WORDS]))
    tokens = [_token(collection), _token(collection, owner)]
    tokens += [f"{token}x{sample}" for token in tokens for sample in _SAMPLES if position // _RUN % sample == 0]
    return f"{' '.join(tokens)} {words}"


def _token(*parts: str) -> str:
    """Return a word for a collection, alone or of one owner, that no text has by chance."""
    return "zz" + hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:20]


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a value, however deep: nothing may fail inside a transaction of others."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting += reversed(list(one.values()) if isinstance(one, dict) else one)
        elif one is not None and not isinstance(one, bool):
            yield str(one)


def in_parts(values: Sequence[Any], place: str = "?") -> Iterator[tuple[Sequence[Any], str]]:
    """Yield values for one statement at a time, with the places that they take in it."""
    for start in range(0, len(values), _PLACES):
        part = values[start : start + _PLACES]
        yield part, ", ".join([place] * len(part))
