"""The log of what a client sends and receives, at level debug, with every secret masked."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from typing import Final

from bespeak.protocol.wire.messages import ResponseMessage

WIRE_LOGGER: Final = "bespeak.agent.client.wire"
_logger = logging.getLogger(WIRE_LOGGER)

_MASK: Final = "***"
_LONGEST: Final = 16_384  # characters of a body that are shown
_SECRET_NAMES: Final = re.compile(
    r"authorization|cookie|token|secret|signature|delegation-chain|api-?key", re.IGNORECASE
)
_SECRET_QUERY: Final = re.compile(r"([?&][^=&\s]*(?:key|token|secret|password|sig)[^=&\s]*=)[^&\s]+", re.IGNORECASE)
# An API key keeps its id, by which its owner recognises it. The other form is a JWT: a token or a delegation.
_SECRETS: Final = re.compile(r"(bsk_[0-9a-f]{12}_)[0-9a-f]+|()ey[\w-]{8,}\.[\w-]+\.[\w-]*", re.ASCII)


def is_wire_logged() -> bool:
    return _logger.isEnabledFor(logging.DEBUG)


def log_sent(line: str, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    """Log a request; check `is_wire_logged` before."""
    _log(">", _mask(_SECRET_QUERY.sub(rf"\1{_MASK}", line)), headers, body)


def log_received(protocol: str, message: ResponseMessage) -> None:
    """Log a response, if the log is on."""
    if is_wire_logged():
        _log("<", f"{protocol} {message.status} {message.reason}", message.headers.items(), message.body)


def _log(mark: str, line: str, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    text = body[: _LONGEST + 4].decode(errors="replace")[:_LONGEST]
    if len(body) > _LONGEST:
        text += f"\n... ({len(body)} bytes in all)"
    lines = [line, *(f"{name}: {_masked(name, value)}" for name, value in headers), ""]
    lines += _mask(text).splitlines() if text else []
    _logger.debug("%s", "\n".join(f"{mark} {each}".rstrip() for each in lines))


def _masked(name: str, value: str) -> str:
    shown = _mask(value)
    if shown != value or not _SECRET_NAMES.search(name):
        return shown
    scheme, blank, _ = value.partition(" ")
    return f"{scheme} {_MASK}" if blank and scheme.isalpha() else _MASK


def _mask(text: str) -> str:
    return _SECRETS.sub(lambda found: f"{found[1] or ''}{_MASK}", text)
