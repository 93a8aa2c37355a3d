"""CANCEL: revokes what an agent has scheduled, registered or begun (Tier 2 5.5)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.participant import CANCELS
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.entities.methods import ENTITY
from bespeak.extensions.messages.message import BROADCAST, Origin, send
from bespeak.extensions.messages.recipients import as_address, find_recipients
from bespeak.extensions.messages.store import DropKey
from bespeak.extensions.workflows.start import find_run
from bespeak.extensions.workflows.states import CANCELLING
from bespeak.extensions.workflows.store import WORKFLOW
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import CANCELLED, REMOVE, UNLINK, Cancelling
from bespeak.runtime.handling import ask_service, effects, find_own, new_id, passed, refusal, stateful
from bespeak.state.store.commands.records import Record
from bespeak.state.store.store import Command

_CANCEL: Final = STANDARD["CANCEL"]


@stateful
async def cancel(call: RoutedCall) -> Effects | Envelope:
    """Answer CANCEL /. Only the owner can cancel a record; functions of the service know what else there is."""
    return await revoke(call, call.input, tuple(call.server.cancelling), _cancel_thing)


async def _cancel_thing(call: RoutedCall) -> Effects | Envelope | None:
    given = call.input
    without = _CANCEL.refuse("refund-impossible", "The service does not refund what it cancels here.")
    needed = {} if given.get("refund_policy", "none") == "none" else {"refund_policy": without}
    needed |= {"refund_amount": without} if "refund_amount" in given else {}
    for removing in [hook for name, hook in call.server.hooks.items() if name.startswith(REMOVE)]:
        removed: Effects | None = await removing(call, given["target_id"])
        if removed is not None:
            return passed(without) if needed else removed
    thing = await ask_service(call, CANCELS, given["target_id"], given, needed)
    if thing is None:
        return None
    told = {
        "target_id": given["target_id"],
        "kind": thing.kind,
        "status": CANCELLED,
        "cancelled_at": write_instant(time.time()),
        "details": thing.output,
    }
    refund = thing.output.get("refund")
    return Envelope({**told, "refund": refund} if isinstance(refund, Mapping) else told)


async def revoke(
    call: RoutedCall,
    given: Mapping[str, Any],
    kinds: tuple[str, ...],
    otherwise: Callable[[RoutedCall], Awaitable[Effects | Envelope | None]] | None = None,
) -> Effects | Envelope:
    """Cancel something of certain kinds that belongs to the caller, or what `otherwise` knows."""
    record = await find_own(call, kinds, given["target_id"])
    if record is None and WORKFLOW in kinds:
        named = await find_run(call, given["target_id"])
        record = None if named is None else await find_own(call, (WORKFLOW,), named)
    if record is None:
        done = None if otherwise is None else await otherwise(call)
        if done is not None:
            return done
        raise refusal(_CANCEL, "target-not-found", f"This agent has nothing with the id {given['target_id'][:80]!r}.")
    how = call.server.cancelling[record.kind]
    passed(_judge(record, how, given))
    if how.before is not None:
        await how.before(call, record)
    if how.carry_out is not None:
        return await how.carry_out(call, record)
    notified: tuple[str, ...] = ()
    notices: tuple[Command, ...] = ()
    if how.parties is not None and given.get("notify_parties", False):
        notified, notices = await _notify(call, record, how.parties(record), given.get("reason"))
    ends = how.state == CANCELLED

    def result(results: Sequence[Any]) -> Envelope:
        told = {
            "target_id": record.record_id,
            "kind": record.kind,
            "status": how.state,
            "cancelled_at": write_instant(results[0].updated),
            "notified": list(notified),
        }
        return Envelope(told, status.OK if ends else status.ACCEPTED)

    def changed(found: Mapping[str, Any]) -> Refused:
        state = found.get("state", CANCELLED)
        return _judge(msgspec.structs.replace(record, state=state), how, given) or _ended(record)

    # What is cancelled does not keep others from taking its place.
    more: tuple[Command, ...] = (DropKey(record.record_id),) if ends else ()
    more += (call.server.hooks[UNLINK]((record.record_id,)),) if record.kind == ENTITY else ()
    return effects([*how.commands(record), *more, *notices], result, {"": changed})


async def _notify(
    call: RoutedCall, record: Record, parties: tuple[str, ...], reason: Any
) -> tuple[tuple[str, ...], tuple[Command, ...]]:
    """Return the parties that are told of a cancellation, and the commands that tell them."""
    found = await find_recipients(call, parties)
    told = tuple(name for name in parties if as_address(name) not in found.faults)
    if not told:
        return (), ()
    content = {"target_id": record.record_id, "kind": record.kind, "status": CANCELLED}
    if reason is not None:
        content["reason"] = reason
    origin = Origin(sender=call.agent_id or "", kind="cancellation", content=content, recipients=told)
    return told, send(new_id("brd"), BROADCAST, origin, found.of(told), time.time(), limited=False)


def _judge(record: Record, how: Cancelling, given: Mapping[str, Any]) -> Refused | None:
    if record.state in (CANCELLED, CANCELLING):
        return _CANCEL.refuse("already-cancelled", f"{record.record_id} is cancelled already.", kind=record.kind)
    if how.allowed_from and record.state not in how.allowed_from:
        return _ended(record)
    if (given.get("refund_policy", "none") != "none" or "refund_amount" in given) and not how.refunds:
        message = f"Nothing was paid for this {record.kind}, so nothing can be refunded."
        return _CANCEL.refuse("refund-impossible", message, kind=record.kind)
    return None


def _ended(record: Record) -> Refused:
    message = f"The {record.kind} is {record.state} and cannot be cancelled any more."
    return _CANCEL.refuse("not-cancellable", message, kind=record.kind, state=record.state)
