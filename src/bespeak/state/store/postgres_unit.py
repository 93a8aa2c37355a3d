"""A unit in its own PostgreSQL transaction, step by step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from bespeak.errors import StoreError
from bespeak.state.store.command import Command, Conflict, Rows, Seal, Sealed, Statement
from bespeak.state.store.dialect import postgres_sql
from bespeak.state.store.grouping import AGAIN
from bespeak.state.store.postgres_address import Connection, is_outage
from bespeak.state.store.postgres_batch import NOTIFY, Batch, Entry, topics_of
from bespeak.state.store.unit import Unit

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0"

Sealing = Callable[[Connection, Seal], Awaitable[Sealed]]


async def transact(connection: Connection, unit: Unit, seal: Sealing) -> Sequence[Any] | Conflict:
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


async def _run(connection: Connection, unit: Unit, seal: Sealing, announced: set[str]) -> Sequence[Any] | Conflict:
    results: list[Any] = []
    waiting = unit.commands
    for more in (unit.then, None):
        for command in waiting:
            result = await _run_at_once(connection, command, unit.topics, announced)
            if result is AGAIN:
                result = await run_command(connection, command, unit.topics, seal)
            if isinstance(result, Conflict):
                return result
            results.append(result)
        if more is None:
            break
        waiting = more(results)
    return results


async def _run_at_once(connection: Connection, command: Command, topics: set[str], announced: set[str]) -> Any:
    """Run a command in one statement, as in a group; AGAIN if it has none, or if its steps have to tell the result."""
    if command.grouping is None or command.grouping.seal is not None:
        return AGAIN
    entry = Entry(command)
    batch = Batch([entry])
    sql, parameters = batch.statement()
    batch.answer((await connection.fetch(sql, *parameters))[0])
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


async def run_command(connection: Connection, command: Command, topics: set[str], seal: Sealing) -> Any:
    """Run one command."""
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
