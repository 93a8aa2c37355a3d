"""Items of queues in the store: records of kind `submission` whose channel is the queue."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from bespeak.extensions.messages.posting import Posting, post
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.handling import to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import (
    COLUMNS,
    ChangeRecord,
    ChangeWith,
    Record,
    RenewRecords,
    list_where,
    topic_of,
)
from bespeak.state.store.store import Command, Conflict, Notify, Result, Statement, Steps, read_all, read_number

SUBMISSION: Final = "submission"
QUEUED: Final = "queued"
RUNNING: Final = "running"
DONE: Final = "done"
DEAD: Final = "dead"  # refused, or failed as often as the queue tries
CANCELLED: Final = "cancelled"
KEPT: Final = 30 * 86400.0  # seconds for which an item can be looked up after its end
AGEING: Final = 600.0  # seconds after which an item comes before a newer one whose priority is one higher
MOST_COUNTED: Final = 1000  # items up to which a position is counted
_MOST_PULLED: Final = 1024 * 1024  # bytes of the items of one answer that has more than one
_AT_ONCE: Final = 100  # items that are returned to a queue in one transaction
_ROUNDS: Final = 10  # times that more items are claimed in place of those of ended authority
_FIRST_DELAY: Final = 1.0
_LONGEST_DELAY: Final = 300.0


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of an item."""

    queue: str
    payload: Any  # an object, for the function of a queue; what the model takes, for agents
    priority: int
    authority: Authority
    joined: bool = False  # True if a handler of the service submitted it, so that no scope of the queue is needed
    callback: str | None = None
    result: Any = None
    error: dict[str, Any] | None = None  # code and message of the last failure
    forgiven: int = 0  # claims that do not count as attempts: those before an operator tried it again
    unreadable: bool = False  # True if `payload` is what was stored, of which nobody could make an item

    @property
    def outcome(self) -> dict[str, Any]:
        """Result and error, as far as there are."""
        return {name: one for name, one in (("result", self.result), ("error", self.error)) if one is not None}


_decode = msgspec.json.Decoder(Item).decode


def read_item(record: Record) -> Item:
    """Return the content of the record of an item. One unreadable item must not keep others from being worked on."""
    try:
        return _decode(record.data)
    except (msgspec.MsgspecError, RecursionError) as error:
        reason = {"code": "unreadable-item", "message": f"The stored item cannot be read: {error}"[:300]}
        return Item("", record.data, 0, Authority(record.owner, (), {}), error=reason, unreadable=True)


class ClaimItems(Command, frozen=True):
    """Claim items of a queue that wait, or whose process has died. The number of claims is their fence."""

    queue: str
    limit: int
    lease: float
    held: frozenset[tuple[str, int]] = frozenset()  # id and fence of what this process works on
    holder: str | None = None  # agent that pulls them; None for a process, which also takes what others abandoned

    def steps(self) -> Result[list[Record]]:
        """Return the items, with the time at which each is due again."""
        waiting = "" if self.holder is None else f" AND state = '{QUEUED}'"
        rows = yield Statement(
            f"SELECT {COLUMNS}, {{now}} FROM records WHERE kind = '{SUBMISSION}' AND channel = ? "
            f"AND due <= (SELECT {{now}}){waiting} ORDER BY due LIMIT ? {{skip}}",
            (self.queue, self.limit),
        )
        now = rows[0][-1] if rows else 0.0
        found = [Record(*row[:-1]) for row in rows]
        if self.holder is not None:
            sizes = accumulate(len(record.data) for record in found)
            found = [one for one, size in zip(found, sizes, strict=True) if size <= _MOST_PULLED or one is found[0]]
        # Leases end too early if the clock jumps or the process was stopped; what it works on has not been abandoned.
        kept = self.held.intersection((record.record_id, record.fence) for record in found)
        if kept:
            yield from RenewRecords(RUNNING, tuple(kept), self.lease).steps()
            found = [record for record in found if (record.record_id, record.fence) not in kept]
        if found:
            # By id: SQLite updates chosen rows twenty times faster than the rows of a subquery with RETURNING.
            places = ", ".join("?" * len(found))
            yield Statement(
                f"UPDATE records SET state = '{RUNNING}', due = ?, fence = fence + 1, version = version + 1, "
                f"updated = ?, holder = ? WHERE record_id IN ({places})",
                (now + self.lease, now, self.holder, *(record.record_id for record in found)),
            )
        claimed = {"state": RUNNING, "due": now + self.lease, "updated": now}
        return [msgspec.structs.replace(one, **claimed, fence=one.fence + 1, version=one.version + 1) for one in found]


