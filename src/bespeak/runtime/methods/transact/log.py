"""LOG: keeps an event that an agent reports, with who reported it and when (Tier 2 5.9)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.events import PutEvent
from bespeak.state.store.commands.records import Record
from bespeak.text.diagnostics.brief import unquoted

_logger = logging.getLogger(__name__)

MOST_KEPT: Final = 10_000
"""Events of one agent that are kept; the oldest make room."""
MOST_SIZE: Final = 16 * 1024 * 1024
"""Characters of their content together."""
MOST_DATA: Final = 64 * 1024
"""Maximum bytes of the data of a record."""
_LOG: Final = STANDARD["LOG"]
_LEVELS: Final = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


def log(call: RoutedCall) -> Effects | Refused:
    """Answer LOG /. The record and the audit record of the call are one transaction."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    severity = given.get("severity", "info")
    content = {name: given[name] for name in ("event_type", "data", "correlation_id") if name in given}
    data = msgspec.json.encode({**content, "severity": severity}).decode()
    if len(data) > MOST_DATA:
        return _LOG.refuse(
            "invalid-data", f"A record may have {MOST_DATA // 1024} KiB; this one has {len(data)} bytes."
        )
    command = PutEvent(f"log-{secrets.token_hex(16)}", call.agent_id or "", data, MOST_KEPT, MOST_SIZE)

    def tell(results: Sequence[Any] | Conflict) -> Envelope:
        assert not isinstance(results, Conflict), "a new id is not taken"
        record: Record = results[0]
        # The content may hold what operators must not read.
        _logger.log(
            _LEVELS[severity], "%s reported %s: %s", record.owner, unquoted(given["event_type"]), record.record_id
        )
        return Envelope(
            {
                "record_id": record.record_id,
                "event_type": given["event_type"],
                "severity": severity,
                "logged_at": write_instant(record.created),
            }
        )

    return Effects((command,), tell)
