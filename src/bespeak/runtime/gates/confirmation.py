"""501: the call needs a confirmation, but a server without a store cannot keep confirmations."""

from __future__ import annotations

from typing import Final

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.call import RoutedCall

_UNCONFIRMABLE: Final = Refused(
    status.NOT_IMPLEMENTED,
    "not-implemented",
    "This call requires a confirmation, and this server has no store to keep confirmations in.",
    {"missing": "a store to keep state in"},
)


def confirmation_gate(call: RoutedCall) -> Refused | None:
    """Refuse a call that cannot be confirmed; with a store, the settlement asks for the confirmation."""
    return _UNCONFIRMABLE if call.route.is_confirmed and call.server.store is None else None
