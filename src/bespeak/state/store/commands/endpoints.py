"""Endpoints added at run time, the revision by which processes notice changes, and the issue time of the manifest."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Steps

TOPIC: Final = "endpoints"  # topic to watch for changes of endpoints


class EndpointRow(msgspec.Struct, frozen=True):
    method: str
    path: str
    document: str  # JSON
    revision: int  # revision with which it came


class EndpointList(msgspec.Struct, frozen=True):
    revision: int = 0  # number of changes so far
    updated: float | None = None  # time of the last change, in seconds since 1970; None if there was none
    rows: tuple[EndpointRow, ...] = ()  # in the order in which they came


class PutEndpoint(Command, frozen=True):
    """Add an endpoint, or replace the one with its method and path."""

    guards: ClassVar[bool] = True
    method: str
    path: str
    document: str  # JSON
    based_on: int  # revision at which the endpoint was checked beside the others

    def steps(self) -> Steps:
        """Return the new revision, or a Conflict: `changed`."""
        revision = yield from _advance(self.based_on)
        if revision is None:
            return Conflict("changed")
        yield Statement(
            "INSERT INTO endpoints (method, path, document, revision) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (method, path) DO UPDATE SET document = excluded.document, revision = excluded.revision",
            (self.method, self.path, self.document, revision),
        )
        yield Notify(TOPIC)
        return revision


class DropEndpoint(Command, frozen=True):
    guards: ClassVar[bool] = True
    method: str
    path: str
    based_on: int  # revision at which the endpoint was there

    def steps(self) -> Steps:
        """Return the new revision, or a Conflict: `changed`."""
        revision = yield from _advance(self.based_on)
        if revision is None:
            return Conflict("changed")
        yield Statement("DELETE FROM endpoints WHERE method = ? AND path = ?", (self.method, self.path))
        yield Notify(TOPIC)
        return revision


class ReadRevision(Command, frozen=True):
    """Read the number of changes so far, 0 before the first, which a server compares with its own."""

    topic: str = TOPIC

    def steps(self) -> Steps:
        rows = yield Statement("SELECT revision FROM revisions WHERE topic = ?", (self.topic,))
        return rows[0][0] if rows else 0


class ListEndpoints(Command, frozen=True):
    """List all endpoints with their revision, in one statement so that both are consistent."""

    def steps(self) -> Result[EndpointList]:
        rows = yield Statement(
            "SELECT r.revision, r.updated, e.method, e.path, e.document, e.revision FROM revisions AS r "
            "LEFT JOIN endpoints AS e ON 1 = 1 WHERE r.topic = ? ORDER BY e.revision",
            (TOPIC,),
        )
        if not rows:
            return EndpointList()
        return EndpointList(rows[0][0], rows[0][1], tuple(EndpointRow(*row[2:]) for row in rows if row[2] is not None))


def _advance(based_on: int) -> Result[int | None]:
    """Count a change, unless there was another since `based_on`. Nothing is written before that is known."""
    rows = yield Statement("SELECT revision FROM revisions WHERE topic = ? {lock}", (TOPIC,))
    return (yield from advance(TOPIC, based_on)) if (rows[0][0] if rows else 0) == based_on else None


def advance(topic: str, based_on: int | None = None) -> Result[int | None]:
    """Count a change of a topic and return its revision; None if there was another since `based_on`.

    The row stays locked until the transaction ends, so that changes become visible in order. Of two processes that
    begin at once, the second finds the row of the first here and changes nothing.
    """
    rows = yield Statement(
        "INSERT INTO revisions (topic, revision, updated) VALUES (?, 1, {now}) ON CONFLICT (topic) DO UPDATE SET "
        "revision = revisions.revision + 1, updated = excluded.updated "
        + ("RETURNING revision" if based_on is None else "WHERE revisions.revision = ? RETURNING revision"),
        (topic,) if based_on is None else (topic, based_on),
    )
    return rows[0][0] if rows else None


class IssueManifest(Command, frozen=True):
    """Record when a manifest was first issued. Later calls change nothing."""

    server_id: str
    at: float  # seconds since 1970 if this is the first time

    def steps(self) -> Steps:
        rows = yield Statement(
            "INSERT INTO revisions (topic, revision, updated) VALUES (?, 1, ?) "
            "ON CONFLICT (topic) DO UPDATE SET revision = revisions.revision RETURNING updated",
            (f"manifest {self.server_id}", self.at),
        )
        return rows[0][0]


class UpdateManifest(Command, frozen=True):
    """Record when the content of a manifest has changed."""

    server_id: str
    content: int  # mark of the content
    at: float  # seconds since 1970 if the content is another one than before

    def steps(self) -> Steps:
        rows = yield Statement(
            "INSERT INTO revisions (topic, revision, updated) VALUES (?, ?, ?) ON CONFLICT (topic) DO UPDATE SET "
            "updated = CASE WHEN revisions.revision = excluded.revision THEN revisions.updated "
            "ELSE excluded.updated END, revision = excluded.revision RETURNING updated",
            (f"manifest content {self.server_id}", self.content, self.at),
        )
        return rows[0][0]
