"""TRANSFER: moves an entity to another owner and records the chain of owners (Tier 2 5.6, 10.6)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.transact.entity import KIND, LIVE, Entity, Handover, entity_of
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record

_TRANSFER: Final = STANDARD["TRANSFER"]
_MOST_OWNERS: Final = 1_000
"""Changes of ownership of one entity."""


async def transfer(call: RoutedCall) -> Effects | Refused:
    """Answer TRANSFER /. The caller is the owner, and holds `TYPE:transfer` for the type of the entity."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    assert call.server.store is not None
    given, who = call.input, call.principal
    record: Record | None = await call.server.store.read(FindRecord((KIND,), given["resource_id"]))
    if record is None or record.owner not in (who.agent_id, who.principal_id):
        return _TRANSFER.refuse("resource-not-found", f"This agent owns no resource {given['resource_id'][:80]!r}.")
    entity = entity_of(record)
    refused = _judge(call, record, entity)
    if refused is not None:
        return refused
    handover = Handover(
        transfer_id=f"tr-{secrets.token_hex(16)}",
        from_principal=given["from_principal"],
        to_principal=given["to_principal"],
        by=who.agent_id or "",
        at=time.time(),
        reason=given.get("reason"),
    )
    command = ChangeRecord(
        record.record_id,
        (KIND,),
        (LIVE,),
        LIVE,
        owner=record.owner,
        version=record.version,
        data=msgspec.structs.replace(entity, owners=(*entity.owners, handover)).text(),
        new_owner=handover.to_principal,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _TRANSFER.refuse("already-owned", "The resource was changed by another call; look at it again.")
        return Envelope(
            {
                "transfer_id": handover.transfer_id,
                "resource_id": record.record_id,
                "from_principal": handover.from_principal,
                "to_principal": handover.to_principal,
                "version": results[0].version,
                "transferred_at": write_instant(handover.at),
            }
        )

    # Tier 2 10.6: the record of a transfer has the complete chain of owners.
    owners = [*(one.from_principal for one in entity.owners), handover.from_principal, handover.to_principal]
    return Effects((command,), tell, recorded={"owners": owners})


def _judge(call: RoutedCall, record: Record, entity: Entity) -> Refused | None:
    needed = f"{entity.entity_type}:transfer"
    if not call.principal.scopes.covers(needed):
        message = f"Transferring an entity of the type {entity.entity_type} needs the scope {needed}."
        return _TRANSFER.refuse("scope-violation", message, missing_scopes=[needed], required_scopes=[needed])
    if call.input["from_principal"] != record.owner:
        return _TRANSFER.refuse("not-the-owner", f"The owner is {record.owner}.", owner=record.owner)
    if call.input["to_principal"] == record.owner:
        return _TRANSFER.refuse("already-owned", "to_principal owns the resource already.")
    if len(entity.owners) >= _MOST_OWNERS:
        return _TRANSFER.refuse("already-owned", f"The resource has changed hands {_MOST_OWNERS} times, the maximum.")
    return None
