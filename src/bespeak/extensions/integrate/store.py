"""Links in the store, which are records found by the things at their two ends, and what a SYNC has agreed on."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from bespeak.extensions.acquire.store import FindKeys, RemoveResources, in_parts
from bespeak.state.store.commands.records import COLUMNS, PutRecord, Record, topic_of
from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Steps, read_all

LINK: Final = "link"  # kind of the records
LINKED: Final = "linked"  # state of a link that holds
_KEPT: Final = 30 * 86400.0  # seconds for which a link that has ended can still be looked up


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """A relationship of two things, or a component that is embedded in a target under a binding."""

    source: str
    target: str
    relationship: str
    metadata: dict[str, Any] = {}
    binding: str = ""  # empty for a link that embeds nothing
    version: int | None = None  # version of an embedded resource; None for the current one

    @property
    def ends(self) -> tuple[str, str]:
        """Names under which the things at its ends find it. Those of components are others than those of links."""
        return (f"of {self.source}", inside(self.target)) if self.binding else (self.source, self.target)


def inside(target: str) -> str:
    """Return the name under which a target finds its components."""
    return f"in {target}"


decode_link: Final = msgspec.json.Decoder(Link).decode


class PutLink(Command, frozen=True):
    """Add a link; a Conflict if there is the same one, or if its owner or one of its ends has too many."""

    guards: ClassVar[bool] = True
    record: PutRecord
    ends: tuple[str, str]
    most: tuple[int, int]  # limit of links that the owner makes of each end

    def steps(self) -> Steps:
        made = yield from self.record.steps()
        if isinstance(made, Conflict):
            return made
        for thing, most in zip(self.ends, self.most, strict=True):
            # Those of each owner apart: nobody who may only read a thing uses up what others may link to it.
            counted = (
                "SELECT count(*) FROM (SELECT 1 FROM link_ends AS e JOIN records AS r ON r.record_id = e.link_id "
                "WHERE e.thing = ? AND r.owner = ? LIMIT ?) AS counted"
            )
            rows = yield Statement(counted, (thing, self.record.owner, most))
            if rows[0][0] >= most:
                return Conflict("too-many", {"thing": thing})
            yield Statement("INSERT INTO link_ends (thing, link_id) VALUES (?, ?)", (thing, made.record_id))
        return made


class ListLinks(Command, frozen=True):
    """List the links that hold of some ends: those of one owner first, then the oldest first."""

    owner: str
    groups: tuple[tuple[tuple[str, ...], int], ...]  # ends that are listed together, and how many links of them

    def steps(self) -> Result[list[list[Record]]]:
        """Return the links of each group."""
        found: list[list[Record]] = []
        for ends, limit in self.groups:
            where = f"record_id IN (SELECT link_id FROM link_ends WHERE thing IN ({', '.join('?' * len(ends))}))"
            order = "CASE WHEN owner = ? THEN 0 ELSE 1 END, created, record_id"
            sql = f"SELECT {COLUMNS} FROM records WHERE {where} AND expires > {{now}} ORDER BY {order} LIMIT ?"
            found.append((yield from read_all(Record, sql, *ends, self.owner, limit)))
        return found


class DropEnds(Command, frozen=True):
    """Forget the ends of a link that is cancelled."""

    link_id: str

    def steps(self) -> Result[None]:
        yield Statement("DELETE FROM link_ends WHERE link_id = ?", (self.link_id,))


class Unlink(Command, frozen=True):
    """End the links of things that are removed."""

    things: tuple[str, ...]

    def steps(self) -> Result[int]:
        """Return their number."""
        names = [name for thing in self.things for name in (thing, f"of {thing}", inside(thing))]
        places = ", ".join("?" * len(names))
        rows = yield Statement(
            "UPDATE records SET state = 'cancelled', key = NULL, version = version + 1, updated = {now}, "
            f"expires = {{now}} + ? WHERE record_id IN (SELECT link_id FROM link_ends WHERE thing IN ({places})) "
            "RETURNING record_id",
            (_KEPT, *names),
        )
        for row in rows:
            yield from DropEnds(row[0]).steps()
        if rows:
            yield Notify(topic_of(LINK))
        return len(rows)


class RemoveLinked(Command, frozen=True):
    """Remove resources with their links; return their number."""

    removing: RemoveResources

    def steps(self) -> Result[int]:
        positions = yield from self.removing.steps()
        if positions:
            yield from Unlink(tuple(f"res-{position}" for position in positions)).steps()
        return len(positions)


class Agreed(NamedTuple):
    digest: str  # of the row that both sides have had; empty if they never had the same
    run: str  # the last run that has met the key


class FindAgreed(Command, frozen=True):
    """Find what was agreed on about keys."""

    sync_id: str
    keys: tuple[str, ...]

    def steps(self) -> Result[dict[str, Agreed]]:
        found: dict[str, Agreed] = {}
        for part, places in in_parts(self.keys):
            rows = yield Statement(
                f"SELECT key, digest, run FROM synced_rows WHERE sync_id = ? AND key IN ({places})",
                (self.sync_id, *part),
            )
            found |= {row[0]: Agreed(row[1], row[2]) for row in rows}
        return found


class NoteAgreed(Command, frozen=True):
    """Note what is agreed on, and that a run has met these keys; a Conflict if a local row has changed meanwhile."""

    guards: ClassVar[bool] = True
    sync_id: str
    collection: str
    owner: str
    run: str
    agreed: tuple[tuple[str, str, int], ...]  # key, digest, and version of the local row; 0 for none

    def steps(self) -> Steps:
        keys = tuple(key for key, _, _ in self.agreed)
        local = yield from FindKeys(self.collection, self.owner, keys, locks=True).steps()
        for key, _, version in self.agreed:
            if (local[key].version if key in local else 0) != version:
                return Conflict("changed")
        for part, places in in_parts(self.agreed, "(?, ?, ?, ?)"):
            yield Statement(
                f"INSERT INTO synced_rows (sync_id, key, digest, run) VALUES {places} "
                "ON CONFLICT (sync_id, key) DO UPDATE SET digest = excluded.digest, run = excluded.run",
                tuple(value for key, digest, _ in part for value in (self.sync_id, key, digest, self.run)),
            )
        return None


class ForgetAgreed(Command, frozen=True):
    """Remove what a run has met on neither side."""

    sync_id: str
    run: str

    def steps(self) -> Steps:
        yield Statement("DELETE FROM synced_rows WHERE sync_id = ? AND run <> ?", (self.sync_id, self.run))
        return None


class HasAgreed(Command, frozen=True):
    """Tell whether anything was agreed on."""

    sync_id: str

    def steps(self) -> Result[bool]:
        rows = yield Statement("SELECT 1 FROM synced_rows WHERE sync_id = ? AND digest <> '' LIMIT 1", (self.sync_id,))
        return bool(rows)
