"""The time at which the manifest of a server was first issued (AGTP-API 8.3)."""

from __future__ import annotations

from bespeak.state.store.command import Command, Statement, Steps


class IssueManifest(Command, frozen=True):
    """Record when a manifest was first issued. Later calls change nothing."""

    server_id: str
    at: float
    """Seconds since 1970 if this is the first time."""

    def steps(self) -> Steps:
        """Return the recorded time."""
        rows = yield Statement(
            "INSERT INTO revisions (topic, revision, updated) VALUES (?, 1, ?) "
            "ON CONFLICT (topic) DO UPDATE SET revision = revisions.revision RETURNING updated",
            (f"manifest {self.server_id}", self.at),
        )
        return rows[0][0]


class UpdateManifest(Command, frozen=True):
    """Record when the content of a manifest has changed."""

    server_id: str
    content: int
    """Mark of the content."""
    at: float
    """Seconds since 1970 if the content is another one than before."""

    def steps(self) -> Steps:
        """Return the recorded time."""
        rows = yield Statement(
            "INSERT INTO revisions (topic, revision, updated) VALUES (?, ?, ?) ON CONFLICT (topic) DO UPDATE SET "
            "updated = CASE WHEN revisions.revision = excluded.revision THEN revisions.updated "
            "ELSE excluded.updated END, revision = excluded.revision RETURNING updated",
            (f"manifest content {self.server_id}", self.content, self.at),
        )
        return rows[0][0]
