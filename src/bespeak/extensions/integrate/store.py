"""Links in the store: records, found by the things at their two ends."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from bespeak.extensions.acquire.store import RemoveResources
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
    most: tuple[int, int]  # limit of links of each end

    def steps(self) -> Steps:
        made = yield from self.record.steps()
        if isinstance(made, Conflict):
            return made
        for thing, most in zip(self.ends, self.most, strict=True):
            counted = "SELECT count(*) FROM (SELECT 1 FROM link_ends WHERE thing = ? LIMIT ?) AS counted"
            rows = yield Statement(counted, (thing, most))
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
