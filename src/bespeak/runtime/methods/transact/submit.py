"""SUBMIT: puts a work item into a queue (Tier 2 5.3)."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.delivery.posting import Posting, new_posting_id, post
from bespeak.runtime.delivery.verification import verify_callback
from bespeak.runtime.methods.needs import refuse_without_needs, too_large
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.records import PutRecord, Record

KIND: Final = "submission"
MOST_PAYLOAD: Final = 256 * 1024
"""Maximum bytes of an item."""
MOST_QUEUED: Final = 10_000
"""Items of one agent that wait or can still be looked up."""
_KEPT: Final = 30 * 86400.0
_PRIORITIES: Final = {"low": 1, "normal": 5, "high": 9}
_SUBMIT: Final = STANDARD["SUBMIT"]


async def submit(call: RoutedCall) -> Effects | Refused:
    """Answer SUBMIT /. A callback is verified first; it is told when the item is in its queue."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    priority = given.get("priority", "normal")
    item = {
        "target": given["target"],
        "payload": given["payload"],
        "priority": _PRIORITIES.get(priority, priority),
    }
    text = msgspec.json.encode(item).decode()
    if len(text) > MOST_PAYLOAD:
        return too_large("payload", MOST_PAYLOAD)
    callback = given.get("callback")
    refused = None if callback is None else await verify_callback(call, callback)
    if refused is not None:
        return refused
    tracking_id = f"item-{secrets.token_hex(16)}"
    commands: list[Command] = [
        PutRecord(tracking_id, KIND, call.agent_id or "", "queued", text, lifetime=_KEPT, most=MOST_QUEUED)
    ]
    if callback is not None:
        told = {"tracking_id": tracking_id, "target": given["target"], "status": "queued"}
        sender = call.server.registrar.service.identity.server_id
        commands.append(post(callback, Posting(new_posting_id(), "callback", sender, told, recipient=call.agent_id)))

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _SUBMIT.refuse("queue-full", f"The agent has {MOST_QUEUED} items here, the maximum.")
        record: Record = results[0]
        return Envelope(
            {
                "tracking_id": tracking_id,
                "target": given["target"],
                "status": record.state,
                "submitted_at": write_instant(record.created),
            }
        )

    return Effects(tuple(commands), tell)
