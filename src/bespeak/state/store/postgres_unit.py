"""A unit in its own PostgreSQL transaction, step by step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from bespeak.errors import StoreError
from bespeak.state.store.command import Command, Conflict, Rows, Seal, Sealed, Statement
from bespeak.state.store.dialect import postgres_sql
from bespeak.state.store.postgres_address import Connection, is_outage
from bespeak.state.store.unit import Unit

CHANNEL: Final = "bespeak"
"""Channel on which processes announce changed topics."""
NOTIFY: Final = f"SELECT pg_notify('{CHANNEL}', topic) FROM unnest($1::text[]) AS topic"

Sealing = Callable[[Connection, Seal], Awaitable[Sealed]]


async def transact(connection: Connection, unit: Unit, seal: Sealing) -> Sequence[Any] | Conflict:
    """Run a unit. On return it has committed; after an exception nothing has happened."""
    unit.topics.clear()  # an earlier attempt may have left some
    await connection.execute("BEGIN READ WRITE")
    try:
        outcome = await _run(connection, unit, seal)
        if isinstance(outcome, Conflict):
            await connection.execute("ROLLBACK")
            return outcome
        if unit.topics:
            await connection.fetch(NOTIFY, sorted(unit.topics))
        await connection.execute("COMMIT")
    except Exception as error:
        await undo(connection, error)
        raise
    return outcome


async def undo(connection: Connection, error: Exception) -> None:
    """Roll back the transaction of a connection after an error, closing the connection if necessary."""
    try:
        if is_outage(error):
            connection.terminate()
        elif not connection.is_closed():
            await connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001 - the error before this one says more
        connection.terminate()


async def _run(connection: Connection, unit: Unit, seal: Sealing) -> Sequence[Any] | Conflict:
    results: list[Any] = []
    waiting = unit.commands
    for more in (unit.then, None):
        for command in waiting:
            result = await run_command(connection, command, unit.topics, seal)
            if isinstance(result, Conflict):
                return result
            results.append(result)
        if more is None:
            break
        waiting = more(results)
    return results


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
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
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