class NextItem(Command, frozen=True):
    """Tell in how many seconds the next item of a queue is due; None if none is."""

    queue: str

    def steps(self) -> Result[float | None]:
        rows = yield Statement(
            f"SELECT due - {{now}} FROM records WHERE kind = '{SUBMISSION}' AND channel = ? AND due IS NOT NULL "
            "ORDER BY due LIMIT 1",
            (self.queue,),
        )
        return rows[0][0] if rows else None


class CountBefore(Command, frozen=True):
    """Count the items of a queue that come before one, up to a limit."""

    queue: str
    due: float

    def steps(self) -> Result[int]:
        return read_number(
            f"SELECT count(*) FROM (SELECT 1 FROM records WHERE kind = '{SUBMISSION}' AND channel = ? AND due < ? "
            f"AND state = '{QUEUED}' LIMIT ?) AS earlier",
            *(self.queue, self.due, MOST_COUNTED),
        )


class QueueCount(msgspec.Struct, frozen=True):
    queue: str
    state: str
    count: int


class CountItems(Command, frozen=True):
    """Count the items by queue and state."""

    def steps(self) -> Result[list[QueueCount]]:
        return read_all(
            QueueCount,
            f"SELECT coalesce(channel, ''), state, count(*) FROM records WHERE kind = '{SUBMISSION}' "
            "AND expires > {now} GROUP BY channel, state ORDER BY channel, state",
        )


class ListItems(Command, frozen=True):
    """List the items of a queue in one state, the oldest first."""

    queue: str
    state: str
    limit: int
    after: tuple[float, str] = (0.0, "")  # time and id of the last item of the previous page

    def steps(self) -> Result[list[Record]]:
        where = {"kind = ?": (SUBMISSION,), "channel = ?": (self.queue,), "state = ?": (self.state,)}
        return list_where({**where, "expires > {now}": (), "(created, record_id) > (?, ?)": self.after}, self.limit)


def retry_item(record: Record) -> ChangeRecord:
    """Return the command that puts a dead item back into its queue, with all its attempts."""
    data = to_json(msgspec.structs.replace(read_item(record), forgiven=record.fence))
    return ChangeRecord(record.record_id, (SUBMISSION,), (DEAD,), QUEUED, data=data, delay=0.0, version=record.version)


def change_item(record: Record, state: str, item: Item, **fields: Any) -> ChangeRecord:
    return ChangeRecord(
        record.record_id, (SUBMISSION,), (RUNNING,), state, fence=record.fence, data=to_json(item), **fields
    )


def end_item(record: Record, item: Item, state: str, server_id: str, **outcome: Any) -> ChangeWith:
    """Return the command that ends an item, and tells its callback what became of it."""
    ended = msgspec.structs.replace(item, **{"error": None, **outcome})
    posting: tuple[Command, ...] = ()
    if item.callback is not None:
        told = {"tracking_id": record.record_id, "target": item.queue, "status": state, **ended.outcome}
        # One item ends once, so that its callback can recognise a posting that comes twice.
        posted = Posting(f"posting-{record.record_id}", "callback", server_id, told, recipient=record.owner)
        posting = (post(item.callback, posted),)
    return ChangeWith(change_item(record, state, ended, lifetime=KEPT), posting)


def delay_after(attempt: int) -> float:
    """Return the seconds after which an item is tried again whose attempt has failed."""
    return min(_FIRST_DELAY * 2.0 ** (attempt - 1), _LONGEST_DELAY)


class PulledQueue(NamedTuple):
    """A queue on whose items agents work, as its commands need to know it."""

    name: str
    retries: int
    server_id: str

    def give_back(self, record: Record, code: str, reason: str, *, final: bool = False, **due: float) -> Command:
        """Return the command that puts an item back into the queue, or ends it if it may not be tried again."""
        item, error = read_item(record), {"code": code, "message": reason}
        if final or record.fence - item.forgiven > self.retries:
            return end_item(record, item, DEAD, self.server_id, error=error)
        due = due or {"due": record.created - AGEING * item.priority}  # its place before
        return change_item(record, QUEUED, msgspec.structs.replace(item, error=error), **due)


def receipt_of(record: Record) -> str:
    """Return what tells this claim of an item from later ones."""
    return f"{record.record_id}.{record.fence}"


