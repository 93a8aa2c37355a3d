"""CANCEL: revokes what an agent has scheduled, registered or begun (Tier 2 5.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.grants import GRANTED
from bespeak.runtime.grants import KIND as GRANT
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.transact.entity import KIND as ENTITY
from bespeak.runtime.methods.transact.entity import LIVE
from bespeak.runtime.methods.transact.register import SUBSCRIPTION
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, Record
from bespeak.state.store.commands.steps import CANCELLED, CANCELLING, PAUSED, RUNNING, WAITING, WORKFLOW

KEPT: Final = 30 * 86400.0
"""Seconds for which something that was cancelled can still be looked up."""
_CANCEL: Final = STANDARD["CANCEL"]

Also = Callable[[RoutedCall, Record], "tuple[Command, ...] | Refused"]


class Cancelling(NamedTuple):
    """How records of one kind are cancelled."""

    allowed_from: tuple[str, ...]
    """States from which that is possible; empty for every state but cancelled."""
    state: str = CANCELLED
    also: Also | None = None
    """What else is done in the same transaction, such as a refund, or the refusal."""
    refunds: bool = False


CANCELS: Final[Mapping[str, Cancelling]] = {
    ENTITY: Cancelling((LIVE,)),
    SUBSCRIPTION: Cancelling(()),
    # Its steps are undone first, by the process that takes it next.
    WORKFLOW: Cancelling((RUNNING, WAITING, PAUSED), CANCELLING),
    GRANT: Cancelling((GRANTED,)),
    "submission": Cancelling(("queued",)),
    "publication": Cancelling(("scheduled",)),
}


async def cancel(call: RoutedCall) -> Effects | Refused:
    """Answer CANCEL /. Only the owner can cancel; for others there is no such thing."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    assert call.server.store is not None
    given, agent_id = call.input, call.agent_id or ""
    record: Record | None = await call.server.store.read(FindRecord(tuple(CANCELS), given["target_id"]))
    if record is None or record.owner not in (agent_id, call.principal.principal_id):
        return _CANCEL.refuse("target-not-found", f"This agent has nothing with the id {given['target_id'][:80]!r}.")
    how = CANCELS[record.kind]
    refused = _judge(record, how, given)
    if refused is not None:
        return refused
    more = () if how.also is None else how.also(call, record)
    if isinstance(more, Refused):
        return more
    ends = how.state == CANCELLED
    command = ChangeRecord(
        record.record_id,
        (record.kind,),
        how.allowed_from or (record.state,),
        how.state,
        owner=record.owner,
        delay=None if ends else 0.0,
        lifetime=KEPT if ends else None,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            state = results.details.get("state", CANCELLED)
            return _judge(msgspec.structs.replace(record, state=state), how, given) or _ended(record)
        changed: Record = results[0]
        result = {
            "target_id": record.record_id,
            "kind": record.kind,
            "status": how.state,
            "cancelled_at": write_instant(changed.updated),
            "notified": [],
        }
        return Envelope(result, status.OK if ends else status.ACCEPTED)

    return Effects((command, *more), tell)


def _judge(record: Record, how: Cancelling, given: Mapping[str, Any]) -> Refused | None:
    if record.state in (CANCELLED, CANCELLING):
        return _CANCEL.refuse("already-cancelled", f"{record.record_id} is cancelled already.", kind=record.kind)
    if how.allowed_from and record.state not in how.allowed_from:
        return _ended(record)
    if given.get("refund_policy", "none") != "none" and not how.refunds:
        message = f"A {record.kind} costs nothing, so nothing can be refunded."
        return _CANCEL.refuse("refund-impossible", message, kind=record.kind)
    return None


def _ended(record: Record) -> Refused:
    message = f"The {record.kind} is {record.state} and cannot be cancelled any more."
    return _CANCEL.refuse("not-cancellable", message, kind=record.kind, state=record.state)
