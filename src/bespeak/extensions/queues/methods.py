"""SUBMIT hands work to a queue of the service, and agents PULL it where no function does it (Tier 2 5.3, 3.4)."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Final

from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.recipients import verify_callback
from bespeak.extensions.messages.store import PutInChannel
from bespeak.extensions.queues.queues import MOST_RESULT, judge_item, options_of, pulled_queue
from bespeak.extensions.queues.store import (
    AGEING,
    KEPT,
    QUEUED,
    SUBMISSION,
    CountBefore,
    EndHeld,
    Item,
    PullItems,
    read_item,
    receipt_of,
)
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import JoinedCall, RoutedCall, StepCall
from bespeak.runtime.handling import check_size, effects, invalid, new_id, read_checked, refusal, stateful, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import FindRecord, PutRecord, Record

MOST_PAYLOAD: Final = 256 * 1024  # maximum bytes of an item
MOST_QUEUED: Final = 100_000  # items of one agent that wait or run
_PRIORITIES: Final = {"low": 1, "normal": 5, "high": 9}
_SUBMIT, _PULL = STANDARD["SUBMIT"], STANDARD["PULL"]


@stateful
async def submit(call: RoutedCall) -> Effects:
    """Answer SUBMIT /. A callback is verified first; it is told when the item is done."""
    given, priority = call.input, call.input.get("priority", "normal")
    queue = _find_queue(call, _SUBMIT, "target", pulls=False)
    payload = given["payload"]
    if "read" in queue.routes:
        payload = await read_checked(call, queue, status.UNPROCESSABLE, "payload")
    elif violations := queue.routes["run"].input.violations(payload):
        listed = [{"field": f"/payload{one.pointer}", "message": one.message} for one in violations]
        message = f"The queue {given['target']} does not take this payload: {violations[0].message}."
        raise refusal(status.UNPROCESSABLE, "invalid-payload", message, field=listed[0]["field"], violations=listed)
    check_size("payload", len(to_json(payload)), MOST_PAYLOAD)
    if not await call.server.part("submissions").admits(call.store, call.agent_id or ""):
        message = f"The agent has {MOST_QUEUED} items that are not done, the maximum; wait until some are done."
        raise refusal(_SUBMIT, "queue-full", message, retry_after=60)
    if "callback" in given:
        await verify_callback(call, given["callback"])
    item = Item(
        queue=given["target"],
        payload=payload,
        priority=_PRIORITIES.get(priority, priority),
        authority=Authority.of(call.principal, call.request),
        joined=isinstance(call, JoinedCall),
        callback=given.get("callback"),
    )
    record = PutRecord(
        *(new_id("item"), SUBMISSION, call.agent_id or "", QUEUED, to_json(item)),
        delay=-AGEING * item.priority,
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


def list_queues(call: RoutedCall, *, pulls: bool) -> Mapping[str, Joined]:
    """Return the queues that the caller may use, or on whose items it may work; others do not exist for it."""
    queues, scopes = call.server.registrar.participants.get("queue", {}), call.principal.scopes
    return {
        name: one
        for name, one in queues.items()
        if isinstance(call, JoinedCall) or not scopes.missing(options_of(one).scopes)
        if not pulls or ("read" in one.routes and scopes.covers(f"{name}:pull"))
    }


def _find_queue(call: RoutedCall, method: StandardMethod, member: str, *, pulls: bool) -> Joined:
    queues, name = list_queues(call, pulls=pulls), call.input[member]
    if name not in queues:
        known = ", ".join(sorted(queues)) or "none"
        verb = "pull; functions of the service work on others" if pulls else "use"
        message = f"There is no queue {name[:80]!r} that this agent may {verb}; there are: {known}."
        raise refusal(method, "unknown-queue", message, field=f"/{member}", queues=sorted(queues))
    return queues[name]


@stateful
def pull(call: RoutedCall) -> Effects:
    """Answer PULL /. Items that the caller ends and those that it claims are one transaction."""
    given, joined = call.input, _find_queue(call, _PULL, "source", pulls=True)
    options, principals = options_of(joined), call.server.principals
    endings = (*given.get("acknowledge", ()), *given.get("reject", ()))
    for one in endings:
        check_size("result", len(to_json(one.get("result"))), MOST_RESULT)
    command = PullItems(
        EndHeld(pulled_queue(call.server, joined), call.agent_id or "", endings),
        given.get("max_items", 1),
        given.get("visibility_timeout", options.lease),
        lambda item: judge_item(item, item.authority.judge(principals), options),
    )

    def tell(results: Any) -> dict[str, Any]:
        [(ended, pulled)] = results
        items = [
            {
                "item_id": record.record_id,
                "receipt": receipt_of(record),
                "payload": item.payload,
                "attempts": record.fence - item.forgiven,
                "submitted_at": write_instant(record.created),
                "visible_until": write_instant(record.due),
                "submitter": record.owner,
            }
            for record, item in pulled
        ]
        settled = [{"item_id": one.record_id, "status": one.state} for one in ended]
        return {"source": given["source"], "items": items, "count": len(items), "settled": settled}

    return effects([command], tell, {"": _refuse_lost})


def _refuse_lost(found: Mapping[str, Any]) -> Refused:
    lost = ", ".join(found["items"])[:300]
    message = f"The agent does not hold {lost}, or not by this receipt any more; nothing was changed."
    return _PULL.refuse("not-held", message, items=found["items"])


def confirm_pulled(call: RoutedCall) -> Coroutine[Any, Any, Effects] | None:
    """Answer CONFIRM / of an item that the caller has pulled; return None for any other target."""
    return _confirm(call) if call.input["target_id"].startswith("item-") else None


async def _confirm(call: RoutedCall) -> Effects:
    """End an item that the caller holds, by its id or its receipt: accepted is done, rejected gives it back."""
    given, target, decision = call.input, call.input["target_id"], call.input["status"]
    record: Record | None = await call.store.read(FindRecord((SUBMISSION,), target.partition(".")[0]))
    joined = None if record is None else list_queues(call, pulls=True).get(read_item(record).queue)
    if record is None or joined is None:
        message = f"There is no item {target[:80]!r} that this agent may pull."
        raise refusal(status.NOT_FOUND, "target-not-found", message)
    if decision == "deferred":
        raise invalid("status", "must be accepted or rejected for an item; it comes back if it is left alone.")
    receipt = receipt_of(record) if target == record.record_id else target
    reason = {"reason": given.get("reason", "The agent gave no reason.")} if decision == "rejected" else {}
    ending = {"item_id": record.record_id, "receipt": receipt, **reason}
    told = {"target_id": record.record_id, "status": decision, "attestation_id": f"att-{receipt[5:]}"}
    return effects(
        [EndHeld(pulled_queue(call.server, joined), call.agent_id or "", (ending,))],
        lambda results: {**told, "confirmed_at": write_instant(results[0][0].updated)},
        {"": _refuse_lost},
    )


async def describe_item(server: Server, record: Record) -> Mapping[str, Any]:
    """Return what CHECK tells of an item."""
    item = read_item(record)
    told: dict[str, Any] = {"queue": item.queue, "attempts": record.fence - item.forgiven}
    if record.state == QUEUED and record.due is not None:
        assert server.store is not None
        told["position"] = 1 + await server.store.read(CountBefore(item.queue, record.due))
    return told | item.outcome
