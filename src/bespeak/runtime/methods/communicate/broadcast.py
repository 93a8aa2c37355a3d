"""BROADCAST: one message for an audience: agents, addresses, and the subscribers of channels (Tier 2 7.2)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.messages.message import MOST_CONTENT, MOST_COPIES, new_id
from bespeak.runtime.messages.origin import BROADCAST, Origin, send, too_much
from bespeak.runtime.messages.recipients import as_address, find_recipients
from bespeak.runtime.methods.needs import read_future, refuse_large, refuse_without_needs
from bespeak.state.store.command import Conflict

_BROADCAST: Final = STANDARD["BROADCAST"]
_AGTP: Final = "agtp"
_SCHEMES: Final[Mapping[str, tuple[str, ...]]] = {
    "email": ("mailto:",),
    "webhook": ("https:", "http:"),
    "sms": ("sms:",),
}
"""Addresses that belong to each channel outside."""


async def broadcast(call: RoutedCall) -> Effects | Refused:
    """Answer BROADCAST /."""
    refused = refuse_without_needs(call) or refuse_large("content", call.input["content"], MOST_CONTENT)
    if refused is not None:
        return refused
    given = call.input
    expires = read_future(_BROADCAST, "expiry", given["expiry"]) if "expiry" in given else None
    if isinstance(expires, Refused):
        return expires
    names = [given["audience"]] if isinstance(given["audience"], str) else given["audience"]
    channel = given.get("channel", _AGTP)
    if channel != _AGTP:
        for name in names:
            if not as_address(name).startswith(_SCHEMES[channel]):
                message = f"{name[:80]!r} is not an address of the channel {channel}."
                return _BROADCAST.refuse("audience-refused", message, recipient=name[:256])
    found = await find_recipients(call, names)
    for name, fault in found.faults.items():
        if name in found.addresses:
            return _BROADCAST.refuse("delivery-unavailable", f"{name[:80]!r} {fault}.", recipient=name[:256])
        if name in found.channels and not found.count:
            return _BROADCAST.refuse("empty-audience", f"{name[:80]!r} {fault}.", field="/audience")
        return _BROADCAST.refuse("audience-refused", f"{name[:80]!r} {fault}.", recipient=name[:256])
    refused = refuse_large("content", given["content"], MOST_COPIES // max(len(found.addresses), 1))
    if refused is not None:
        return refused
    origin = Origin(
        sender=call.agent_id or "",
        kind=BROADCAST,
        content=given["content"],
        expires=expires,
        recipients=tuple(dict.fromkeys(names)),
    )
    broadcast_id = new_id("brd")

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _BROADCAST.refuse("delivery-unavailable", too_much(results, "broadcasts"))
        full = len(found.agents) - results[1] if found.agents else 0
        result = {"message_id": broadcast_id, "channel": channel, "deliveries": found.count - full}
        return Envelope(result if expires is None else {**result, "expires_at": write_instant(expires)})

    return Effects(send(broadcast_id, BROADCAST, origin, found, time.time()), tell)
