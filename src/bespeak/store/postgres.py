"""The store in a PostgreSQL database, which processes on many machines may share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from bespeak.errors import ConfigError, StoreError, StoreUnavailableError
from bespeak.store.command import Command, Conflict, Seal, Sealed, Sealer
from bespeak.store.commands.audit import HEAD
from bespeak.store.dialect import postgres_sql
from bespeak.store.postgres_address import Address, Connection, is_collision, is_outage
from bespeak.store.postgres_pool import Pool, close
from bespeak.store.postgres_schema import migrate
from bespeak.store.postgres_unit import run_command, transact
from bespeak.store.store import Store, Then, Watcher
from bespeak.store.unit import Unit

_logger = logging.getLogger(__name__)
_ATTEMPTS: Final = 3


class PostgresStore(Store):
    """Connects when it is started; `start` says what is wrong with the database."""

    def __init__(self, dsn: str, *, durability: str = "full") -> None:
        self.sole = False
        self._address = Address(dsn, durability)
        self._durability = durability
        self._watchers: dict[str, list[Watcher]] = {}
        self._sealer: Sealer | None = None
        self._pool: Pool | None = None
        self._sealing = asyncio.Lock()

    async def do(self, *commands: Command, then: Then | None = None) -> Sequence[Any] | Conflict:
        future = asyncio.get_running_loop().create_future()
        unit = Unit(commands, then, future)
        await self._carry_out(unit)
        unit.settle()
        outcome: Sequence[Any] | Conflict = await future
        return outcome

    async def read(self, command: Command) -> Any:
        if self._pool is None:
            raise StoreError("the store was not started, or is closed")
        connection = await self._pool.take()
        try:
            return await run_command(connection, command, set(), _sealing_is_writing)
        except Exception as error:
            raise self._fault(error) from error
        finally:
            self._pool.give_back(connection)

    def attach(self, sealer: Sealer) -> None:
        self._sealer = sealer

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
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(self._address.explain(error)) from error
        self._pool = Pool(self._address)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def _carry_out(self, unit: Unit) -> None:
        if self._pool is None:
            raise StoreError("the store was not started, or is closed")
        connection = await self._pool.take()
        try:
            async with self._sealing:
                unit.outcome = await transact(connection, unit, self._seal)
                if self._sealer is not None:
                    self._sealer.keep()
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits is told
            if self._sealer is not None:
                self._sealer.discard()
            unit.outcome = self._fault(error)
        finally:
            self._pool.give_back(connection)
        if not isinstance(unit.outcome, BaseException | Conflict):
            for topic in unit.topics:
                for watcher in self._watchers.get(topic, ()):
                    watcher()

    async def _seal(self, connection: Connection, step: Seal) -> Sealed:
        sealer = self._sealer
        if sealer is None:
            raise StoreError("no sealer is attached to the store, so nothing can be sealed")
        if not sealer.knows(step.agent_id):
            rows = await connection.fetch(postgres_sql(HEAD), step.agent_id)
            sealer.learn(step.agent_id, rows[0][0] if rows else None)
        return sealer.seal(step.agent_id, step.payload)

    def _fault(self, error: Exception) -> Exception:
        if isinstance(error, StoreError):
            return error
        if is_outage(error) or is_collision(error):
            message = self._address.explain(error)
            _logger.error("%s", message)
            return StoreUnavailableError(message)
        _logger.error("a unit of the store failed", exc_info=error)
        return StoreError(f"the store failed: {error}")


async def _sealing_is_writing(_: Connection, __: Seal) -> Sealed:
    raise StoreError("nothing is sealed while reading")
