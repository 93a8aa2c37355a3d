"""A channel: delivers postings to addresses of one scheme. Operators may add their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from bespeak.protocol.address_guard import BlockedAddress
from bespeak.runtime.delivery.posting import Posting


class Delivered(msgspec.Struct, frozen=True):
    """The receiver has taken the posting."""

    confirmation: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What the channel says about it."""
    answer: bytes = b""
    """Beginning of the receiver's answer, if the posting asks for one."""


class Retry(msgspec.Struct, frozen=True):
    """The attempt failed; a later one may succeed."""

    message: str
    """What callers are told."""
    detail: str = ""
    """What only the operator is told: it may show names and addresses inside a network."""
    after: float | None = None
    """Seconds that the receiver asks to wait."""
    sent: bool = False
    """True if the receiver may have taken it all the same."""


class Undeliverable(msgspec.Struct, frozen=True):
    """No attempt can succeed."""

    message: str
    detail: str = ""
    """As in Retry."""


def blocked(reason: BlockedAddress) -> Retry | Undeliverable:
    """Return what the guard's refusal means for a posting."""
    if not reason.found:
        return Retry("The receiver's name cannot be resolved.", reason.message)
    return Undeliverable("The address is not public, and the operator does not allow it.", reason.message)


Outcome = Delivered | Retry | Undeliverable


class Channel(Protocol):
    """Delivers to addresses of one scheme."""

    def locate(self, address: str) -> str | Undeliverable:
        """Return the domain that an address belongs to, empty if it has none, or what is wrong with the address."""
        ...

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Make one attempt. It is cancelled when its time is over, and must not leave anything open."""
        ...
