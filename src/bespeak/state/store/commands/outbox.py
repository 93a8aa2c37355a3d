"""The outbox: messages waiting for delivery, each claimed by one deliverer at a time."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from bespeak.state.store.command import Command, Conflict, Notify, Statement, Steps
from bespeak.state.store.grouping import Grouping

TOPIC: Final = "outbox"
"""Topic to watch for new messages."""

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
    """A message under delivery."""

    position: int
    topic: str
    recipient: str
    payload: str
    """JSON payload."""
    created: float
    fence: int
    """Fence that tells this claim from later ones."""
    attempts: int
    """Number of claims, including this one."""


class PutOutbox(Command, frozen=True):
    """Add a message in the transaction of the change it reports."""

    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"topic": "text", "recipient": "text", "payload": "text", "delay": "float8"},
        change="""
            INSERT INTO outbox (topic, recipient, payload, created, due, fence, attempts)
            SELECT topic, recipient, payload, {now}, {now} + delay, 0, 0 FROM {input} ORDER BY n RETURNING position
        """,
        # Positions are given in the order of the rows.
        answer="SELECT row_number() OVER (ORDER BY position) AS n, position FROM {change}",
        result=lambda _, row: row and row[1],
        topics=lambda _: (TOPIC,),
    )
    topic: str
    recipient: str
    payload: str
    delay: float = 0.0
    """Seconds until it may be claimed."""

    def steps(self) -> Steps:
        """Return its position."""
        rows = yield Statement(
            "INSERT INTO outbox (topic, recipient, payload, created, due, fence, attempts) "
            "VALUES (?, ?, ?, {now}, {now} + ?, 0, 0) RETURNING position",
            (self.topic, self.recipient, self.payload, self.delay),
        )
        yield Notify(TOPIC)
        return rows[0][0]


class ClaimOutbox(Command, frozen=True):
    """Claim due messages. They are due again when the lease ends."""

    topic: str
    limit: int
    lease: float
    """Lease in seconds."""

    def steps(self) -> Steps:
        """Return a list of messages, oldest first."""
        rows = yield Statement(_CLAIM, (self.topic, self.limit, self.lease))
        return [Message(*row) for row in sorted(rows, key=lambda row: row[0])]


class AckOutbox(Command, frozen=True):
    """Remove a delivered message; a Conflict if another deliverer has claimed it."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={"position": "bigint", "fence": "bigint"},
        change="""
            DELETE FROM outbox AS m USING {input} AS i
            WHERE m.position = i.position AND m.fence = i.fence RETURNING i.n
        """,
        answer="SELECT n FROM {change}",
        result=lambda _, row: True if row is not None else Conflict("lease-lost"),
        rows=lambda command: (("outbox", command.position),),
    )
    position: int
    fence: int

    def steps(self) -> Steps:
        """Return True or a Conflict."""
        rows = yield Statement(
            "DELETE FROM outbox WHERE position = ? AND fence = ? RETURNING 1", (self.position, self.fence)
        )
        return True if rows else Conflict("lease-lost")


class ReleaseOutbox(Command, frozen=True):
    """Release a message for another attempt after a delay."""

    position: int
    fence: int
    delay: float = 0.0

    def steps(self) -> Steps:
        """Return True if the message was still claimed."""
        rows = yield Statement(
            "UPDATE outbox SET due = {now} + ?, fence = fence + 1 WHERE position = ? AND fence = ? RETURNING 1",
            (self.delay, self.position, self.fence),
        )
        if rows:
            yield Notify(TOPIC)
        return bool(rows)
