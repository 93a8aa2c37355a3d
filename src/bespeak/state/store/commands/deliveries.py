"""Deliveries: what deliverers do with messages of the outbox beyond claiming them, and with their records."""

from __future__ import annotations

from bespeak.state.store.command import Command, Notify, Statement, Steps
from bespeak.state.store.commands.outbox import TOPIC
from bespeak.state.store.commands.records import topic_of


class DeferOutbox(Command, frozen=True):
    """Release a claimed message that was not attempted: the claim does not count."""

    position: int
    fence: int
    delay: float = 0.0

    def steps(self) -> Steps:
        """Return True if the message was still claimed."""
        rows = yield Statement(
            "UPDATE outbox SET due = {now} + ?, fence = fence + 1, attempts = attempts - 1 "
            "WHERE position = ? AND fence = ? RETURNING 1",
            (self.delay, self.position, self.fence),
        )
        if rows:
            yield Notify(TOPIC)
        return bool(rows)


class NextOutbox(Command, frozen=True):
    """Tell in how many seconds the next message of a topic is due."""

    topic: str

    def steps(self) -> Steps:
        """Return seconds, negative if it is due already, or None."""
        rows = yield Statement("SELECT min(due) - {now} FROM outbox WHERE topic = ?", (self.topic,))
        return rows[0][0]


class MarkRecord(Command, frozen=True):
    """Change the state of a record of any kind from one to another; leave a record in another state as it is."""

    record_id: str
    before: str
    state: str

    def steps(self) -> Steps:
        """Return True if the record was changed."""
        rows = yield Statement(
            "UPDATE records SET state = ?, version = version + 1, updated = {now} "
            "WHERE record_id = ? AND state = ? AND expires > {now} RETURNING kind",
            (self.state, self.record_id, self.before),
        )
        if rows:
            yield Notify(topic_of(rows[0][0]))
        return bool(rows)
