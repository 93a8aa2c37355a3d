"""Messages: those in the inboxes of agents, the records of what was sent to many, and announcements of cases."""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.standard.definition import StandardMethod
from bespeak.extensions.messages.posting import AT_LEAST_ONCE, Posting, is_deliverable, post
from bespeak.extensions.messages.recipients import PERSON, Recipients, as_address, people_of
from bespeak.extensions.messages.store import SENT, NewMessage, PutMessages, PutOutbox
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.handling import Conflicts, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.cases import ESCALATION
from bespeak.state.store.commands.records import PutRecord
from bespeak.state.store.store import Command

if TYPE_CHECKING:
    from bespeak.runtime.call import RoutedCall
    from bespeak.runtime.server import Server

KEPT: Final = 30 * 86400.0  # seconds for which a message without an expiry is kept
MOST_CONTENT: Final = 64 * 1024  # maximum bytes of the content of a message
MOST_RECEIVED: Final = 10_000  # messages in one inbox
MOST_FROM_ONE: Final = 1_000  # unread messages of one sender among them, beside those of channels it is subscribed to
MOST_TO_PERSON: Final = 100  # unanswered messages of one sender to one person
USUAL: Final = "informational"

THREAD: Final = re.compile(r"[0-9a-f]{32}")
_MESSAGE_ID: Final = re.compile(r"msg-([0-9a-f]{32})-[0-9a-f]{32}")
_ORIGIN_ID: Final = re.compile(r"(?:alert|ntf|brd|pub|esc|dlg)-([0-9a-f]{32})")


