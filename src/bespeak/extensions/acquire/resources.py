"""Resources that agents import, as collections: the owner reads them, and whoever holds the scope `NAME:read`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec

from bespeak.contract.data_set import DataColumn
from bespeak.contract.participant import ENTITY
from bespeak.extensions.acquire.store import (
    MOST_CANDIDATES,
    CountUnindexed,
    ListCollections,
    ListResources,
    ReadResources,
    SearchResources,
    StoredResource,
)
from bespeak.extensions.data.collection import Collection, Position, Row, is_number_of_rows, meets
from bespeak.extensions.data.endpoints import OpenedData
from bespeak.extensions.data.query import DataFilter
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import run_in_thread
from bespeak.state.store.store import Store

_MOST_READ: Final = 200  # matches whose rows are read at a time while filters are applied


class ResourceCollection(Collection):
    """What the caller may read of a collection of resources. The rows are free-form."""

    kind: ClassVar[str] = "resources"
    columns: Mapping[str, DataColumn] = {}

    def __init__(self, store: Store, name: str, owners: tuple[str, ...]) -> None:
        self.name = name
        self._store = store
        self._owners = owners  # empty for all

    async def scan(
        self, after: Position | None, limit: int, filters: Sequence[DataFilter] = ()
    ) -> tuple[list[Row], Position | None]:
        start = 0 if after is None else after[0]
        found: list[StoredResource] = await self._store.read(ListResources(self.name, self._owners, start, limit))
        rows: list[Row] = list((await run_in_thread(_show_fitting, found, filters)).values())
        return rows, (found[-1].position,) if len(found) == limit else None

    def accepts(self, position: Position) -> bool:
        return len(position) == 1 and is_number_of_rows(position[0])

    async def match(
        self, words: Sequence[str], filters: Sequence[DataFilter], limit: int, offset: int
    ) -> tuple[list[tuple[Row, float]], int, bool]:
        """Return rows that have all words with their scores, how many matches were found, and if all were.

        Matches that are not indexed yet, or beyond those that are ranked, are not counted.
        """
        matches = await self._store.read(SearchResources(self.name, self._owners, tuple(words)))
        scores = {one.position: one.score for one in matches}
        shown: list[tuple[Row, float]] = []
        order = list(scores)
        for start in range(0, len(order) if filters else min(len(order), offset + limit), _MOST_READ):
            part = order[start : start + _MOST_READ]
            found = await run_in_thread(_show_fitting, await self._store.read(ReadResources(tuple(part))), filters)
            shown += [(found[position], scores[position]) for position in part if position in found]
        complete = len(matches) < MOST_CANDIDATES and not await self._store.read(CountUnindexed())
        return shown[offset : offset + limit], len(shown) if filters else len(matches), complete


def _show_fitting(found: Sequence[StoredResource], filters: Sequence[DataFilter]) -> dict[int, Row]:
    """Return the rows that meet filters, by their positions."""
    shown = {one.position: show_resource(one) for one in found}
    return {position: row for position, row in shown.items() if meets(row, filters)}


def show_resource(resource: StoredResource) -> dict[str, Any]:
    """Return a resource as a row: its own members, and its id."""
    data = msgspec.json.decode(resource.data)
    return {"resource_id": resource.resource_id, **(data if isinstance(data, dict) else {"value": data})}


def own_ids(call: RoutedCall) -> tuple[str, ...]:
    """Return the owners of what belongs to the caller: the agent and its principal."""
    return tuple(filter(None, (call.agent_id, call.principal.principal_id)))


def readable_owners(call: RoutedCall, collection: str) -> tuple[str, ...]:
    """Return the owners whose resources of a collection the caller may read; empty for all.

    The scope of a data set or a type of entities of that name opens these, not what others have imported: an agent that
    must not know of them may use their name, too.
    """
    registrar = call.server.registrar
    declared = collection in registrar.participants.get(ENTITY, {}) or any(
        isinstance(opened, OpenedData) and opened.reader.data.name == collection for opened in registrar.data
    )
    if not declared and call.principal.scopes.covers(f"{collection}:read"):
        return ()
    return own_ids(call)


async def collect_resources(call: RoutedCall, name: str | None) -> list[Collection]:
    """Return the collections of resources that the caller may read, or that of a name."""
    store, own = call.server.store, own_ids(call)
    if store is None or not own or "\0" in (name or ""):
        return []
    if name is None:
        names: list[str] = await store.read(ListCollections(own))
    else:
        owners = readable_owners(call, name)
        found = await store.read(ListResources(name, owners, 0, 1))
        names = [name] if found else []
    return [ResourceCollection(store, one, readable_owners(call, one)) for one in names]
