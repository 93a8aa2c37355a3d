"""Records: things with an owner, a state and perhaps a time at which something is due."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from itertools import chain
from typing import Any, ClassVar, Final

import msgspec

from bespeak.state.store import store
from bespeak.state.store.store import AGAIN, Command, Conflict, Grouping, Notify, Result, Row, Statement, Steps, Store

TOPIC: Final = "records"  # topic to watch for records that may be due sooner than known, without their kind
NEVER: Final = 1e15  # expiry of a record that is kept until it is removed
SOON: Final = 10.0  # seconds within which a new due time is announced; later ones are found by polling


WORKFLOW: Final = "workflow"  # kind of the records that are workflows
WAITING: Final = "waiting"  # state of a workflow of which a step waits for a confirmation or a decision
_RESTS: Final = ("sleeping", WAITING, "paused", "stopped")  # states of workflows that run again when they are due


class Record(msgspec.Struct, frozen=True):
    record_id: str
    kind: str
    owner: str
    key: str | None  # a name that no other record of the kind has; None if it needs none
    state: str
    version: int
    data: str  # content as JSON
    created: float
    updated: float
    due: float | None  # time at which something is to be done, in seconds since 1970; None if nothing is
    fence: int  # number of claims: a claim that another one has followed is void
    expires: float

    def content(self) -> Any:
        return msgspec.json.decode(self.data)


COLUMNS: Final = ", ".join(Record.__struct_fields__)
_COMMA: Final = "\x1f"  # separator of lists, which is in no kind or state
_COUNT: Final = (  # counts the records of an owner, up to a limit
    "SELECT count(*) FROM (SELECT 1 FROM records AS r WHERE r.kind = {kind} AND r.owner = {owner} "
    "AND {condition} LIMIT {most}) AS counted"
)
_KEPT: Final = "r.expires > {now}"
_OPEN: Final = "r.due IS NOT NULL"
_COUNTED: Final = _COUNT.format(kind="i.kind", owner="i.owner", condition=_KEPT, most="i.most")


def topic_of(kind: str) -> str:
    """Return the topic to watch for changes of a kind that processes hold in memory."""
    return f"{TOPIC} {kind}"


def _added(command: PutRecord, row: Row | None) -> Any:
    if row is None:  # its own steps tell why
        return AGAIN
    _, created, updated, due, expires = row
    given = (command.record_id, command.kind, command.owner, command.key, command.state)
    return Record(*given, 1, command.data, created, updated, due, 0, expires)


def _topics(command: PutRecord | ChangeRecord) -> list[str]:
    """Return the topics of those who hold records of its kind or wait for what is due."""
    kinds = command.kinds if isinstance(command, ChangeRecord) else (command.kind,)
    soon = command.delay < SOON if command.delay is not None else command.due is not None
    return [*map(topic_of, kinds), *([TOPIC] if soon else [])]


class PutRecord(Command, frozen=True):
    """Add a record; a Conflict if its id or key is taken, or its owner has too many."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={
            **dict.fromkeys(("record_id", "kind", "owner", "key", "state", "data", "target"), "text"),
            **dict.fromkeys(("delay", "due", "lifetime"), "float8"),
            "most": "bigint",
        },
        change=f"""
            INSERT INTO records ({COLUMNS}, target)
            SELECT record_id, kind, owner, key, state, 1, data, {{now}}, {{now}}, coalesce({{now}} + delay, due), 0,
                coalesce({{now}} + lifetime, {NEVER:g}), target
            FROM {{input}} AS i WHERE i.most IS NULL OR ({_COUNTED}) < i.most ORDER BY record_id
            ON CONFLICT DO NOTHING RETURNING record_id, created, updated, due, expires
        """,
        answer="""
            SELECT i.n, c.created, c.updated, c.due, c.expires FROM {input} AS i JOIN {change} AS c USING (record_id)
        """,
        result=_added,
        rows=lambda command: (("records", command.record_id),),
        topics=_topics,
    )
    record_id: str
    kind: str
    owner: str
    state: str
    data: str
    key: str | None = None
    delay: float | None = None  # seconds until it is due
    due: float | None = None  # time at which it is due, if not after a delay
    lifetime: float | None = None  # seconds until it may be removed; None to keep it
    most: int | None = None  # limit of records of this kind and owner
    target: str | None = None  # Task-ID of the call that began it

    def steps(self) -> Steps:
        """Return the Record, or a Conflict: exists, with the other one's id and owner; too-many."""
        if self.most is not None:
            query = _COUNT.format(kind="?", owner="?", condition=_KEPT, most="?")
            rows = yield Statement(query, (self.kind, self.owner, self.most))
            if rows[0][0] >= self.most:
                return Conflict("too-many", {"most": self.most})
        due = "{now} + ?" if self.delay is not None else "?"
        expires = "?" if self.lifetime is None else "{now} + ?"
        rows = yield Statement(
            f"INSERT INTO records ({COLUMNS}, target) "
            f"VALUES (?, ?, ?, ?, ?, 1, ?, {{now}}, {{now}}, {due}, 0, {expires}, ?) "
            f"ON CONFLICT DO NOTHING RETURNING {COLUMNS}",
            (
                *(self.record_id, self.kind, self.owner, self.key, self.state, self.data),
                self.due if self.delay is None else self.delay,
                NEVER if self.lifetime is None else self.lifetime,
                self.target,
            ),
        )
        if not rows and self.key is not None:
            # One that has expired and is not swept yet keeps its key from nobody.
            freed = yield Statement(
                "UPDATE records SET key = NULL WHERE kind = ? AND key = ? AND expires <= {now} RETURNING 1",
                (self.kind, self.key),
            )
            if freed:
                return (yield from self.steps())
        if not rows:
            found = yield Statement(
                "SELECT record_id, owner FROM records WHERE record_id = ? OR (kind = ? AND key = ?) LIMIT 1",
                (self.record_id, self.kind, self.key),
            )
            return Conflict("exists", {"record_id": found[0][0], "owner": found[0][1]} if found else {})
        yield from _tell(Record(*rows[0]))
        return Record(*rows[0])


