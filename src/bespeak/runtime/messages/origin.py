"""Something that was sent to many: a record of its author, with the content that all its messages share."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from bespeak.runtime.authority import Authority
from bespeak.runtime.delivery.posting import AT_LEAST_ONCE, Posting, post
from bespeak.runtime.messages.message import KEPT, MOST_FROM_ONE, MOST_RECEIVED, USUAL, Message, address_messages
from bespeak.runtime.messages.recipients import Recipients
from bespeak.state.store.command import Command, Conflict
from bespeak.state.store.commands.messages import SENT, PutMessages
from bespeak.state.store.commands.outbox import PutOutbox
from bespeak.state.store.commands.records import PutRecord

BROADCAST: Final = "broadcast"
NOTIFICATION: Final = "notification"
PUBLICATION: Final = "publication"
SCHEDULED: Final = "scheduled"
PUBLISHED: Final = "published"
STOPPED: Final = "stopped"
"""State of a publication whose author must not publish any more when it is due."""
MOST_SENT: Final = 20_000
"""Things of one kind that an agent may have sent in the time for which they are kept."""
EXACTLY_ONCE: Final = "exactly_once"


class Pending(msgspec.Struct, frozen=True, omit_defaults=True):
    """A channel whose subscribers have not all received it."""

    channel: str
    at: float = 0.0
    """Time from which they receive it, in seconds since 1970."""
    after: str = ""
    """The last subscription that has received it."""


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of something that was sent."""

    sender: str
    kind: str
    content: Any
    urgency: str = USUAL
    channel: str | None = None
    format: str | None = None
    expires: float | None = None
    guarantee: str = AT_LEAST_ONCE
    recipients: tuple[str, ...] = ()
    """Names by which the author has chosen the recipients."""
    pending: tuple[Pending, ...] = ()
    """Channels to deliver to, in the order of their times."""
    later: tuple[str, ...] = ()
    """Messages of an alert that are withdrawn if it is acknowledged."""
    held: tuple[int, ...] = ()
    """Postings of an alert that are withdrawn if it is acknowledged."""
    authority: Authority | None = None
    """Authority of the author of something that is published later; None for what was sent at once."""
    ended: dict[str, Any] | None = None
    """Code and message of the reason why it was not published; None otherwise."""

    def text(self) -> str:
        """Return the content as JSON."""
        return msgspec.json.encode(self).decode()

    def message(self, origin_id: str, channel: str | None = None) -> Message:
        """Return the message that each recipient receives."""
        return Message(
            sender=self.sender,
            kind=self.kind,
            ref=origin_id,
            urgency=self.urgency,
            channel=channel or self.channel,
            expires=self.expires,
        )

    def kept_until(self, start: float) -> float:
        """Return the end of the time for which messages that arrive at `start` are kept."""
        return start + KEPT if self.expires is None else self.expires

    def posting(
        self, origin_id: str, address: str, *, recipient: str | None = None, delay: float = 0.0, record: bool = False
    ) -> PutOutbox:
        """Return the command that delivers it to an address."""
        digest = hashlib.sha256(f"{address} {recipient or ''}".encode(errors="surrogatepass")).hexdigest()[:16]
        posting = Posting(
            posting_id=f"{origin_id}.{digest}",
            kind=self.kind,
            sender=self.sender,
            content=self.content,
            expires=self.expires,
            guarantee=self.guarantee,
            record_id=origin_id if record else None,
            recipient=recipient,
        )
        return post(address, posting, delay=delay)


decode_origin = msgspec.json.Decoder(Origin).decode


def send(
    origin_id: str, record_kind: str, origin: Origin, found: Recipients, now: float, *, limited: bool = True
) -> tuple[Command, ...]:
    """Return the commands that send something: to agents and addresses now, to channels as the due loop goes.

    Without limits of the sender it never fails; those whose inboxes are full are left out.
    """
    origin = msgspec.structs.replace(origin, pending=tuple(Pending(channel) for channel in found.channels))
    kept_until = origin.kept_until(now)
    messages = address_messages(origin_id, origin.message(origin_id), found.agents, kept_until=kept_until)
    return (
        PutRecord(
            origin_id,
            record_kind,
            origin.sender,
            SENT,
            origin.text(),
            delay=0.0 if found.channels else None,
            lifetime=max(kept_until - now, KEPT),
            most=MOST_SENT if limited else None,
        ),
        *((PutMessages(messages, most=MOST_RECEIVED, share=MOST_FROM_ONE, required=limited),) if messages else ()),
        *(origin.posting(origin_id, address) for address in found.addresses),
    )


def too_much(conflict: Conflict, what: str) -> str:
    """Return the message about a limit that is reached: of the sender, or of all recipients."""
    if conflict.reason == "too-many":
        return f"The agent has sent {conflict.details['most']} {what} that are still kept, the maximum."
    return "The recipients have no room for more messages."
