"""The entities of a declared type as a collection: its rows are the data of each, with its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bespeak.contract.data_set import DataColumn, read_column
from bespeak.contract.participant import ENTITY as ENTITY_TYPE
from bespeak.extensions.data.collection import Collection, Order, Position, Row, meets
from bespeak.extensions.data.query import DataFilter
from bespeak.extensions.entities.methods import ENTITY, LIVE, decode_entity
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import run_in_thread
from bespeak.state.store.commands.records import FindRecord, ListRecords, Record
from bespeak.state.store.store import Store

_OWN: Final[Mapping[str, Any]] = {
    "entity_id": "string",
    "owner": "string",
    "version": "integer",
    "updated_at": "date-time",
}  # columns beside those of the data, whose members go before them


class EntityCollection(Collection):
    """What the caller may read of a type: all with the scope `TYPE:read`, else what it owns."""

    kind: ClassVar[str] = "entities"

    def __init__(self, store: Store, joined: Joined, owners: tuple[str, ...]) -> None:
        self.name = joined.participant.name
        self._store = store
        self._owners = owners
        self._data = properties = joined.routes["read"].endpoint.output_schema.get("properties", {})
        named = {name: read_column(name, schema) for name, schema in {**_OWN, **properties}.items()}
        self.columns = {name: column or DataColumn(name, {"type": "object"}) for name, column in named.items()}

    async def scan(
        self, after: Position | None, limit: int, filters: Sequence[DataFilter] = ()
    ) -> tuple[list[Row], Position | None]:
        start = (0.0, "") if after is None else (float(after[0]), after[1])
        wanted = ListRecords(ENTITY, None, (LIVE,), start, limit, self.name, self._owners)
        records: list[Record] = await self._store.read(wanted)
        rows = await run_in_thread(lambda: [row for row in map(_show, records) if meets(row, filters)])
        return rows, (records[-1].created, records[-1].record_id) if len(records) == limit else None

    def accepts(self, position: Position) -> bool:
        return list(map(type, position)) == [float, str] and "\0" not in position[1]

    async def search(self, filters: Sequence[DataFilter], order: Order, limit: int, offset: int) -> list[Row]:
        wanted = next((one.value for one in filters if (one.column, one.op) == ("entity_id", "eq")), None)
        if wanted is None or "entity_id" in self._data:
            return await super().search(filters, order, limit, offset)
        record: Record | None = await self._store.read(FindRecord((ENTITY,), str(wanted)))
        there = record is not None and record.state == LIVE and decode_entity(record.data).entity_type == self.name
        if record is None or not there or (self._owners and record.owner not in self._owners):
            return []
        return [row for row in (_show(record),) if meets(row, filters)][offset : offset + limit]


def _show(record: Record) -> Row:
    data = decode_entity(record.data).data
    own = {"entity_id": record.record_id, "owner": record.owner, "version": record.version}
    return {**own, "updated_at": write_instant(record.updated), **(data if isinstance(data, Mapping) else {})}


async def collect_entities(call: RoutedCall, name: str | None) -> list[Collection]:
    """Return the declared types, or that of a name, with what the caller may read of each."""
    declared: Mapping[str, Joined] = call.server.registrar.participants.get(ENTITY_TYPE, {})
    own = tuple(filter(None, (call.agent_id, call.principal.principal_id)))
    store, scopes = call.server.store, call.principal.scopes
    if store is None or not own:
        return []
    return [
        EntityCollection(store, joined, () if scopes.covers(f"{key}:read") else own)
        for key, joined in declared.items()
        if name in (None, key)
    ]