class CountOpen(Command, frozen=True):
    """Count the records of an owner of which something is due, up to a limit."""

    kind: str
    owner: str
    most: int

    def steps(self) -> Result[int]:
        query = _COUNT.format(kind="?", owner="?", condition=_OPEN, most="?")
        return store.read_number(query, self.kind, self.owner, self.most)


def put_with(record: PutRecord, **columns: Any) -> Steps:
    """Add a record whose kind has columns of its own; return what adding it returns."""
    made = yield from record.steps()
    if not isinstance(made, Conflict):
        changes = ", ".join(f"{name} = ?" for name in columns)
        yield Statement(f"UPDATE records SET {changes} WHERE record_id = ?", (*columns.values(), record.record_id))
    return made


class ChangeRecord(Command, frozen=True):
    """Change a record, if it is in one of the states named."""

    guards: ClassVar[bool] = True
    grouping: ClassVar[Grouping | None] = Grouping(
        fields={
            **dict.fromkeys(("record_id", "kind_list", "state_list"), "text"),
            **dict.fromkeys(("state", "owner", "data", "new_owner"), "text"),
            **dict.fromkeys(("version", "fence"), "bigint"),
            **dict.fromkeys(("due", "delay", "lifetime"), "float8"),
        },
        change=f"""
            UPDATE records AS r SET state = i.state, version = r.version + 1, data = coalesce(i.data, r.data),
                owner = coalesce(i.new_owner, r.owner), updated = {{now}}, due = coalesce({{now}} + i.delay, i.due),
                expires = coalesce({{now}} + i.lifetime, r.expires)
            FROM {{input}} AS i WHERE r.record_id = i.record_id AND r.expires > {{now}}
                AND r.kind = ANY(string_to_array(i.kind_list, '{_COMMA}'))
                AND r.state = ANY(string_to_array(i.state_list, '{_COMMA}'))
                AND (i.owner IS NULL OR r.owner = i.owner) AND (i.version IS NULL OR r.version = i.version)
                AND (i.fence IS NULL OR r.fence = i.fence)
            RETURNING i.n, {", ".join(f"r.{column}" for column in Record.__struct_fields__)}
        """,
        answer="SELECT * FROM {change}",
        result=lambda _, row: AGAIN if row is None else Record(*row[1:]),  # its own steps tell why
        rows=lambda command: (("records", command.record_id),),
        topics=_topics,
    )
    record_id: str
    kinds: tuple[str, ...]
    allowed_from: tuple[str, ...]
    state: str
    owner: str | None = None  # owner that it must have; None for a change that is not the owner's
    version: int | None = None  # version that it must have
    fence: int | None = None  # claim that must still hold
    data: str | None = None
    new_owner: str | None = None
    due: float | None = None  # time at which it is due next; None if nothing is due any more
    delay: float | None = None  # seconds until it is due next, if that is not a time
    lifetime: float | None = None  # seconds until it may be removed; None to leave that as it is

    @property
    def kind_list(self) -> str:
        return _COMMA.join(self.kinds)

    @property
    def state_list(self) -> str:
        """States that it may be in, as one text."""
        return _COMMA.join(self.allowed_from)

    def steps(self) -> Steps:
        """Return the Record after the change, or a Conflict: not-found; state, version or claim-lost with the state."""
        found = yield from _find(self.record_id, self.kinds, "{lock}")
        if found is None or (self.owner is not None and found.owner != self.owner):
            return Conflict("not-found")
        is_held, is_allowed = self.fence in (None, found.fence), found.state in self.allowed_from
        if not (is_held and is_allowed and self.version in (None, found.version)):
            reason = "version" if is_held and is_allowed else "state" if is_held else "claim-lost"
            return Conflict(reason, {"state": found.state, "kind": found.kind, "version": found.version})
        due = "{now} + ?" if self.delay is not None else "?"
        expires = "expires" if self.lifetime is None else "{now} + ?"
        rows = yield Statement(
            "UPDATE records SET state = ?, version = version + 1, data = ?, owner = ?, updated = {now}, "
            f"due = {due}, expires = {expires} WHERE record_id = ? RETURNING {COLUMNS}",
            (
                self.state,
                found.data if self.data is None else self.data,
                self.new_owner or found.owner,
                self.due if self.delay is None else self.delay,
                *(() if self.lifetime is None else (self.lifetime,)),
                self.record_id,
            ),
        )
        yield from _tell(Record(*rows[0]))
        return Record(*rows[0])


