"""The extension: messages between agents, subscriptions, and delivery to addresses outside."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from bespeak.extensions.messages import delegations
from bespeak.extensions.messages.delivery import Delivery, Drain
from bespeak.extensions.messages.message import BROADCAST, NOTIFICATION, PUBLICATION, SCHEDULED, decode_origin
from bespeak.extensions.messages.methods_broadcast import Fanout, alert, broadcast, publish
from bespeak.extensions.messages.methods_inbox import reply
from bespeak.extensions.messages.methods_send import DELIVERY, send
from bespeak.extensions.messages.people import open_people
from bespeak.extensions.messages.settings import DeliverySettings, PeopleSettings
from bespeak.extensions.messages.store import ALERT, SENT, SUBSCRIPTION, Withdraw
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.extension import Cancelling, Extension, Opening, RecordKind
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import Record
from bespeak.state.store.store import Command
from bespeak.terminal.panels import panel_in


def _open(opening: Opening) -> None:
    store, settings = opening.store, opening.document.extension_table("delivery", DeliverySettings)
    if store is not None:
        ended = delegations.EndedDelegations()
        opening.server.principals.ended = ended
        opening.provide("ended delegations", ended)
        opening.on_start(partial(ended.follow, store))
        opening.on_close(ended.close)
    people = opening.document.extension_table("people", PeopleSettings)
    if store is None or not (opening.enabled or settings is not None or people is not None):
        return
    server_id = opening.server.registrar.service.identity.server_id
    delivery = Delivery(settings, server_id=server_id, signer=opening.signer, environment=opening.environment)
    drain = Drain(store, delivery)
    opening.provide("delivery", delivery)
    open_people(opening, delivery)
    opening.on_run(drain.start)
    opening.on_stop(drain.stop)


def _recipients(record: Record) -> tuple[str, ...]:
    return decode_origin(record.data).recipients


def _withdraw(record: Record) -> tuple[Command, ...]:
    origin = decode_origin(record.data)
    return (Withdraw(origin.later, origin.held),)


async def _describe(_: Server, record: Record) -> Mapping[str, Any]:
    """Return what CHECK tells of an alert or a notification: who has received it later, and who acknowledged it."""
    origin = decode_origin(record.data)
    until = time.time() if record.state == SENT else record.updated
    late = [one.channel for one in origin.escalations if one.at <= until]
    told = {"escalated_to": late} if late else {}
    by = origin.acknowledged_by
    return told if by is None else {**told, "acknowledged_by": by, "acknowledged_at": write_instant(record.updated)}


messages: Final = Extension(
    name="messages",
    methods={"PUBLISH": publish, "ALERT": alert, "BROADCAST": broadcast, "REPLY": reply, "SEND": send},
    kinds={
        SUBSCRIPTION: RecordKind(cancelling=Cancelling(())),
        NOTIFICATION: RecordKind(due=lambda server: Fanout(server).carry, checked=True, describe=_describe),
        BROADCAST: RecordKind(due=lambda server: Fanout(server).carry, checked=True),
        PUBLICATION: RecordKind(
            due=lambda server: Fanout(server).carry, cancelling=Cancelling((SCHEDULED,), parties=_recipients)
        ),
        ALERT: RecordKind(
            due=lambda server: Fanout(server).carry,
            cancelling=Cancelling((SENT,), parties=_recipients, also=_withdraw),
            describe=_describe,
        ),
        DELIVERY: RecordKind(checked=True),
        delegations.DELEGATION: RecordKind(
            due=delegations.expire_with,
            cancelling=Cancelling(delegations.OPEN, carry_out=delegations.cancel),
            named=True,
            describe=delegations.describe,
        ),
    },
    open=_open,
    panels=(panel_in(__name__, "deliveries", "Deliveries"),),
)
