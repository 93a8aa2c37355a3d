"""Announcement of a case to whoever is to decide it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.delivery.posting import Posting, is_deliverable, post
from bespeak.runtime.messages.message import KEPT, MOST_FROM_ONE, Message, address_messages
from bespeak.runtime.messages.recipients import as_address
from bespeak.state.store.command import Command
from bespeak.state.store.commands.cases import ESCALATION
from bespeak.state.store.commands.messages import PutMessages

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

_URGENCIES: Final = {"urgent": "critical", "low": "background"}


def announce(
    server: Server, case_id: str, agent_id: str, recipient: str, content: msgspec.Raw, *, priority: str = "normal"
) -> Command | None:
    """Return the command that tells the recipient of a case: in the inbox of an agent, or by a posting to an address.

    Return None for anyone else, such as a person: they find the case in the list of cases, which is complete.
    """
    told: dict[str, Any] = {"escalation_id": case_id, "agent_id": agent_id, "content": content}
    if is_canonical_id(recipient):
        urgency = _URGENCIES.get(priority, "informational")
        message = Message(sender=agent_id, kind=ESCALATION, content=told, urgency=urgency)
        messages = address_messages(case_id, message, (recipient,), kept_until=time.time() + KEPT)
        # Beyond its share the recipient finds the case only in the list of cases.
        return PutMessages(messages, share=MOST_FROM_ONE, required=False)
    address = as_address(recipient)
    return post(address, Posting(case_id, ESCALATION, agent_id, told)) if is_deliverable(address, server) else None