class ChangeWith(Command, frozen=True):
    """Change a record and carry out more as one command, for the transaction of somebody else."""

    guards: ClassVar[bool] = True
    change: ChangeRecord
    more: tuple[Command, ...] = ()

    def steps(self) -> Steps:
        """Return the Record after the change, or the first Conflict."""
        done = yield from self.change.steps()
        for one in () if isinstance(done, Conflict) else self.more:
            also = yield from one.steps()
            if isinstance(also, Conflict):
                return also
        return done


class RenewRecords(Command, frozen=True):
    """Renew the leases of records in a state that this process works on."""

    state: str
    items: tuple[tuple[str, int], ...]  # record_id and fence of each
    lease: float

    def steps(self) -> Steps:
        for record_id, fence in self.items:
            yield Statement(
                "UPDATE records SET due = {now} + ? WHERE record_id = ? AND fence = ? AND state = ?",
                (self.lease, record_id, fence, self.state),
            )
        return None


class FindRecord(Command, frozen=True):
    """Find a record by its id, or by the key of its kind."""

    kinds: tuple[str, ...]
    record_id: str | None = None
    key: str | None = None

    def steps(self) -> Result[Record | None]:
        if self.record_id is not None:
            return _find(self.record_id, self.kinds)
        sql = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND key = ? AND expires > {{now}}"
        return store.read_one(Record, sql, self.kinds[0], self.key)


class FindNamed(Command, frozen=True):
    """Find the records of an owner that a key, or the Task-ID of the call that made them, means."""

    kinds: tuple[str, ...]
    owner: str
    name: str

    def steps(self) -> Result[list[Record]]:
        places = ", ".join("?" * len(self.kinds))
        # Two lookups by index: an agent may have a hundred thousand records.
        select = f"SELECT record_id FROM records WHERE owner = ? AND kind IN ({places}) AND"
        found, own = f"{select} key = ? UNION ALL {select} target = ?", (self.owner, *self.kinds, self.name)
        return list_where({f"record_id IN ({found})": (*own, *own), "expires > {now}": ()}, 10)


