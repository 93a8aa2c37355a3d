"""SUBMIT: hands work to a queue of the service (Tier 2 5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.recipients import verify_callback
from bespeak.extensions.messages.store import PutInChannel
from bespeak.extensions.queues.queues import options_of
from bespeak.extensions.queues.store import KEPT, QUEUED, SUBMISSION, CountBefore, Item, decode_item
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.answer import Effects
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import JoinedCall, RoutedCall, StepCall
from bespeak.runtime.handling import check_size, effects, new_id, refusal, stateful, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import PutRecord, Record

MOST_PAYLOAD: Final = 256 * 1024  # maximum bytes of an item
MOST_QUEUED: Final = 100_000  # items of one agent that wait or run
_PRIORITIES: Final = {"low": 1, "normal": 5, "high": 9}
_AGEING: Final = 600.0  # seconds after which an item comes before a newer one whose priority is one higher
_SUBMIT: Final = STANDARD["SUBMIT"]


@stateful
async def submit(call: RoutedCall) -> Effects:
    """Answer SUBMIT /. A callback is verified first; it is told when the item is done."""
    given, priority = call.input, call.input.get("priority", "normal")
    queue = _find_queue(call, given["target"])
    violations = queue.routes["run"].input.violations(given["payload"])
    if violations:
        listed = [{"field": f"/payload{one.pointer}", "message": one.message} for one in violations]
        message = f"The queue {given['target']} does not take this payload: {violations[0].message}."
        raise refusal(status.UNPROCESSABLE, "invalid-payload", message, field=listed[0]["field"], violations=listed)
    check_size("payload", len(to_json(given["payload"])), MOST_PAYLOAD)
    assert call.server.store is not None, "the handler is stateful"
    if not await call.server.part("submissions").admits(call.server.store, call.agent_id or ""):
        message = f"The agent has {MOST_QUEUED} items that are not done, the maximum; wait until some are done."
        raise refusal(_SUBMIT, "queue-full", message, retry_after=60)
    if "callback" in given:
        await verify_callback(call, given["callback"])
    item = Item(
        queue=given["target"],
        payload=given["payload"],
        priority=_PRIORITIES.get(priority, priority),
        authority=Authority.of(call.principal, call.request),
        joined=isinstance(call, JoinedCall),
        callback=given.get("callback"),
    )
    record = PutRecord(
        *(new_id("item"), SUBMISSION, call.agent_id or "", QUEUED, to_json(item)),
        delay=-_AGEING * item.priority,
        lifetime=KEPT,
        # Steps have the Task-ID of the call that makes them, which means that call.
        target=None if isinstance(call, StepCall) else call.request.headers.get(TASK_ID),
    )
    return effects(
        [PutInChannel(record, item.queue)],
        lambda results: {
            "tracking_id": record.record_id,
            "target": item.queue,
            "status": QUEUED,
            "submitted_at": write_instant(results[0].created),
        },
        {},
    )


def _find_queue(call: RoutedCall, name: str) -> Joined:
    """Find a queue that the caller may use; those that it may not use do not exist for it."""
    queues, scopes = call.server.registrar.participants.get("queue", {}), call.principal.scopes
    if not isinstance(call, JoinedCall):
        queues = {key: one for key, one in queues.items() if not scopes.missing(options_of(one).scopes)}
    if name not in queues:
        known = ", ".join(sorted(queues)) or "none"
        message = f"There is no queue {name[:80]!r} that this agent may use; there are: {known}."
        raise refusal(_SUBMIT, "unknown-queue", message, field="/target", queues=sorted(queues))
    return queues[name]


async def describe_item(server: Server, record: Record) -> Mapping[str, Any]:
    """Return what CHECK tells of an item."""
    try:
        item = decode_item(record.data)
    except msgspec.ValidationError:
        return {}  # an item of an earlier version, on which nobody works
    told: dict[str, Any] = {"queue": item.queue, "attempts": record.fence - item.forgiven}
    if record.state == QUEUED and record.due is not None:
        assert server.store is not None
        told["position"] = 1 + await server.store.read(CountBefore(item.queue, record.due))
    return told | item.outcome
