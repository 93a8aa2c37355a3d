"""The access log: one line for each answer, with names, ids and numbers, never a value that the caller sent."""

from __future__ import annotations

import logging
from typing import Final

from bespeak.runtime.exchange import Exchange, Subscriber

LOGGER: Final = "bespeak.access"

_logger = logging.getLogger(LOGGER)


def access_log() -> tuple[Subscriber, ...]:
    """Return the subscriber that writes the lines, or nothing where the log is configured to drop them."""
    return (log_exchange,) if _logger.isEnabledFor(logging.DEBUG) else ()


def log_exchange(exchange: Exchange) -> None:
    """Write the line of an exchange."""
    args = (exchange.response.status, exchange.method, exchange.path, exchange.caller)
    _logger.debug("%d %s %s by %s", *args, extra={"particulars": exchange.particulars})
