"""Task-IDs: opaque, but each fits in a header and can be stored and compared."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from bespeak.protocol.exchange.headers import is_header_value

LONGEST_TASK_ID: Final = 65_536
"""Maximum characters: what the head of a request may have."""
_LONGEST_STORED: Final = 512
"""Maximum bytes of a Task-ID in an index of a store."""


def is_task_id(text: str) -> bool:
    """Return True if a text can be sent as the header Task-ID and arrives unchanged."""
    return 0 < len(text) <= LONGEST_TASK_ID and text == text.strip() and is_header_value(text)


def stored_task_id(task_id: str) -> str:
    """Return the text by which a store finds a Task-ID: a digest if it is too long for an index."""
    encoded = task_id.encode(errors="surrogatepass")
    return task_id if len(encoded) <= _LONGEST_STORED else f"sha256:{sha256(encoded).hexdigest()}"
