"""Messages of agents, the channels they are subscribed to, and the outbox, claimed by one deliverer at a time."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from bespeak.state.store.commands.records import COLUMNS, PutRecord, Record, list_where, put_with, topic_of
from bespeak.state.store.store import Command, Conflict, Grouping, Notify, Result, Statement, Steps, read_all, read_one

OUTBOX_TOPIC: Final = "outbox"  # topic to watch for new messages

# The choice is made once, whatever plan the database has for the rest.
_CLAIM: Final = """
WITH chosen AS MATERIALIZED (
    SELECT position FROM outbox WHERE topic = ? AND due <= {now} ORDER BY due, position LIMIT ? {skip}
)
UPDATE outbox SET due = {now} + ?, fence = fence + 1, attempts = attempts + 1
WHERE position IN (SELECT position FROM chosen)
RETURNING position, topic, recipient, payload, created, fence, attempts
"""


class OutboxMessage(msgspec.Struct, frozen=True):
    position: int
    topic: str
    recipient: str
    payload: str  # JSON payload
    created: float
    fence: int  # fence that tells this claim from later ones
    attempts: int  # number of claims, including this one


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
        topics=lambda _: (OUTBOX_TOPIC,),
    )
    topic: str
    recipient: str
    payload: str
    delay: float = 0.0  # seconds until it may be claimed

    def steps(self) -> Result[int]:
        rows = yield Statement(
            "INSERT INTO outbox (topic, recipient, payload, created, due, fence, attempts) "
            "VALUES (?, ?, ?, {now}, {now} + ?, 0, 0) RETURNING position",
            (self.topic, self.recipient, self.payload, self.delay),
        )
        yield Notify(OUTBOX_TOPIC)
        return int(rows[0][0])


class ClaimOutbox(Command, frozen=True):
    """Claim due messages. They are due again when the lease ends."""

    topic: str
    limit: int
    lease: float  # lease in seconds

    def steps(self) -> Steps:
        """Return a list of messages, oldest first."""
        rows = yield Statement(_CLAIM, (self.topic, self.limit, self.lease))
        return [OutboxMessage(*row) for row in sorted(rows, key=lambda row: row[0])]


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
        sql = "DELETE FROM outbox WHERE position = ? AND fence = ? RETURNING 1"
        rows = yield Statement(sql, (self.position, self.fence))
        return True if rows else Conflict("lease-lost")


class ReleaseOutbox(Command, frozen=True):
    position: int
    fence: int
    delay: float = 0.0
    attempted: bool = True  # False if the claim does not count as an attempt

    def steps(self) -> Steps:
        """Return True if the message was still claimed."""
        rows = yield Statement(
            "UPDATE outbox SET due = {now} + ?, fence = fence + 1, attempts = attempts - ? "
            "WHERE position = ? AND fence = ? RETURNING 1",
            (self.delay, int(not self.attempted), self.position, self.fence),
        )
        if rows:
            yield Notify(OUTBOX_TOPIC)
        return bool(rows)


MESSAGE: Final = "message"
SUBSCRIPTION: Final = "subscription"
ALERT: Final = "alert"
ENTITY: Final = "entity"

UNREAD: Final = "unread"
READ: Final = "read"
DECLINED: Final = "declined"
SENT: Final = "sent"
ACKNOWLEDGED: Final = "acknowledged"
_ROWS: Final = 200  # rows of one INSERT
# The time is a query of its own, so that PostgreSQL reads the clock once.
_NOW: Final = "(SELECT {now})"
_THERE: Final = f"kind = '{MESSAGE}' AND owner = ? AND created <= {_NOW} AND expires > {_NOW}"


def channel_inbox(channel: str) -> str:
    """Return the owner of the messages that a channel keeps for later readers."""
    return f"#{channel}"


def channel_key(channel: str) -> str:
    """Return the key of the entity that a channel is, once somebody has registered it."""
    return f"channel {channel}"


class NewMessage(msgspec.Struct, frozen=True):
    record_id: str
    owner: str
    data: str
    expires: float
    at: float | None = None  # time before which nobody finds it, in seconds since 1970; None for now
    sender: str | None = None  # Agent whose share of the inbox it counts to; None if it has been asked for

    @property
    def sender_hash(self) -> int | None:
        """Odd number of 56 bits that stands for the sender: an index of Agent-IDs would be slower."""
        if self.sender is None:
            return None
        return int.from_bytes(hashlib.sha256(self.sender.encode(errors="surrogatepass")).digest()[:7]) | 1


class PutMessages(Command, frozen=True):
    """Add messages; one that is there already is left as it is."""

    guards: ClassVar[bool] = True
    messages: tuple[NewMessage, ...]
    most: int | None = None  # Limit of messages of one recipient. Those who have as many are left out.
    share: int | None = None  # limit of unread ones from one sender: nobody fills the inbox of another alone
    required: bool = True  # True if it is a Conflict that nobody has room for a message
    once: bool = False  # True if it is a Conflict that a message is there already

    def steps(self) -> Steps:
        """Return the number of new messages, or a Conflict: inbox-full with the recipients, exists."""
        wanted = self.messages
        full = yield from self._flooded()
        if self.most is not None and wanted:
            full |= yield from _find_full([(owner, None) for owner in {one.owner for one in wanted}], self.most)
        wanted = tuple(message for message in wanted if message.owner not in full) if full else wanted
        if full and not wanted and self.required:
            return Conflict("inbox-full", {"recipients": sorted(full)})
        count = 0
        for start in range(0, len(wanted), _ROWS):
            part = wanted[start : start + _ROWS]
            row = f"(?, '{MESSAGE}', ?, NULL, '{UNREAD}', 1, ?, coalesce(?, {{now}}), {{now}}, NULL, 0, ?, ?)"
            values = [(one.record_id, one.owner, one.data, one.at, one.expires, one.sender_hash) for one in part]
            rows = yield Statement(
                f"INSERT INTO records ({COLUMNS}, sender_hash) VALUES {', '.join([row] * len(part))} "
                "ON CONFLICT DO NOTHING RETURNING 1",
                tuple(value for each in values for value in each),
            )
            count += len(rows)
        if self.once and count < len(wanted):
            return Conflict("exists")
        if count:
            yield Notify(topic_of(MESSAGE))
        return count

    def _flooded(self) -> Generator[Any, Any, set[str]]:
        """Return the recipients that have enough messages of the sender."""
        if self.share is None:
            return set()
        hashes = ((one.owner, one.sender_hash) for one in self.messages)
        pairs = {(owner, sender_hash) for owner, sender_hash in hashes if sender_hash is not None}
        if not pairs:
            return set()
        return (yield from _find_full(list(pairs), self.share, f"AND sender_hash = column2 AND state = '{UNREAD}'"))


def _find_full(wanted: Sequence[tuple[str, int | None]], most: int, more: str = "") -> Generator[Any, Any, set[str]]:
    """Return the owners that have so many messages, of the sender with a hash if `more` says so."""
    asked = ", ".join(["(CAST(? AS TEXT), CAST(? AS BIGINT))"] * len(wanted))
    rows = yield Statement(
        f"SELECT column1 FROM (VALUES {asked}) AS wanted WHERE EXISTS "
        f"(SELECT 1 FROM records WHERE kind = '{MESSAGE}' AND owner = column1 {more} LIMIT 1 OFFSET ?)",
        (*(value for pair in wanted for value in pair), most - 1),
    )
    return {row[0] for row in rows}


class FindMessage(Command, frozen=True):
    """Find a message that has arrived."""

    record_id: str
    owner: str

    def steps(self) -> Result[Record | None]:
        sql = f"SELECT {COLUMNS} FROM records WHERE record_id = ? AND {_THERE}"
        return read_one(Record, sql, self.record_id, self.owner)


class _Reference(msgspec.Struct):
    ref: str | None = None


class ListMessages(Command, frozen=True):
    """List the messages of an owner that have arrived, oldest first."""

    owner: str
    state: str | None = None
    prefix: str = ""  # beginning of the ids to list: hexadecimal digits, letters and hyphens
    after: tuple[float, str] = (0.0, "")  # time and id of the last message of the previous page
    limit: int = 100

    def steps(self) -> Steps:
        """Return a list of pairs: the Record, and the data of the record that it refers to, or None."""
        where = {_THERE: (self.owner,), "(created, record_id) > (?, ?)": self.after}
        if self.state is not None:
            where["state = ?"] = (self.state,)
        if self.prefix:
            where["record_id LIKE ?"] = (f"{self.prefix}%",)
        records = yield from list_where(where, self.limit)
        refs = [msgspec.json.decode(record.data, type=_Reference).ref for record in records]
        known = tuple({ref for ref in refs if ref is not None})
        found = []
        if known:
            places = ", ".join("?" * len(known))
            found = yield Statement(f"SELECT record_id, data FROM records WHERE record_id IN ({places})", known)
        origins = {row[0]: row[1] for row in found}
        return [(record, origins.get(ref)) for record, ref in zip(records, refs, strict=True)]


SUBSCRIBED: Final = "active"  # state of a subscription that has not been cancelled
MOST_WAITING: Final = 10_000  # messages that wait for a bounded subscriber; what is published beyond is dropped
BOUNDED: Final = '"dropped"'  # member of the data of such a subscription: the number of messages that were dropped


class PutInChannel(Command, frozen=True):
    """Add a record with a channel: a subscription, an entity (its type), or the item of a queue."""

    guards: ClassVar[bool] = True
    record: PutRecord
    channel: str

    def steps(self) -> Steps:
        """Return the Record, or a Conflict: exists, with the other one's id and owner; too-many."""
        if self.record.kind == ENTITY:
            yield Statement("{in_order}", (self.channel,))
        return (yield from put_with(self.record, channel=self.channel))