class ListRecords(Command, frozen=True):
    """List the records of a kind, oldest first."""

    kind: str
    owner: str | None = None
    states: tuple[str, ...] = ()
    after: tuple[float, str] = (0.0, "")  # time and id of the last record of the previous page
    limit: int = 100
    channel: str | None = None
    owners: tuple[str, ...] = ()  # owners of which one must own it, in place of `owner`

    def steps(self) -> Result[list[Record]]:
        where = {"kind = ?": (self.kind,), "expires > {now}": (), "(created, record_id) > (?, ?)": self.after}
        if self.owner is not None:
            where["owner = ?"] = (self.owner,)
        if self.channel is not None:
            where["channel = ?"] = (self.channel,)
        if self.owners:
            where[f"owner IN ({', '.join('?' * len(self.owners))})"] = self.owners
        if self.states:
            where[f"state IN ({', '.join('?' * len(self.states))})"] = self.states
        return list_where(where, self.limit)


async def read_each(store: Store, listed: ListRecords) -> AsyncIterator[Record]:
    """Yield the records of a list, however many there are; its limit is the number that is read at a time."""
    while True:
        page: list[Record] = await store.read(listed)
        for record in page:
            yield record
        if len(page) < listed.limit:
            return
        listed = msgspec.structs.replace(listed, after=(page[-1].created, page[-1].record_id))


def list_where(where: Mapping[str, tuple[Any, ...]], limit: int) -> Result[list[Record]]:
    """List the records that meet conditions, each with its parameters, oldest first."""
    sql = f"SELECT {COLUMNS} FROM records WHERE {' AND '.join(where)} ORDER BY created, record_id LIMIT ?"
    return store.read_all(Record, sql, *chain.from_iterable(where.values()), limit)


class ClaimDue(Command, frozen=True):
    """Claim records of a kind that are due. They are due again when the lease ends, unless they are changed before."""

    kind: str
    limit: int
    lease: float  # lease in seconds

    def steps(self) -> Steps:
        """Return a list of Records, the most urgent first; `due` is the end of the lease."""
        # The time is a query of its own, so that PostgreSQL reads the clock once and finds the rows by the index.
        rows = yield Statement(
            f"SELECT {COLUMNS}, {{now}} FROM records WHERE kind = ? AND due <= (SELECT {{now}}) "
            "ORDER BY due LIMIT ? {skip}",
            (self.kind, self.limit),
        )
        if not rows:
            return []
        due = rows[0][-1] + self.lease
        # A workflow that rests is woken here, so that its waking is not a transaction of its own.
        wakes = self.kind == WORKFLOW
        woken = f", state = CASE WHEN state IN {_RESTS} THEN 'running' ELSE state END" if wakes else ""
        # By id: SQLite updates chosen rows twenty times faster than the rows of a subquery with RETURNING.
        yield Statement(
            f"UPDATE records SET due = ?, fence = fence + 1{woken} WHERE record_id IN ({', '.join('?' * len(rows))})",
            (due, *(row[0] for row in rows)),
        )
        claimed = []
        for record_id, kind, owner, key, state, version, data, created, updated, _, fence, expires, _ in rows:
            now = "running" if wakes and state in _RESTS else state
            held = (version, data, created, updated, due, fence + 1, expires)
            claimed.append(Record(record_id, kind, owner, key, now, *held))
        return claimed


class NextDue(Command, frozen=True):
    """Tell in how many seconds the next record of each kind is due."""

    kinds: tuple[str, ...]

    def steps(self) -> Steps:
        """Return seconds by kind, negative if it is due already, without kinds of which nothing is."""
        # One after the other: each is the first row of its part of the index.
        first = "(SELECT due FROM records WHERE kind = ? AND due IS NOT NULL ORDER BY due LIMIT 1) - {now}"
        rows = yield Statement(f"SELECT {', '.join([first] * len(self.kinds))}", self.kinds)
        return {kind: due for kind, due in zip(self.kinds, rows[0], strict=True) if due is not None}


def wake(condition: str, *parameters: Any) -> Result[int]:
    """Make records due that would be due later; return their number."""
    sql = f"UPDATE records SET due = {{now}} WHERE {condition} AND due > {{now}} RETURNING 1"
    rows = yield Statement(sql, parameters)
    if rows:
        yield Notify(TOPIC)
    return len(rows)


class WakeWaiting(Command, frozen=True):
    """Make the workflow due of which a step waits for a case, because the case was decided."""

    case_id: str

    def steps(self) -> Result[int]:
        waits = "record_id IN (SELECT workflow_id FROM steps WHERE waits_for = ?)"
        return wake(f"{waits} AND kind = '{WORKFLOW}' AND state = '{WAITING}'", self.case_id)


