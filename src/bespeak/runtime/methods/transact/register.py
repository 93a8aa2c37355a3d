"""REGISTER: creates an entity that the caller owns, or its subscription to a channel (Tier 2 5.2)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.transact.entity import KIND, LIVE, MOST_DATA, MOST_OWNED, Entity
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.records import PutRecord, Record

SUBSCRIPTION: Final = "subscription"
"""Entity type and kind of the records of subscriptions, whose data name a channel."""
_REGISTER: Final = STANDARD["REGISTER"]
_LONGEST_CHANNEL: Final = 256


def register(call: RoutedCall) -> Effects | Refused:
    """Answer REGISTER /."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    entity = Entity(call.input["entity_type"], call.input["data"])
    text, owner = entity.text(), call.agent_id or ""
    if len(text) > MOST_DATA:
        message = f"An entity may have {MOST_DATA // 1024} KiB; this one has {len(text)} bytes."
        return _REGISTER.refuse("invalid-data", message)
    command = PutRecord(f"ent-{secrets.token_hex(16)}", KIND, owner, LIVE, text, most=MOST_OWNED)
    if entity.entity_type == SUBSCRIPTION:
        channel = _channel(entity.data)
        if isinstance(channel, Refused):
            return channel
        # One subscription of an agent to a channel; the channel is its state, by which publishing finds it.
        command = PutRecord(
            f"sub-{secrets.token_hex(16)}", SUBSCRIPTION, owner, channel, text, f"{owner} {channel}", most=MOST_OWNED
        )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _refuse(results)
        record: Record = results[0]
        return Envelope(
            {
                "entity_id": record.record_id,
                "entity_type": entity.entity_type,
                "owner": record.owner,
                "version": record.version,
                "created_at": write_instant(record.created),
            }
        )

    return Effects((command,), tell)


def _channel(data: Any) -> str | Refused:
    channel = data.get("channel") if isinstance(data, Mapping) else None
    if not isinstance(channel, str) or not 0 < len(channel) <= _LONGEST_CHANNEL or not channel.isprintable():
        message = 'The data of a subscription name a channel: {"channel": "news"}.'
        return _REGISTER.refuse("invalid-data", message, field="/data/channel")
    return channel


def _refuse(conflict: Conflict) -> Refused:
    if conflict.reason == "too-many":
        return _REGISTER.refuse("too-many-entities", f"The agent has {conflict.details['most']} entities, the maximum.")
    message = "The agent is subscribed to this channel already."
    return _REGISTER.refuse("already-registered", message, entity_id=conflict.details.get("record_id"))
