"""A message in the inbox of an agent: its content, and the ids by which threads and repeated deliveries are known."""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Any, Final

import msgspec

from bespeak.state.store.commands.messages import NewMessage

KEPT: Final = 30 * 86400.0
"""Seconds for which a message without an expiry is kept."""
MOST_CONTENT: Final = 64 * 1024
"""Maximum bytes of the content of a message."""
MOST_COPIES: Final = 8 * 1024 * 1024
"""Bytes of all the copies that addresses outside get of one content."""
MOST_RECEIVED: Final = 10_000
"""Messages in one inbox."""
MOST_FROM_ONE: Final = 1_000
"""Unread messages of one sender among them, beside those of channels that the recipient is subscribed to."""
LEAST_URGENT: Final = "background"
USUAL: Final = "informational"

READ: Final = "read"
DECLINED: Final = "declined"

_THREAD: Final = re.compile(r"[0-9a-f]{32}")
_MESSAGE_ID: Final = re.compile(r"msg-([0-9a-f]{32})-[0-9a-f]{32}")
_ORIGIN_ID: Final = re.compile(r"(?:alert|ntf|brd|pub|esc)-([0-9a-f]{32})")


class Confirmed(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the recipient has confirmed a message."""

    status: str
    attestation_id: str
    reason: str | None = None
    attestation: Any = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of a message, whose owner is the recipient."""

    sender: str
    """Agent-ID of the author, or the server_id."""
    kind: str
    """Kind of message: notification, alert, broadcast, publication, reply, escalation, cancellation, confirmation."""
    content: Any = None
    ref: str | None = None
    """Record that has the content, if many messages share it."""
    urgency: str = USUAL
    in_reply_to: str | None = None
    channel: str | None = None
    """Channel through which it came."""
    expires: float | None = None
    """Expiry that the author has chosen, in seconds since 1970."""
    confirmed: Confirmed | None = None

    def text(self) -> str:
        """Return the content as JSON."""
        return msgspec.json.encode(self).decode()


decode_message = msgspec.json.Decoder(Message).decode


def new_id(prefix: str) -> str:
    """Return the id of something new that is sent."""
    return f"{prefix}-{secrets.token_hex(16)}"


def thread_of(sent_id: str) -> str:
    """Return the thread of something that was sent: the digits of its id, or those of the first message."""
    return sent_id.split("-")[1]


def is_thread(text: str) -> bool:
    """Return True if a text has the form of a thread_id."""
    return _THREAD.fullmatch(text) is not None


def message_id(origin_id: str, recipient: str, thread: str | None = None) -> str:
    """Return the id of what one recipient receives; the same again if it is delivered again."""
    digest = hashlib.sha256(f"{origin_id} {recipient}".encode(errors="surrogatepass")).hexdigest()
    return f"msg-{thread or thread_of(origin_id)}-{digest[:32]}"


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
    data, sender = message.text(), None if subscribed else message.sender
    return tuple(
        NewMessage(message_id(origin_id, recipient), recipient, data, kept_until, at, sender)
        for recipient in recipients
    )
