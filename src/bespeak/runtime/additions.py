"""Endpoints added to a running server: by this process, and by others that share its store."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from bespeak.contract.endpoint import Endpoint
from bespeak.errors import ContractError
from bespeak.runtime.follower import Follower
from bespeak.runtime.registration import Registrar
from bespeak.runtime.route import Route
from bespeak.runtime.stored_endpoint import read_endpoint, write_endpoint
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.endpoints import (
    TOPIC,
    DropEndpoint,
    EndpointList,
    EndpointRow,
    ListEndpoints,
    PutEndpoint,
    ReadRevision,
)
from bespeak.state.store.store import Store

_logger = logging.getLogger(__name__)

Key = tuple[str, str]
Install = Callable[[Sequence[Route], float], None]
"""Puts routes into force; the second argument is the time of the change."""


class Additions:
    """The added endpoints. With a store they are persistent and the same in all processes."""

    def __init__(self, registrar: Registrar, install: Install, store: Store | None = None) -> None:
        self._registrar = registrar
        self._install = install
        self._store = store
        self._rows: dict[Key, EndpointRow] = {}
        self._routes: dict[Key, Route] = {}
        self._revision = 0
        self._follower = Follower(TOPIC, self._take_in)
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        """Load the endpoints of the store, now and whenever they change."""
        if self._store is not None:
            await self._follower.follow(self._store)

    async def close(self) -> None:
        """Cancel pending work."""
        await self._follower.close()

    async def add(self, endpoint: Endpoint) -> None:
        """Add an endpoint; it is served when this returns.

        Raises ContractError with the findings if it is not valid beside the others, and ConfigError if it cannot be
        stored.
        """
        async with self._changing:
            while True:
                routes, findings = self._registrar.register([endpoint], self._routes.values())
                if not routes:
                    raise ContractError(f"{endpoint} cannot be added", findings)
                key = endpoint.key
                if self._store is None:
                    self._change({**self._routes, key: routes[0]}, time.time())
                    return
                if await self._commit(self._store, PutEndpoint(*key, write_endpoint(endpoint), self._revision)):
                    return

    async def remove(self, method: str, path: str) -> None:
        """Remove an endpoint that was added. Calls it has accepted are finished.

        Raises ContractError if no such endpoint was added; configured endpoints cannot be removed.
        """
        async with self._changing:
            while True:
                if (method, path) not in self._routes and (method, path) not in self._rows:
                    raise ContractError(f"{method} {path} was not added at run time, so it cannot be removed")
                if self._store is None:
                    left = {key: route for key, route in self._routes.items() if key != (method, path)}
                    self._change(left, time.time())
                    return
                if await self._commit(self._store, DropEndpoint(method, path, self._revision)):
                    return

    async def _commit(self, store: Store, command: Command) -> bool:
        """Commit a change and load the result. Return False if another process made a change first: then check
        again.
        """
        done = await store.do(command)
        await self._follower.refresh()
        return not isinstance(done, Conflict)

    async def _take_in(self, store: Store) -> None:
        if await store.read(ReadRevision()) == self._revision:
            return
        listed: EndpointList = await store.read(ListEndpoints())
        routes: dict[Key, Route] = {}
        for row in listed.rows:
            key = (row.method, row.path)
            held = self._routes.get(key) if self._rows.get(key) == row else None
            route = held or self._read(row, routes)
            if route is not None:
                routes[key] = route
        self._rows = {(row.method, row.path): row for row in listed.rows}
        self._revision = listed.revision
        self._change(routes, listed.updated or time.time())

    def _read(self, row: EndpointRow, beside: dict[Key, Route]) -> Route | None:
        name = f"{row.method} {row.path}"
        endpoint, findings = read_endpoint(row.document, name)
        routes: list[Route] = []
        if endpoint is not None:
            routes, found = self._registrar.register([endpoint], beside.values())
            findings += found
        if not routes:
            # The configuration may have changed since it was added.
            _logger.error("the endpoint %s in the store is not served: %s", name, "; ".join(map(str, findings)))
        return routes[0] if routes else None

    def _change(self, routes: dict[Key, Route], at: float) -> None:
        self._routes = routes
        self._install(tuple(routes.values()), at)
