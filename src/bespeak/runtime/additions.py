"""Endpoints added to a running server, by this process or by others that share its store."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition, ExternalService, HandlerBinding, McpTool, RegisteredFunction
from bespeak.contract.recipe import Recipe
from bespeak.documents.deployment.endpoint_toml import endpoint_of
from bespeak.documents.projections.deployment_files import endpoint_data, handler_data
from bespeak.errors import ConfigError, ContractError
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.background import Follower
from bespeak.runtime.bindings.function import resolve_function
from bespeak.runtime.registration import Registrar
from bespeak.runtime.route import Route
from bespeak.state.store.commands import endpoints as rows
from bespeak.state.store.store import Command, Conflict, Store
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import decode_json
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Findings, Table, kind
from bespeak.text.source.tree import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOrigin:
    synthesis_id: str
    expires: float  # end, in seconds since 1970
    agent_id: str | None = None  # sole caller, in a row of an earlier version; such a row is not served


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEndpoint:
    endpoint: Endpoint
    recipe: Recipe | None = None  # recipe of a composition that is not among those of the service
    origin: EndpointOrigin | None = None
    explanation: tuple[str, ...] = ()  # what each step of a synthesis does


def write_endpoint(
    endpoint: Endpoint, recipe: Recipe | None = None, origin: EndpointOrigin | None = None, **more: Any
) -> str:
    """Encode an endpoint as JSON, with `more` beside it. Raises ConfigError for a function that cannot be imported."""
    data = endpoint_data(endpoint, "")
    data["handler"] = _handler(endpoint, endpoint.handler)
    document: dict[str, Any] = {"endpoint": data, **more}
    if recipe is not None:
        document["recipe"] = recipe.to_json()
    if origin is not None:
        document["origin"] = asdict(origin)
    return msgspec.json.encode(document).decode()


def read_endpoint(text: str, name: str) -> tuple[StoredEndpoint | None, list[Diagnostic]]:
    """Decode an endpoint; `name` identifies it in findings. Return None if any finding is an error."""
    try:
        data = decode_json(text)
        if not isinstance(data, dict):
            raise msgspec.ValidationError(f"it is {kind(data)}")
        origin = msgspec.convert(data.get("origin"), EndpointOrigin | None)
        explanation = msgspec.convert(data.get("explanation", ()), tuple[str, ...])
    except msgspec.DecodeError as error:
        return None, [MALFORMED.found(f"this is not a JSON object: {error}", Location(name))]
    parts = {key: data[key] for key in ("endpoint", "recipe") if key in data}
    root = Table(parts, "", Findings(lambda _: Location(name)))
    block = root.table("recipe")
    recipe = None if block is None else read_settings(Recipe, block)
    endpoint, findings = endpoint_of(root, name)
    if endpoint is None:
        return None, findings
    return StoredEndpoint(endpoint=endpoint, recipe=recipe, origin=origin, explanation=explanation), findings


def _handler(endpoint: Endpoint, handler: HandlerBinding) -> dict[str, Any]:
    match handler:
        case ExternalService() | McpTool():
            return handler_data(handler, "")
        case Composition(recipe=recipe):
            return {"type": handler.type, "recipe": recipe}
        case RegisteredFunction(function=dotted, target=target, inline=inline):
            found = resolve_function(dotted)
            if isinstance(found, str) or (target is not None and found is not target):
                raise ConfigError(
                    f"{endpoint} is stored, so every process must be able to import its function {dotted!r}; "
                    "put it at the top level of a module."
                )
            return {"type": handler.type, "function": dotted, **({"inline": True} if inline else {})}
        case _:
            raise ConfigError(f"{endpoint} has a handler of type {handler.type!r}, which cannot be stored.")


_logger = logging.getLogger(__name__)

Key = tuple[str, str]
Install = Callable[[Sequence[Route], float, int], None]
"""Puts routes into force; the other arguments are the time of the change and the number of changes so far."""

_ENDED: Final = Refused(
    status.GONE, "synthesis-ended", "The time of this synthesized endpoint is over; propose it again."
)


class Additions(Follower):
    """The added endpoints. With a store they are persistent and the same in all processes."""

    def __init__(self, registrar: Registrar, install: Install, store: Store | None = None) -> None:
        super().__init__(rows.TOPIC, self._take_in)
        self._registrar = registrar
        self._install = install
        self._store = store
        self._rows: dict[Key, rows.EndpointRow] = {}
        self._routes: dict[Key, Route] = {}
        self.origins: dict[Key, EndpointOrigin] = {}  # the syntheses behind added endpoints
        self._revision = 0
        self._changing = asyncio.Lock()

    async def start(self) -> None:
        if self._store is not None:
            await self.follow(self._store)

    def fits(self, endpoint: Endpoint, recipe: Recipe | None = None) -> bool:
        """Return True if an endpoint is valid beside the others and not yet there."""
        return self._register(StoredEndpoint(endpoint=endpoint, recipe=recipe), self._routes)[0] is not None

    async def add(self, endpoint: Endpoint, recipe: Recipe | None = None, origin: EndpointOrigin | None = None) -> None:
        """Add an endpoint and serve it. Raises ContractError with the findings, ConfigError if it cannot be stored."""
        async with self._changing:
            while True:
                stored = StoredEndpoint(endpoint=endpoint, recipe=recipe, origin=origin)
                route, findings = self._register(stored, self._routes)
                if route is None:
                    raise ContractError(f"{endpoint} cannot be added", findings)
                key = endpoint.key
                if self._store is None:
                    self._revision += 1
                    self._change({**self._routes, key: route}, time.time())
                    return
                document = write_endpoint(endpoint, recipe, origin)
                if await self._commit(self._store, rows.PutEndpoint(*key, document, self._revision)):
                    return

    async def remove(self, method: str, path: str) -> None:
        """Remove an endpoint that was added; calls it has accepted are finished. Raises ContractError for any other."""
        async with self._changing:
            while True:
                if (method, path) not in self._routes and (method, path) not in self._rows:
                    raise ContractError(f"{method} {path} was not added at run time, so it cannot be removed")
                if self._store is None:
                    self._revision += 1
                    left = {key: route for key, route in self._routes.items() if key != (method, path)}
                    self._change(left, time.time())
                    return
                if await self._commit(self._store, rows.DropEndpoint(method, path, self._revision)):
                    return

    async def _commit(self, store: Store, command: Command) -> bool:
        """Commit a change and load the result. Return False if another process was first: then check again."""
        done = await store.do(command)
        await self.refresh()
        return not isinstance(done, Conflict)

    async def _take_in(self, store: Store) -> None:
        if await store.read(rows.ReadRevision()) == self._revision:
            return
        listed: rows.EndpointList = await store.read(rows.ListEndpoints())
        routes: dict[Key, Route] = {}
        origins: dict[Key, EndpointOrigin] = {}
        read = {row: read_endpoint(row.document, f"{row.method} {row.path}") for row in listed.rows}
        own = {row for row, (stored, _) in read.items() if stored is None or stored.origin is None}
        # What operators have added comes first, and what agents have proposed must fit beside it.
        is_same = own == {row for key, row in self._rows.items() if key not in self.origins}
        for row in sorted(read, key=lambda row: row not in own):
            key = (row.method, row.path)
            stored, findings = read[row]
            if stored is not None and stored.origin is not None:
                origins[key] = stored.origin
            if stored is not None and stored.origin is not None and stored.origin.agent_id is not None:
                continue
            held = self._routes.get(key) if self._rows.get(key) == row and (is_same or row in own) else None
            route = held or self._read(row, stored, findings, routes)
            if route is not None:
                routes[key] = route
        self.origins = origins
        self._rows = {(row.method, row.path): row for row in listed.rows}
        self._revision = listed.revision
        self._change(routes, listed.updated or time.time())

    def _read(
        self, row: rows.EndpointRow, stored: StoredEndpoint | None, findings: list[Diagnostic], beside: dict[Key, Route]
    ) -> Route | None:
        route: Route | None = None
        if stored is not None:
            route, found = self._register(stored, beside)
            findings += found
        if route is None:
            # The configuration may have changed since it was added.
            name = f"{row.method} {row.path}"
            _logger.error("the endpoint %s in the store is not served: %s", name, "; ".join(map(str, findings)))
        return route

    def _register(self, stored: StoredEndpoint, beside: dict[Key, Route]) -> tuple[Route | None, list[Diagnostic]]:
        recipes = () if stored.recipe is None else (stored.recipe,)
        # An operator's endpoint takes the place of a synthesis. Another version of a synthesis, published or granted
        # longer, takes the place of the one before it.
        others = [
            route
            for key, route in beside.items()
            if route.synthesis_id is None or (stored.origin is not None and key != stored.endpoint.key)
        ]
        routes, findings = self._registrar.register([stored.endpoint], others, recipes)
        if not routes:
            return None, findings
        return routes[0] if stored.origin is None else bind_origin(routes[0], stored.origin), findings

    def _change(self, routes: dict[Key, Route], at: float) -> None:
        self._routes = routes
        self._install(tuple(routes.values()), at, self._revision)


def bind_origin(route: Route, origin: EndpointOrigin) -> Route:
    """Bind a route to the published synthesis behind it, and to its end."""

    def call(routed: Any, steps: Any) -> Any:
        return _ENDED if time.time() >= origin.expires else route.call(routed, steps)

    return replace(
        route,
        endpoint=replace(route.endpoint, proposed=True),
        call=call,
        synthesis_id=origin.synthesis_id,
        block=route.block.plus(("Contract-Synthesized", origin.synthesis_id)),
    )