class Subscriber(NamedTuple):
    record_id: str
    owner: str
    data: str


class ListSubscribers(Command, frozen=True):
    """List the subscriptions to a channel by their ids."""

    channel: str
    after: str
    limit: int

    def steps(self) -> Result[list[Subscriber]]:
        return read_all(
            Subscriber,
            f"SELECT record_id, owner, data FROM records WHERE kind = '{SUBSCRIPTION}' AND state = '{SUBSCRIBED}' "
            f"AND channel = ? AND record_id > ? AND expires > {_NOW} ORDER BY record_id LIMIT ?",
            self.channel,
            self.after,
            self.limit,
        )


class Channel(NamedTuple):
    subscribers: int = 0
    owner: str | None = None  # Agent or principal that has registered it; None if everybody may use it


class FindChannels(Command, frozen=True):
    """Find out who owns channels, and how many subscribers they have."""

    names: tuple[str, ...]

    def steps(self) -> Result[dict[str, Channel]]:
        places = ", ".join("?" * len(self.names))
        counted = yield Statement(
            f"SELECT channel, count(*) FROM records WHERE kind = '{SUBSCRIPTION}' AND state = '{SUBSCRIBED}' "
            f"AND channel IN ({places}) AND expires > {_NOW} GROUP BY channel",
            self.names,
        )
        owned = yield Statement(
            f"SELECT key, owner FROM records WHERE kind = '{ENTITY}' AND key IN ({places}) AND state = 'live'",
            tuple(channel_key(name) for name in self.names),
        )
        numbers = {row[0]: row[1] for row in counted}
        owners = {row[0]: row[1] for row in owned}
        return {name: Channel(numbers.get(name, 0), owners.get(channel_key(name))) for name in self.names}


