"""The store in a PostgreSQL database, which processes on many machines may share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from bespeak.errors import ConfigError, StoreError, StoreUnavailableError
from bespeak.state.store.command import Command, Conflict, Sealer
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.commands.idempotency import ClaimKey
from bespeak.state.store.postgres_address import (
    Address,
    Availability,
    is_collision,
    is_locked,
    is_outage,
    may_be_retried,
)
from bespeak.state.store.postgres_listener import Listener
from bespeak.state.store.postgres_pool import READERS, READING, WRITERS, Pool, close
from bespeak.state.store.postgres_schema import migrate
from bespeak.state.store.postgres_sealing import LateTurn, Sealing
from bespeak.state.store.postgres_unit import read, transact
from bespeak.state.store.postgres_writer import BY_KEY, QUEUE, Lane, rows_of
from bespeak.state.store.store import Store, Then, Watcher
from bespeak.state.store.unit import Unit

_logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
"""Limit of attempts for a unit that collides with others."""


class PostgresStore(Store):
    """A store in PostgreSQL. `start` connects and reports problems. It works in the loop it was started in."""

    def __init__(self, dsn: str, *, durability: str = "full") -> None:
        self.sole = False
        self._address = Address(dsn, durability)
        self._durability = durability
        self._watchers: dict[str, list[Watcher]] = {}
        self._sealing = Sealing()
        self._readers = Pool(self._address, READERS, READING)
        self._writers = Pool(self._address, WRITERS, BY_KEY)
        # A claim keeps others away, and is seen by them once it has committed. It promises nothing to anybody yet, so
        # nobody waits for the disk: one that is lost with the database is one that nobody holds any more.
        self._claims = Lane(Address(dsn, "process"), self._sealing, self._settle, self._run_alone)
        # What is sealed goes one after the other; the rest need not wait for it. What is one statement need not wait
        # for what takes several, which matters where the database is far away.
        self._plain = Lane(self._address, self._sealing, self._settle, self._run_alone)
        self._sealed = Lane(self._address, self._sealing, self._settle, self._run_alone)
        self._stepwise = Lane(self._address, self._sealing, self._settle, self._run_alone)
        self._listener = Listener(self._address, self._tell, self._tell_all)
        self._alone: set[asyncio.Task[None]] = set()
        self._open = False
        self._availability = Availability(self._address.name)

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        self._check_open()
        unit = Unit(commands, then, asyncio.get_running_loop().create_future())
        rows = rows_of(commands)
        if rows is None:
            if len(self._alone) >= QUEUE:
                raise StoreUnavailableError(f"{self._address.name} is too slow: {QUEUE} changes wait for it.")
            self._run_alone(unit)
        else:
            self._lane_of(unit).put(unit, rows)
        outcome: Sequence[Any] | Conflict = await unit.future
        return outcome

    async def read(self, command: Command) -> Any:
        self._check_open()
        try:
            connection = await self._readers.take()
            try:
                found = await read(connection, command)
                self._availability.note_success()
                return found
            except BaseException as error:
                # Whoever goes away in the middle leaves a connection of which nobody knows where it stands.
                if is_outage(error) or not isinstance(error, Exception):
                    connection.terminate()
                raise
            finally:
                self._readers.give_back(connection)
        except Exception as error:
            raise self._explained(error) from error

    def attach(self, sealer: Sealer) -> None:
        self._sealing.sealer = sealer

    def watch(self, topic: str, watcher: Watcher) -> None:
        self._watchers.setdefault(topic, []).append(watcher)

    async def start(self) -> None:
        try:
            connection = await self._address.open()
            try:
                await migrate(self._address.name, connection)
                if self._durability == "full" and (await connection.fetch("SHOW synchronous_commit"))[0][0] == "off":
                    self._address.settings["synchronous_commit"] = "on"
            finally:
                await close(connection)
            await self._listener.start()
        except ConfigError:
            raise
        except StoreUnavailableError as error:
            raise ConfigError(str(error)) from error
        except Exception as error:
            raise ConfigError(self._address.explain(error)) from error
        self._open = True

    async def close(self) -> None:
        self._open = False
        await self._claims.close()
        await self._plain.close()
        await self._sealed.close()
        await self._stepwise.close()
        while self._alone:
            await asyncio.wait(self._alone)
        await self._listener.close()
        await self._readers.close()
        await self._writers.close()

    def _check_open(self) -> None:
        if not self._open:
            raise StoreUnavailableError(f"{self._address.name} is not open: the store was not started, or is closed.")

    def _lane_of(self, unit: Unit) -> Lane:
        if isinstance(unit.commands[0], ClaimKey):
            return self._claims
        if unit.then is not None:
            return self._stepwise
        return self._sealed if _seals(unit) else self._plain

    def _run_alone(self, unit: Unit) -> None:
        """Run a unit in its own task: the caller may be cancelled, the transaction is not."""
        task = asyncio.get_running_loop().create_task(self._carry_out(unit))
        self._alone.add(task)
        task.add_done_callback(self._alone.discard)

    async def _carry_out(self, unit: Unit) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                unit.outcome = await self._transact(unit)
            except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
                unit.outcome = error
                if may_be_retried(error) and attempt < _ATTEMPTS:
                    continue
            break
        self._settle(unit)

    async def _transact(self, unit: Unit) -> Sequence[Any] | Conflict:
        connection = await self._writers.take()
        try:
            async with LateTurn(self._sealing) as turn:
                outcome = await transact(connection, unit, turn.seal)
                if isinstance(outcome, Conflict):
                    turn.discard()
                return outcome
        finally:
            self._writers.give_back(connection)

    def _settle(self, unit: Unit) -> None:
        """Settle a unit. Other processes hear of changes from the database; local watchers are notified first."""
        if isinstance(unit.outcome, Exception):
            unit.outcome = self._explained(unit.outcome)
        else:
            self._availability.note_success()
        if unit.topics and not isinstance(unit.outcome, Exception | Conflict):
            for topic in unit.topics:
                self._tell(topic)
        unit.settle()

    def _tell(self, topic: str) -> None:
        for watcher in self._watchers.get(topic, ()):
            watcher()

    def _tell_all(self) -> None:
        for topic in self._watchers:
            self._tell(topic)

    def _explained(self, error: Exception) -> Exception:
        """Return an exception for each waiter: one raised in two places would carry both tracebacks."""
        message = str(error) if isinstance(error, StoreError) else self._address.explain(error)
        if is_locked(error) or is_collision(error):
            self._availability.note_locked(message)
            return StoreUnavailableError(message)
        if is_outage(error) or isinstance(error, StoreUnavailableError):
            self._availability.note_failure(message)
            return StoreUnavailableError(message)
        _logger.error("a unit of the store failed", exc_info=error)
        return StoreError(str(error) if isinstance(error, StoreError) else f"the store failed: {error}")


def _seals(unit: Unit) -> bool:
    return any(isinstance(command, AppendAudit) for command in unit.commands)
