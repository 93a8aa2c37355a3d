"""Task-IDs: opaque, but each fits in a header and can be stored and compared."""

from __future__ import annotations

from typing import Final

from bespeak.protocol.exchange.headers import is_header_value

LONGEST_TASK_ID: Final = 1024


def is_task_id(text: str) -> bool:
    """Return True if a text can be sent as the header Task-ID and arrives unchanged."""
    return 0 < len(text) <= LONGEST_TASK_ID and text == text.strip() and is_header_value(text)