class PutAlert(Command, frozen=True):
    """Add the record of an alert and its later postings, which can be withdrawn until they are due."""

    guards: ClassVar[bool] = True
    record: PutRecord
    held: tuple[PutOutbox, ...] = ()

    def steps(self) -> Steps:
        """Return the Record, whose content has the positions as `held`, or a Conflict: too-many."""
        if not self.held:
            return (yield from self.record.steps())
        content = msgspec.json.decode(self.record.data)
        content["held"] = []
        for posting in self.held:
            position = yield from posting.steps()
            content["held"].append(position)
        data = msgspec.json.encode(content).decode()
        return (yield from msgspec.structs.replace(self.record, data=data).steps())


class Advance(msgspec.Struct, frozen=True):
    """One batch of something that is sent to channels: how its record changes, and what goes out with that."""

    record_id: str
    fence: int
    before: str  # state that it must have
    state: str
    data: str
    due: float | None = None  # time at which it is due next; None if nothing is due any more
    delay: float | None = None  # seconds until it is due next, if that is not a time
    messages: tuple[NewMessage, ...] = ()
    postings: tuple[PutOutbox, ...] = ()
    bounded: tuple[Subscriber, ...] = ()  # subscribers for which no more than MOST_WAITING messages wait


class AdvanceMany(Command, frozen=True):
    """Send batches of many things at once, each of them if its claim still holds and its state is the same."""

    batches: tuple[Advance, ...]

    def steps(self) -> Steps:
        """Return the ids of the records that were changed."""
        # The types of the first row are those of all.
        first = "(CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), "
        first += "CAST(? AS DOUBLE PRECISION), CAST(? AS DOUBLE PRECISION))"
        rows = ", ".join([first, *["(?, ?, ?, ?, ?, ?, ?)"] * (len(self.batches) - 1)])
        values = [
            (one.record_id, one.fence, one.before, one.state, one.data, one.due, one.delay) for one in self.batches
        ]
        changed = yield Statement(
            "UPDATE records SET state = column4, version = version + 1, data = column5, updated = {now}, "
            f"due = coalesce({{now}} + column7, column6) FROM (VALUES {rows}) AS batches "
            "WHERE record_id = column1 AND fence = column2 AND state = column3 RETURNING record_id, kind",
            tuple(value for each in values for value in each),
        )
        advanced = {row[0]: row[1] for row in changed}
        sent = [batch for batch in self.batches if batch.record_id in advanced]
        for kind in {advanced[batch.record_id] for batch in sent if batch.state != batch.before}:
            yield Notify(topic_of(kind))
        messages = [message for batch in sent for message in batch.messages]
        if bounded := {one.owner: one.record_id for batch in sent for one in batch.bounded}:
            full = yield from _find_full([(owner, None) for owner in bounded], MOST_WAITING)
            dropped = Counter(one.owner for one in messages if one.owner in full)
            for owner in sorted(dropped):
                found = yield Statement("SELECT data FROM records WHERE record_id = ? {lock}", (bounded[owner],))
                content = msgspec.json.decode(found[0][0] if found else "{}")
                content["dropped"] = content.get("dropped", 0) + dropped[owner]
                noted = (msgspec.json.encode(content).decode(), bounded[owner])
                yield Statement("UPDATE records SET data = ? WHERE record_id = ?", noted)
            messages = [one for one in messages if one.owner not in full]
        yield from PutMessages(tuple(messages)).steps()
        for batch in sent:
            for posting in batch.postings:
                yield from posting.steps()
        return set(advanced)


