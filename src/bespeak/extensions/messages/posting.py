"""A posting: something to deliver to an address outside, put into the outbox with the change that it reports."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.extensions.messages.store import PutOutbox
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.identity.authority import Authority

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

TOPIC: Final = "delivery"  # topic of postings in the outbox
WAITING: Final = "queued"  # state of a record whose posting waits for delivery
SENT: Final = "sent"  # state after the only attempt of an AT_MOST_ONCE posting has begun, until its result is known
DELIVERED: Final = "delivered"
FAILED: Final = "failed"
EXPIRED: Final = "expired"
VERIFICATION: Final = "verification"  # kind of a posting that asks an address whether it agrees to receive
REPORT: Final = "report"  # kind of a posting whose content is a document, which a mailbox receives as a file

AT_LEAST_ONCE: Final = "at_least_once"
AT_MOST_ONCE: Final = "at_most_once"


class Posting(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is delivered, and what becomes of the record that asked for it."""

    posting_id: str  # stable over all attempts: the receiver's key for duplicates
    kind: str  # reason of the posting: notification, alert, callback, report and so on
    sender: str  # Agent-ID of the sender, or the server_id
    content: Any
    subject: str | None = None
    expires: float | None = None  # time after which it is not delivered, in seconds since 1970
    guarantee: str = AT_LEAST_ONCE  # AT_MOST_ONCE for one attempt that is not repeated after a crash
    record_id: str | None = None
    """Record that changes from WAITING to DELIVERED, FAILED or EXPIRED; one in another state stays as it is."""
    about: str | None = None  # what a person answers: the id of what was sent, or of a case
    authority: Authority | None = None  # authority of the sender, for the function of a person
    recipient: str | None = None  # Agent-ID that it is for: a receiver of AGTP puts it into the inbox of that agent

    def letter(self, address: str, server_id: str) -> dict[str, Any]:
        """Return what a receiver reads. It names the address, so that nobody can pass it on as sent to another."""
        letter = {
            "posting_id": self.posting_id,
            "kind": self.kind,
            "server_id": server_id,
            "sender": self.sender,
            "to": address,
            "content": self.content,
        }
        if self.subject is not None:
            letter["subject"] = self.subject
        if self.expires is not None:
            letter["expires_at"] = write_instant(self.expires)
        return letter


def new_posting_id() -> str:
    return f"posting-{secrets.token_hex(16)}"


def post(address: str, posting: Posting, *, delay: float = 0.0) -> PutOutbox:
    """Return the command that has a posting delivered, `delay` seconds after its transaction."""
    return PutOutbox(TOPIC, address, msgspec.json.encode(posting).decode(), delay)


def is_deliverable(address: str, server: Server) -> bool:
    """Return True if a channel takes the address by its form and the lists; it may still be blocked at delivery."""
    return server.part("delivery") is not None and server.part("delivery").permits(address)
