"""The outbox: messages that wait to be delivered, each held by one deliverer at a time."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Notify, Statement, Steps
from bespeak.state.store.grouping import Grouping

TOPIC: Final = "outbox"
"""What to watch for new messages."""

# The choice is made once, whatever plan the database has for the rest.
_CLAIM: Final = """
WITH chosen AS MATERIALIZED (
    SELECT position FROM outbox WHERE topic = ? AND due <= {now} ORDER BY due, position LIMIT ? {skip}
)
UPDATE outbox SET due = {now} + ?, fence = fence + 1, attempts = attempts + 1
WHERE position IN (SELECT position FROM chosen)
RETURNING position, topic, recipient, payload, created, fence, attempts
"""


class Message(msgspec.Struct, frozen=True):
    """A message that is being delivered."""

    position: int
    topic: str
    recipient: str
    payload: str
    """JSON."""
    created: float
    fence: int
    """Tells this claim from a later one."""
    attempts: int
    """How often it was claimed, this time included."""


class PutOutbox(Command, frozen=True):
    """Add a message, in the transaction of what it tells about."""

    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"topic": "text", "recipient": "text", "payload": "text", "delay": "float8"},
        change="""
            INSERT INTO outbox (topic, recipient, payload, created, due, fence, attempts)
            SELECT topic, recipient, payload, {now}, {now} + delay, 0, 0 FROM {input} ORDER BY n RETURNING position
        """,
        # Positions are given in the order of the rows.
        answer="SELECT row_number() OVER (ORDER BY position) AS n, position FROM {change}",
        result=lambda _, row: row and row[1],
        topic=TOPIC,
    )
    topic: str
    recipient: str
    payload: str
    delay: float = 0.0
    """Seconds until it may be claimed."""

    def steps(self) -> Steps:
        """Its position."""
        rows = yield Statement(
            "INSERT INTO outbox (topic, recipient, payload, created, due, fence, attempts) "
            "VALUES (?, ?, ?, {now}, {now} + ?, 0, 0) RETURNING position",
            (self.topic, self.recipient, self.payload, self.delay),
        )
        yield Notify(TOPIC)
        return rows[0][0]


class ClaimOutbox(Command, frozen=True):
    """Take messages that are due. Nobody else gets them until the lease ends; then they are due again."""

    topic: str
    limit: int
    lease: float
    """Seconds."""

    def steps(self) -> Steps:
        """A list of messages, the oldest first."""
        rows = yield Statement(_CLAIM, (self.topic, self.limit, self.lease))
        return [Message(*row) for row in sorted(rows, key=lambda row: row[0])]


class AckOutbox(Command, frozen=True):
    """Remove a message that was delivered; a conflict if somebody else has claimed it meanwhile."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"position": "bigint", "fence": "bigint"},
        change="""
            DELETE FROM outbox AS m USING {input} AS i
            WHERE m.position = i.position AND m.fence = i.fence RETURNING i.n
        """,
        answer="SELECT n FROM {change}",
        result=lambda _, row: True if row is not None else Conflict("lease-lost"),
        row=lambda command: ("outbox", command.position),
    )
    position: int
    fence: int

    def steps(self) -> Steps:
        """True or a Conflict."""
        rows = yield Statement(
            "DELETE FROM outbox WHERE position = ? AND fence = ? RETURNING 1", (self.position, self.fence)
        )
        return True if rows else Conflict("lease-lost")


class ReleaseOutbox(Command, frozen=True):
    """Give a message back for another attempt after a while."""

    position: int
    fence: int
    delay: float = 0.0

    def steps(self) -> Steps:
        """Whether it was still held."""
        rows = yield Statement(
            "UPDATE outbox SET due = {now} + ?, fence = fence + 1 WHERE position = ? AND fence = ? RETURNING 1",
            (self.delay, self.position, self.fence),
        )
        if rows:
            yield Notify(TOPIC)
        return bool(rows)