class EndHeld(Command, frozen=True):
    """End items that an agent holds, or give them back: all of them, or none."""

    guards: ClassVar[bool] = True
    queue: PulledQueue
    holder: str
    endings: tuple[dict[str, Any], ...]  # as PULL takes them: those with a `reason` are given back

    def steps(self) -> Steps:
        """Return the Record of each, or a Conflict: not-held, with the ids of those that are not."""
        # In one order, so that two calls that name the same items do not wait for each other.
        rows = yield Statement(
            f"SELECT {COLUMNS}, {{now}} FROM records WHERE record_id IN ({', '.join('?' * len(self.endings))}) "
            f"AND kind = '{SUBMISSION}' AND channel = ? AND state = '{RUNNING}' AND holder = ? "
            "AND due > (SELECT {now}) ORDER BY record_id {lock}",
            (*(one["item_id"] for one in self.endings), self.queue.name, self.holder),
        )
        held = {(row[0], receipt_of(record)): record for row in rows for record in (Record(*row[:-1]),)}
        found = [(held.pop((one["item_id"], one["receipt"]), None), one) for one in self.endings]
        if lost := [one["item_id"] for record, one in found if record is None]:
            return Conflict("not-held", {"items": lost})
        ended: list[Record] = []
        plain: list[str] = []  # ids of those that are only done
        changed: list[str] = []  # ids and content of those whose content changes
        for record, one in found:
            assert record is not None, "none is lost"
            item, result = read_item(record), one.get("result")
            if "reason" in one:
                final, delay = one.get("final", False), delay_after(record.fence - item.forgiven)
                back = self.queue.give_back(record, "rejected", one["reason"], final=final, delay=delay)
                ended.append((yield from back.steps()))
            elif item.callback is not None:
                ended.append((yield from end_item(record, item, DONE, self.queue.server_id, result=result).steps()))
            else:
                plain.append(record.record_id)
                if result is not None or item.error is not None:
                    changed += (plain[-1], to_json(msgspec.structs.replace(item, result=result, error=None)))
                ended.append(msgspec.structs.replace(record, state=DONE, updated=rows[0][-1]))
        if plain:  # one statement is five times faster than one for each
            data = f"data = CASE record_id {'WHEN ? THEN ? ' * (len(changed) // 2)}ELSE data END, " if changed else ""
            yield Statement(
                f"UPDATE records SET {data}state = '{DONE}', due = NULL, version = version + 1, updated = ?, "
                f"expires = ? WHERE record_id IN ({', '.join('?' * len(plain))})",
                (*changed, rows[0][-1], rows[0][-1] + KEPT, *plain),
            )
            yield Notify(topic_of(SUBMISSION))
        return ended


class ReturnItems(Command, frozen=True):
    """Put items back into their queue that were pulled and not ended in time."""

    queue: PulledQueue

    def steps(self) -> Steps:
        rows = yield Statement(
            f"SELECT {COLUMNS} FROM records WHERE kind = '{SUBMISSION}' AND state = '{RUNNING}' AND channel = ? "
            f"AND due <= (SELECT {{now}}) ORDER BY due LIMIT {_AT_ONCE:d} {{skip}}",
            (self.queue.name,),
        )
        message = "The agent that had pulled the item did not acknowledge it in time."
        for row in rows:
            yield from self.queue.give_back(Record(*row), "not-acknowledged", message).steps()
        return None


class PullItems(Command, frozen=True):
    """Claim items of a queue for an agent, in the transaction in which it ends earlier ones."""

    guards: ClassVar[bool] = True
    ending: EndHeld
    limit: int
    lease: float
    judge: Callable[[Item], Refused | None]  # tells why nobody may work on an item any more

    def steps(self) -> Steps:
        """Return the Records that were ended, and those that were claimed with their items; or the Conflict."""
        queue, pulled = self.ending.queue, list[tuple[Record, Item]]()
        ended = (yield from self.ending.steps()) if self.ending.endings else []
        if isinstance(ended, Conflict):
            return ended
        yield from ReturnItems(queue).steps()
        for _ in range(_ROUNDS):
            claim = ClaimItems(queue.name, self.limit - len(pulled), self.lease, holder=self.ending.holder)
            claimed, before = (yield from claim.steps()), len(pulled)
            for record in claimed:
                item = read_item(record)
                if (refused := self.judge(item)) is not None:
                    yield from queue.give_back(record, refused.code, refused.message, final=True).steps()
                else:
                    pulled.append((record, item))
            if len(pulled) - before == len(claimed):
                break
        return ended, pulled