class RemoveRecord(Command, frozen=True):
    record_id: str

    def steps(self) -> Steps:
        rows = yield Statement("DELETE FROM records WHERE record_id = ? RETURNING kind", (self.record_id,))
        if rows:
            yield Notify(topic_of(rows[0][0]))
        return bool(rows)


def _find(record_id: str, kinds: tuple[str, ...], lock: str = "") -> Result[Record | None]:
    marks = ", ".join("?" * len(kinds))
    sql = f"SELECT {COLUMNS} FROM records WHERE record_id = ? AND kind IN ({marks}) AND expires > {{now}} {lock}"
    return store.read_one(Record, sql, record_id, *kinds)


def _tell(record: Record) -> Steps:
    """Wake those who hold records of the kind, and those who wait for what is due."""
    yield Notify(topic_of(record.kind))
    if record.due is not None and record.due < record.updated + SOON:
        yield Notify(TOPIC)
    return None


class KindCount(msgspec.Struct, frozen=True):
    kind: str
    state: str
    records: int


class CountRecords(Command, frozen=True):
    """Count the records that have not expired, by kind and state."""

    def steps(self) -> Result[list[KindCount]]:
        return store.read_all(
            KindCount,
            "SELECT kind, state, count(*) FROM records WHERE expires > {now} GROUP BY kind, state ORDER BY kind, state",
        )


class FindAnyRecord(Command, frozen=True):
    """Find a record of any kind, even if it has expired but is still stored."""

    record_id: str

    def steps(self) -> Result[Record | None]:
        return store.read_one(Record, f"SELECT {COLUMNS} FROM records WHERE record_id = ?", self.record_id)


class ExpireRecord(Command, frozen=True):
    """End the life of a record. Steps of a workflow are removed, and a process that works on it loses its claim."""

    record_id: str

    def steps(self) -> Steps:
        """Return the kind of the record; None if there is no such record."""
        rows = yield Statement(
            "UPDATE records SET expires = {now}, due = NULL, fence = fence + 1 WHERE record_id = ? RETURNING kind",
            (self.record_id,),
        )
        if not rows:
            return None
        yield Statement("DELETE FROM steps WHERE workflow_id = ?", (self.record_id,))
        yield Notify(topic_of(rows[0][0]))
        return rows[0][0]


KIND: Final = "log"  # kind of the records that are events
_DROPPED: Final = 64  # events that are removed at a time


class PutEvent(Command, frozen=True):
    """Add an event; the oldest ones of its owner make room for it."""

    record_id: str
    owner: str
    data: str
    most: int  # limit of events of one owner
    most_size: int  # limit of characters of their data together

    def steps(self) -> Result[Record]:
        size = len(self.data)
        rows = yield Statement(
            "UPDATE event_counters SET events = events + 1, size = size + ? WHERE owner = ? RETURNING events, size",
            (size, self.owner),
        )
        if not rows:  # the first event, or the first since events are counted
            known = yield Statement(
                "SELECT count(*), coalesce(sum(length(data)), 0) FROM records WHERE kind = ? AND owner = ?",
                (KIND, self.owner),
            )
            rows = yield Statement(
                "INSERT INTO event_counters (owner, events, size) VALUES (?, ?, ?) ON CONFLICT (owner) DO UPDATE "
                "SET events = event_counters.events + 1, size = event_counters.size + ? RETURNING events, size",
                (self.owner, known[0][0] + 1, int(known[0][1]) + size, size),
            )
        count, total = rows[0]
        while count > self.most or total > self.most_size:
            dropped = yield Statement(
                "DELETE FROM records WHERE record_id IN (SELECT record_id FROM records WHERE kind = ? AND owner = ? "
                "ORDER BY created, record_id LIMIT ?) RETURNING length(data)",
                (KIND, self.owner, min(max(count - self.most, 1), _DROPPED)),
            )
            if not dropped:
                break
            count, total = count - len(dropped), total - sum(row[0] for row in dropped)
            yield Statement(
                "UPDATE event_counters SET events = ?, size = ? WHERE owner = ?", (count, total, self.owner)
            )
        record: Record = yield from PutRecord(self.record_id, KIND, self.owner, "logged", self.data).steps()
        return record