class Withdraw(Command, frozen=True):
    """Remove messages and postings whose time has not come."""

    messages: tuple[str, ...]
    positions: tuple[int, ...] = ()

    def steps(self) -> Result[int]:
        count = 0
        for table, key, column, ids in (
            ("records", "record_id", "created", self.messages),
            ("outbox", "position", "due", self.positions),
        ):
            if ids:
                places = ", ".join("?" * len(ids))
                rows = yield Statement(
                    f"DELETE FROM {table} WHERE {key} IN ({places}) AND {column} > {_NOW} RETURNING 1", ids
                )
                count += len(rows)
        return count


class AcknowledgeAlert(Command, frozen=True):
    """End an alert or a notification that somebody has acknowledged, unless it has ended; no more of it is sent."""

    alert_id: str
    data: str  # its content, with who has acknowledged it
    withdrawn: Withdraw

    def steps(self) -> Steps:
        """Return True if it had not ended."""
        rows = yield Statement(
            f"UPDATE records SET state = '{ACKNOWLEDGED}', version = version + 1, data = ?, updated = {{now}}, "
            f"due = NULL WHERE record_id = ? AND state = '{SENT}' RETURNING kind",
            (self.data, self.alert_id),
        )
        if rows:
            yield from self.withdrawn.steps()
            yield Notify(topic_of(rows[0][0]))
        return bool(rows)


class ListDue(Command, frozen=True):
    """List the records of a kind in some states of which something is due."""

    kind: str
    states: tuple[str, ...]

    def steps(self) -> Result[list[Record]]:
        places = ", ".join("?" * len(self.states))
        sql = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND due IS NOT NULL AND state IN ({places})"
        return read_all(Record, sql, self.kind, *self.states)


class DropKey(Command, frozen=True):
    """Free the key of a record that has ended, so that another record can have it."""

    record_id: str

    def steps(self) -> Result[None]:
        yield Statement("UPDATE records SET key = NULL WHERE record_id = ?", (self.record_id,))


class NextOutbox(Command, frozen=True):
    """Tell in how many seconds the next message of a topic is due."""

    topic: str

    def steps(self) -> Steps:
        """Return seconds, negative if it is due already, or None."""
        rows = yield Statement("SELECT min(due) - {now} FROM outbox WHERE topic = ?", (self.topic,))
        return rows[0][0]


class OutboxCount(msgspec.Struct, frozen=True):
    topic: str
    waiting: int
    due: int  # number of those that may be sent now
    attempts: int  # attempts of the one that was tried most often
    oldest: float


class CountOutbox(Command, frozen=True):
    """Count what waits to be sent, by topic, up to a limit."""

    most: int = 100_000

    def steps(self) -> Result[list[OutboxCount]]:
        return read_all(
            OutboxCount,
            "SELECT topic, count(*), count(CASE WHEN due <= {now} THEN 1 END), max(attempts), min(created) "
            "FROM (SELECT topic, due, attempts, created FROM outbox LIMIT ?) AS counted GROUP BY topic ORDER BY topic",
            self.most,
        )


class SetState(Command, frozen=True):
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
