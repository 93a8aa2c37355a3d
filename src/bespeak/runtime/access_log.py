"""The access log: one line per answer, with names, ids and numbers, never a value the caller sent."""

from __future__ import annotations

import logging
from typing import Final

from bespeak.runtime.exchange import Exchange, Subscriber

LOGGER: Final = "bespeak.access"

_logger = logging.getLogger(LOGGER)


def access_log() -> tuple[Subscriber, ...]:
    """Return the subscriber that writes the lines; None if the log level suppresses them."""
    return (log_exchange,) if _logger.isEnabledFor(logging.DEBUG) else ()


def log_exchange(exchange: Exchange) -> None:
    """Log one exchange."""
    args = (exchange.response.status, exchange.method, exchange.path, exchange.caller)
    _logger.debug("%d %s %s by %s", *args, extra={"particulars": exchange.particulars})
