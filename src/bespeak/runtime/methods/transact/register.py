"""REGISTER: creates an entity that the caller owns, or its subscription to a channel (Tier 2 5.2)."""

from __future__ import annotations

import math
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.delivery.verification import verify_callback
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.methods.proposed_procedure import KIND as PROCEDURE
from bespeak.runtime.methods.proposed_procedure import register_procedure
from bespeak.runtime.methods.transact.entity import KIND, LIVE, MOST_DATA, MOST_OWNED, Entity
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.messages import SUBSCRIPTION, channel_key, channel_mark
from bespeak.state.store.commands.records import NEVER, PutRecord, Record

CHANNEL: Final = "channel"
"""Entity type of a channel, which only its owner may use from then on."""
_REGISTER: Final = STANDARD["REGISTER"]
_LONGEST_CHANNEL: Final = 256
_LONGEST_CALLBACK: Final = 1000
_MOST_SUBSCRIPTION: Final = 4096
"""Maximum bytes of a subscription; many are read at once."""


def register(call: RoutedCall) -> Effects | Refused | Coroutine[Any, Any, Effects | Refused]:
    """Answer REGISTER /."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    if call.input["entity_type"] == PROCEDURE:
        return register_procedure(call, MOST_DATA)
    entity = Entity(call.input["entity_type"], call.input["data"])
    text, owner = entity.text(), call.agent_id or ""
    if len(text) > MOST_DATA:
        message = f"An entity may have {MOST_DATA // 1024} KiB; this one has {len(text)} bytes."
        return _REGISTER.refuse("invalid-data", message)
    command = PutRecord(f"ent-{secrets.token_hex(16)}", KIND, owner, LIVE, text, most=MOST_OWNED)
    callback, authority = None, Authority.of(call.principal, call.request)
    if entity.entity_type in (SUBSCRIPTION, CHANNEL):
        channel = _channel(entity.data)
        if isinstance(channel, Refused):
            return channel
        command = msgspec.structs.replace(command, key=channel_key(channel))
        if entity.entity_type == SUBSCRIPTION:
            if len(text) > _MOST_SUBSCRIPTION:
                return _REGISTER.refuse("invalid-data", f"A subscription may have {_MOST_SUBSCRIPTION} bytes.")
            callback = entity.data.get("callback")
            # One subscription of an agent to a channel; the channel is its state, by which publishing finds it.
            command = PutRecord(
                f"sub-{secrets.token_hex(16)}",
                SUBSCRIPTION,
                owner,
                channel_mark(channel),
                text,
                key=f"{owner} {channel}",
                lifetime=None if authority.expires is None else authority.within(call.server.principals, math.inf),
                most=MOST_OWNED,
            )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _refuse(results)
        record: Record = results[0]
        result = {
            "entity_id": record.record_id,
            "entity_type": entity.entity_type,
            "owner": record.owner,
            "version": record.version,
            "created_at": write_instant(record.created),
        }
        # A subscription ends with the credential that made it; an entity is property, which has no end.
        return Envelope(result if record.expires >= NEVER else {**result, "expires_at": write_instant(record.expires)})

    effects = Effects((command,), tell)
    return effects if callback is None else _verify(call, callback, effects)


async def _verify(call: RoutedCall, callback: Any, effects: Effects) -> Effects | Refused:
    """Return the effects if the address to which messages are pushed has agreed to that (Tier 2 10.5)."""
    if not isinstance(callback, str) or not 0 < len(callback) <= _LONGEST_CALLBACK or not callback.isprintable():
        return _REGISTER.refuse("invalid-data", "The callback of a subscription is an address.", field="/data/callback")
    return await verify_callback(call, callback) or effects


def _channel(data: Any) -> str | Refused:
    channel = data.get("channel") if isinstance(data, Mapping) else None
    if not isinstance(channel, str) or not 0 < len(channel) <= _LONGEST_CHANNEL or not channel.isprintable():
        message = 'The data of a subscription or a channel name it: {"channel": "news"}.'
        return _REGISTER.refuse("invalid-data", message, field="/data/channel")
    return channel


def _refuse(conflict: Conflict) -> Refused:
    if conflict.reason == "too-many":
        return _REGISTER.refuse("too-many-entities", f"The agent has {conflict.details['most']} entities, the maximum.")
    message = "The channel is registered already, or the agent is subscribed to it already."
    return _REGISTER.refuse("already-registered", message, entity_id=conflict.details.get("record_id"))
