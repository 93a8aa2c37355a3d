"""Transactions on PostgreSQL: one unit step by step, or many commands as one statement.

Records are sealed in commit order: one transaction of a process at a time, and each only at its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from bespeak.errors import StoreError, StoreUnavailableError
from bespeak.state.store.postgres_connection import Connection, is_outage
from bespeak.state.store.sql import postgres_sql
from bespeak.state.store.store import AGAIN, Command, Conflict, Grouping, Rows, Seal, Sealed, Sealer, Statement, Unit

CHANNEL: Final = "bespeak"  # channel on which processes announce changed topics
NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', topic) FROM unnest($1::text[]) AS topic"
_KNOWN: Final = 256  # cache size: there are as many texts as combinations of kinds

Kind = type[Command]


class BatchEntry:
    __slots__ = ("command", "item", "required", "result")

    def __init__(self, command: Command, *, required: bool = False) -> None:
        self.command = command
        self.item: Any = command  # argument of the grouping functions: the command, or its sealed record
        self.required = required  # True if the whole batch fails unless this command succeeds
        self.result: Any = None


class Batch:
    """Commands that go to the database together, sorted by kind."""

    def __init__(self, entries: Sequence[BatchEntry]) -> None:
        kinds: dict[Kind, list[BatchEntry]] = {}
        for entry in entries:
            kinds.setdefault(type(entry.command), []).append(entry)
        # Sorted, so that the same kinds are the same statement to the database.
        self._kinds = sorted(kinds.items(), key=lambda kind: kind[0].__name__)
        self._topics: set[str] = set()
        self._topics.update(*(topics_of(entry.command) for entry in entries))

    def statement(self) -> tuple[str, list[Any]]:
        parameters: list[Any] = []
        checks = []
        for place, (kind, entries) in enumerate(self._kinds):
            grouping = grouping_of(kind)
            parameters += [[getattr(entry.item, name) for entry in entries] for name in grouping.fields]
            if grouping.parts is not None:
                parameters += _flatten(entries, *grouping.parts)
            required = [number for number, entry in enumerate(entries, 1) if entry.required]
            if required:
                checks.append(place)
                parameters.append(required)
        if self._topics:
            parameters.append(sorted(self._topics))
        return _text(tuple(kind for kind, _ in self._kinds), tuple(checks), bool(self._topics)), parameters

    async def run(self, connection: Connection) -> None:
        sql, parameters = self.statement()
        self.answer((await connection.fetch(sql, *parameters))[0])

    def answer(self, row: Sequence[Any]) -> None:
        for (kind, entries), found in zip(self._kinds, row, strict=False):
            result = grouping_of(kind).result
            rows = {answered[0]: answered for answered in found or ()}
            for number, entry in enumerate(entries, 1):
                entry.result = result(entry.item, rows.get(number))


def grouping_of(kind: Kind) -> Grouping:
    """Return the grouping of a kind; only for kinds that have one."""
    assert kind.grouping is not None
    return kind.grouping


def topics_of(command: Command) -> Collection[str]:
    """Return the topics that a command of a grouped kind notifies."""
    topics = grouping_of(type(command)).topics
    return () if topics is None else topics(command)


def _flatten(entries: Sequence[BatchEntry], attribute: str, fields: Mapping[str, str]) -> list[list[Any]]:
    """Return the columns of the parts of all commands: the number of the command, then the fields."""
    parts = [(number, part) for number, entry in enumerate(entries, 1) for part in getattr(entry.item, attribute)]
    return [[number for number, _ in parts], *([getattr(part, name) for _, part in parts] for name in fields)]


@lru_cache(_KNOWN)
def _text(kinds: tuple[Kind, ...], checks: tuple[int, ...], topics: bool) -> str:
    """Build the statement. Each kind has tables: the input, its parts, the rows of the change, and the answer.

    A required command that fails divides by zero, which undoes the whole statement. Nothing gentler stops a statement
    from within, and another statement would be another round trip.
    """
    tables, columns, conditions = [], [], []
    number = 0
    for place, kind in enumerate(kinds):
        grouping = grouping_of(kind)
        names = ", ".join(grouping.fields)
        arrays = _arrays(number, grouping.fields)
        number += len(grouping.fields)
        tables.append(f"i{place} AS (SELECT * FROM unnest({arrays}) WITH ORDINALITY AS t({names}, n))")
        if grouping.parts is not None:
            fields = {"n": "bigint", **grouping.parts[1]}
            tables.append(f"p{place} AS (SELECT * FROM unnest({_arrays(number, fields)}) AS t({', '.join(fields)}))")
            number += len(fields)
        tables.append(f"c{place} AS ({_named(grouping.change, place)})")
        if grouping.after is not None:
            tables.append(f"a{place} AS ({_named(grouping.after, place)})")
        if grouping.answer is None:
            columns.append("NULL")
        else:
            tables.append(f"r{place} AS ({_named(grouping.answer, place)})")
            columns.append(f"ARRAY(SELECT ROW(r{place}.*) FROM r{place})")
        if place in checks:
            number += 1
            done = f"SELECT count(*) FROM r{place} WHERE n = ANY(${number}::bigint[])"
            conditions.append(f"1 / (({done}) = cardinality(${number}::bigint[]))::int")
    if topics:
        number += 1
        woken = NOTIFY.replace("$1", f"${number}")
        conditions.append(f"ARRAY(SELECT w::text FROM ({woken}) AS w)")
    return f"WITH {', '.join(tables)} SELECT {', '.join(columns + conditions)}"


def _arrays(before: int, fields: Mapping[str, str]) -> str:
    """Return the parameters of the columns of a table, as arrays; `before` parameters come earlier."""
    return ", ".join(f"${number}::{kind}[]" for number, kind in enumerate(fields.values(), before + 1))


def _named(sql: str, place: int) -> str:
    for word, letter in (("{input}", "i"), ("{parts}", "p"), ("{change}", "c")):
        sql = sql.replace(word, f"{letter}{place}")
    return postgres_sql(sql)


_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0"

SealRecord = Callable[[Connection, Seal], Awaitable[Sealed]]


async def transact(connection: Connection, unit: Unit, seal: SealRecord) -> Sequence[Any] | Conflict:
    """Run a unit. On return it has committed, unless it returns a Conflict.

    After an exception nothing has happened, except after an outage: if the last statement was on its way, the unit may
    have happened, or may happen yet.
    """
    unit.topics.clear()  # an earlier attempt may have left some
    announced: set[str] = set()

    async def announce_and_seal(connection: Connection, step: Seal) -> Sealed:
        # First, because others wait from the first record to the commit.
        await _announce(connection, unit.topics, announced)
        return await seal(connection, step)

    await connection.execute("BEGIN READ WRITE")
    try:
        outcome = await _run(connection, unit, announce_and_seal, announced)
        if isinstance(outcome, Conflict):
            await connection.execute("ROLLBACK")
            return outcome
        await _announce(connection, unit.topics, announced)
        await connection.execute("COMMIT")
    except Exception as error:
        await undo(connection, error)
        raise
    return outcome


async def _announce(connection: Connection, topics: set[str], announced: set[str]) -> None:
    if not topics <= announced:
        await connection.fetch(NOTIFY, sorted(topics - announced))
        announced |= topics


async def undo(connection: Connection, error: Exception) -> None:
    """Roll back the transaction of a connection after an error, closing the connection if necessary."""
    try:
        if is_outage(error):
            connection.terminate()
        elif not connection.is_closed():
            await connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001 - the error before this one says more
        connection.terminate()


async def _run(connection: Connection, unit: Unit, seal: SealRecord, announced: set[str]) -> Sequence[Any] | Conflict:
    results: list[Any] = []
    waiting = unit.commands
    for more in (unit.then, None):
        for command in waiting:
            result = await _run_at_once(connection, command, unit.topics, announced)
            if result is AGAIN:
                result = await run_command(connection, command, unit.topics, seal)
            if isinstance(result, Conflict):
                return msgspec.structs.replace(result, position=len(results)) if results else result
            results.append(result)
        if more is None:
            break
        waiting = more(results)
    return results


async def _run_at_once(connection: Connection, command: Command, topics: set[str], announced: set[str]) -> Any:
    """Run a command in one statement, as in a group; AGAIN if it has none, or if its steps have to tell the result."""
    if command.grouping is None or command.grouping.seal is not None:
        return AGAIN
    entry = BatchEntry(command)
    await Batch([entry]).run(connection)
    if entry.result is not AGAIN:
        topics.update(topics_of(command))
        announced.update(topics_of(command))
    return entry.result


async def read(connection: Connection, command: Command) -> Any:
    """Return the result of a read-only command. All its statements see one snapshot."""
    program = command.steps()
    try:
        step = next(program)
        if not isinstance(step, Statement):
            raise StoreError("a read runs only statements")
        program.send(await _execute(connection, step))
    except StopIteration as end:
        return end.value
    # Most ask once, and need no transaction for that. This one asks more: it begins again, in one.
    program.close()
    # It locks no rows, so it may take its time between two statements: an export waits for whoever reads it.
    await connection.execute(_READ)
    try:
        result = await run_command(connection, command, set(), _sealing_is_writing)
        await connection.execute("COMMIT")
    except Exception as error:
        await undo(connection, error)
        raise
    return result


async def run_command(connection: Connection, command: Command, topics: set[str], seal: SealRecord) -> Any:
    program = command.steps()
    given: Any = None
    try:
        while True:
            step = program.send(given)
            if isinstance(step, Statement):
                given = await _execute(connection, step)
            elif isinstance(step, Seal):
                given = await seal(connection, step)
            else:
                topics.add(step.topic)
                given = None
    except StopIteration as end:
        return end.value


async def _execute(connection: Connection, step: Statement) -> Rows:
    return await connection.fetch(postgres_sql(step.sql), *step.parameters)


async def _sealing_is_writing(_: Connection, __: Seal) -> Sealed:
    raise StoreError("a read cannot seal records")


_HEADS: Final = """
SELECT a.agent_id, h.audit_id FROM unnest($1::text[]) AS a(agent_id) LEFT JOIN LATERAL (
    SELECT audit_id FROM audit WHERE audit.agent_id = a.agent_id ORDER BY position DESC LIMIT 1
) AS h ON true
"""


class Sealing:
    """The sealer and its lock. A transaction that seals holds the lock from its first record until its commit.

    The lock comes last, after the rows: whoever waits for a row that another machine has locked must not keep everybody
    else waiting. Only a group that seals in its first statement waits for rows under the lock, for `LANE_MILLISECONDS`
    at most, and then its units run by themselves.
    """

    def __init__(self) -> None:
        self.sealer: Sealer | None = None
        self._turn = asyncio.Lock()
        self._outages = 0  # number of transactions that lost the database while they held the lock
        self._last: str | None = None  # latest record sealed under the current lock
        self._doubt: str | None = None  # record whose commit is uncertain

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold the lock. Sealed records are kept at its end, or discarded after an exception.

        The wait has no limit of its own. Few can wait, and whoever holds the lock is waiting for the database: if that
        is lost, so are those behind it.
        """
        outages = self._outages
        await self._turn.acquire()
        try:
            if self._outages != outages:
                raise StoreUnavailableError("The database was lost while a change waited for its turn.")
            yield
        except BaseException as error:
            if is_outage(error) or not isinstance(error, Exception):
                self._outages += 1
                self._doubt, self._last = self._last or self._doubt, None
            else:
                self.discard()
            raise
        else:
            if self._last is not None:
                self._attached().keep()
                self._last = None
        finally:
            self._turn.release()

    async def learn(self, connection: Connection, agents: Iterable[str]) -> None:
        """Fetch the chain heads that the sealer does not know."""
        sealer = self._attached()
        if self._doubt is not None:
            # After an outage: did the last transaction commit? The chain goes on from what is there.
            found = await connection.fetch("SELECT 1 FROM audit WHERE audit_id = $1 LIMIT 1", self._doubt)
            self._doubt = None
            if found:
                sealer.keep()
            else:
                sealer.discard()
        unknown = list({agent for agent in agents if not sealer.knows(agent)})
        if unknown:
            for agent_id, audit_id in await connection.fetch(_HEADS, unknown):
                sealer.learn(agent_id, audit_id)

    def seal(self, step: Seal) -> Sealed:
        if not self._turn.locked():
            raise StoreError("a record can be sealed only in its turn")
        sealed = self._attached().seal(step.agent_id, step.payload)
        self._last = sealed.audit_id
        return sealed

    async def learn_and_seal(self, connection: Connection, step: Seal) -> Sealed:
        await self.learn(connection, (step.agent_id,))
        return self.seal(step)

    def _attached(self) -> Sealer:
        if self.sealer is None:
            raise StoreError("no sealer is attached to the store, so nothing can be sealed")
        return self.sealer

    def discard(self) -> None:
        if self._last is not None:
            self._attached().discard()
            self._last = None


class LateTurn:
    """The turn of one transaction: taken when it seals its first record, held until the end of the block."""

    def __init__(self, sealing: Sealing) -> None:
        self._sealing = sealing
        self._held = AsyncExitStack()
        self._is_held = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._held.__aexit__(kind, error, trace)

    async def take(self) -> None:
        if not self._is_held:
            await self._held.enter_async_context(self._sealing.turn())
            self._is_held = True

    async def seal(self, connection: Connection, step: Seal) -> Sealed:
        await self.take()
        return await self._sealing.learn_and_seal(connection, step)

    def discard(self) -> None:
        """Discard the records that were sealed: their transaction was rolled back."""
        if self._is_held:
            self._sealing.discard()