class Confirmed(msgspec.Struct, frozen=True, omit_defaults=True):
    status: str
    attestation_id: str
    reason: str | None = None
    attestation: Any = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a message, whose owner is the recipient."""

    sender: str  # Agent-ID of the author, or the server_id
    kind: str
    """Kind of message: notification, alert, broadcast, publication, reply, escalation, cancellation, confirmation."""
    content: Any = None
    ref: str | None = None  # record that has the content, if many messages share it
    urgency: str = USUAL
    in_reply_to: str | None = None
    channel: str | None = None  # channel through which it came
    expires: float | None = None  # expiry that the author has chosen, in seconds since 1970
    confirmed: Confirmed | None = None


decode_message = msgspec.json.Decoder(Message).decode


def thread_of(sent_id: str) -> str:
    """Return the thread of something that was sent: the digits of its id, or those of the first message."""
    return sent_id.split("-")[1]


def message_id(origin_id: str, recipient: str) -> str:
    """Return the id of what one recipient receives; the same again if it is delivered again."""
    digest = hashlib.sha256(f"{origin_id} {recipient}".encode(errors="surrogatepass")).hexdigest()
    return f"msg-{thread_of(origin_id)}-{digest[:32]}"


def received_id(named: str, recipient: str) -> str | None:
    """Return the message that a recipient means by the id of a message or of what was sent; None for other ids."""
    if _MESSAGE_ID.fullmatch(named):
        return named
    return message_id(named, recipient) if _ORIGIN_ID.fullmatch(named) else None


def address_messages(
    origin_id: str,
    message: Message,
    recipients: tuple[str, ...],
    *,
    kept_until: float,
    at: float | None = None,
    subscribed: bool = False,
) -> tuple[NewMessage, ...]:
    """Return the messages that recipients receive of one thing that is sent, perhaps because they have subscribed."""
    data, sender = to_json(message), None if subscribed else message.sender
    return tuple(NewMessage(message_id(origin_id, one), one, data, kept_until, at, sender) for one in recipients)


def put_messages(
    origin_id: str,
    message: Message,
    recipients: tuple[str, ...],
    *,
    kept_until: float | None = None,
    subscribed: bool = False,
    share: int | None = MOST_FROM_ONE,
    **options: bool,
) -> PutMessages:
    """Return the command that puts one thing into the inboxes of recipients, within their limits."""
    kept_until = time.time() + KEPT if kept_until is None else kept_until
    messages = address_messages(origin_id, message, recipients, kept_until=kept_until, subscribed=subscribed)
    return PutMessages(messages, most=MOST_RECEIVED, share=share, **options)


BROADCAST: Final = "broadcast"
NOTIFICATION: Final = "notification"
PUBLICATION: Final = "publication"
SCHEDULED: Final = "scheduled"
MOST_SENT: Final = 20_000  # things of one kind that an agent may have sent in the time for which they are kept
EXACTLY_ONCE: Final = "exactly_once"


class Pending(msgspec.Struct, frozen=True, omit_defaults=True):
    """A channel whose subscribers have not all received it, or a recipient that receives it later."""

    channel: str
    at: float = 0.0  # time from which they receive it, in seconds since 1970
    after: str = ""  # the last subscription that has received it


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
    recipients: tuple[str, ...] = ()  # names by which the author has chosen the recipients
    pending: tuple[Pending, ...] = ()  # channels to deliver to, in the order of their times
    later: tuple[str, ...] = ()  # messages of an alert that are withdrawn if it is acknowledged
    escalations: tuple[Pending, ...] = ()  # names of the escalation path of an alert, each with its time
    held: tuple[int, ...] = ()  # postings of an alert that are withdrawn if it is acknowledged
    authority: Authority | None = None  # authority of the author of what is published later or sent to people
    acknowledged_by: str | None = None  # agent or person that has acknowledged it
    ended: dict[str, Any] | None = None  # code and message of the reason why it was not published; None otherwise

    def text(self) -> str:
        return to_json(self)

    def message(self, origin_id: str, channel: str | None = None) -> Message:
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
        self,
        origin_id: str,
        address: str,
        *,
        recipient: str | None = None,
        delay: float = 0.0,
        record: bool = False,
        about: str | None = None,
    ) -> PutOutbox:
        """Return the command that delivers it to an address. `about` is its id, if `origin_id` has a suffix."""
        digest = hashlib.sha256(f"{address} {recipient or ''}".encode(errors="surrogatepass")).hexdigest()[:16]
        is_person = address.startswith(PERSON)
        posting = Posting(
            *(f"{origin_id}.{digest}", self.kind, self.sender, self.content),
            expires=self.expires,
            guarantee=self.guarantee,
            record_id=origin_id if record else None,
            about=(about or origin_id) if is_person else None,
            authority=self.authority if is_person else None,
            recipient=recipient,
        )
        return post(address, posting, delay=delay)


decode_origin = msgspec.json.Decoder(Origin).decode


def send(
    origin_id: str, record_kind: str, origin: Origin, found: Recipients, now: float, *, limited: bool = True
) -> tuple[Command, ...]:
    """Return the commands that send to agents and addresses now, to channels later; full inboxes are left out."""
    pending, authority = tuple(Pending(channel) for channel in found.channels), origin.authority or found.authority
    origin = msgspec.structs.replace(origin, pending=pending, authority=authority)
    kept_until, message = origin.kept_until(now), origin.message(origin_id)
    put = put_messages(origin_id, message, found.agents, kept_until=kept_until, share=share_of(found), required=limited)
    return (
        PutRecord(
            *(origin_id, record_kind, origin.sender, SENT, origin.text()),
            delay=0.0 if found.channels else None,
            lifetime=max(kept_until - now, KEPT),
            most=MOST_SENT if limited else None,
        ),
        *((put,) if found.agents else ()),
        *(origin.posting(origin_id, address) for address in found.addresses),
    )


def share_of(found: Recipients) -> int:
    """Return how many unread messages one sender may have with each recipient; people must read them."""
    return MOST_TO_PERSON if found.people else MOST_FROM_ONE


def too_much(method: StandardMethod, what: str) -> Conflicts:
    """Return the refusals of a limit that is reached: of the sender, or of all recipients."""
    full = "The agent has sent {} {} that are still kept, the maximum."
    return {
        "too-many": lambda found: method.refuse("delivery-unavailable", full.format(found["most"], what)),
        "": method.refuse("delivery-unavailable", "The recipients have no room for more messages."),
    }


_URGENCIES: Final = {"urgent": "critical", "low": "background"}


def announce(
    server: Server,
    case_id: str,
    agent_id: str,
    recipient: str,
    content: msgspec.Raw,
    *,
    priority: str = "normal",
    call: RoutedCall | None = None,
    expires: float | None = None,
) -> Command | None:
    """Return the command that tells an agent, a person or an address of its case; None for others, who find it listed.

    With the `call` that names the recipient, one that does not exist is refused.
    """
    told: dict[str, Any] = {"escalation_id": case_id, "agent_id": agent_id, "content": content}
    if is_canonical_id(recipient):
        urgency = _URGENCIES.get(priority, "informational")
        message = Message(sender=agent_id, kind=ESCALATION, content=told, urgency=urgency)
        messages = address_messages(case_id, message, (recipient,), kept_until=time.time() + KEPT)
        # Beyond its share the recipient finds the case only in the list of cases.
        return PutMessages(messages, share=MOST_FROM_ONE, required=False)
    people, address = people_of(server), as_address(recipient)
    person = people.find(recipient, call)
    authority = None if call is None else Authority.of(call.principal, call.request)
    if person is not None:
        address = person.inbox if person.addresses else ""
    elif call is not None and recipient != server.cases.default_recipient and ":" not in address:
        people.require(recipient, call)
    posting = Posting(case_id, ESCALATION, agent_id, told, expires=expires, about=case_id, authority=authority)
    return post(address, posting) if address and (person or is_deliverable(address, server)) else None
