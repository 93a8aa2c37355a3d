"""PUBLISH: content for the subscribers of a channel, now or at a given time (Tier 2 5.10)."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.messages.message import KEPT, MOST_CONTENT, new_id
from bespeak.runtime.messages.origin import MOST_SENT, PUBLICATION, PUBLISHED, SCHEDULED, Origin, Pending
from bespeak.runtime.methods.needs import invalid, read_future, refuse_large, refuse_without_needs
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.messages import Channel, FindChannels
from bespeak.state.store.commands.records import PutRecord

_PUBLISH: Final = STANDARD["PUBLISH"]


async def publish(call: RoutedCall) -> Effects | Refused:
    """Answer PUBLISH /. A channel that somebody has registered is for its owner; others are for everybody."""
    refused = refuse_without_needs(call) or refuse_large("content", call.input["content"], MOST_CONTENT)
    if refused is not None:
        return refused
    assert call.server.store is not None
    given, now, agent_id = call.input, time.time(), call.agent_id or ""
    at = read_future(_PUBLISH, "schedule_at", given["schedule_at"]) if "schedule_at" in given else now
    if isinstance(at, Refused):
        return at
    authority = Authority.of(call.principal, call.request)
    if authority.expires is not None and authority.expires <= at > now:
        message = f"is after the end of the caller's credential, {write_instant(authority.expires)}; use a longer one."
        return invalid("schedule_at", message)
    name = given["channel"]
    channel: Channel = (await call.server.store.read(FindChannels((name,))))[name]
    if channel.owner not in (None, agent_id, call.principal.principal_id):
        return _PUBLISH.refuse("channel-refused", f"Only the owner of the channel {name[:80]!r} may publish on it.")
    origin = Origin(
        sender=agent_id,
        kind=PUBLICATION,
        content=given["content"],
        channel=name,
        format=given.get("format"),
        recipients=(name,),
        pending=(Pending(name, at),),
        authority=authority if at > now else None,
    )
    content_id = new_id("pub")
    state = SCHEDULED if at > now else PUBLISHED
    parts = [agent_id, name, given.get("format"), given["content"]]
    command = PutRecord(
        content_id,
        PUBLICATION,
        agent_id,
        state,
        origin.text(),
        key=hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest(),
        due=at,
        lifetime=at - now + KEPT,
        most=MOST_SENT,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            if results.reason == "too-many":
                message = f"The agent has {MOST_SENT} publications that are still kept, the maximum."
                return _PUBLISH.refuse("too-many-publications", message)
            message = "The agent has published this content on the channel already."
            return _PUBLISH.refuse("already-published", message, content_id=results.details.get("record_id"))
        return Envelope(
            {
                "content_id": content_id,
                "channel": name,
                "status": state,
                "publish_at": write_instant(at),
                "subscribers": channel.subscribers,
            }
        )

    return Effects((command,), tell)
