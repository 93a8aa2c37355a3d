"""Audit records: which exchanges are recorded, and their content."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from bespeak.protocol.exchange.headers import INTENT_ASSERTION, MERCHANT_ID, MERCHANT_MANIFEST_FINGERPRINT
from bespeak.runtime.call import Call, RoutedCall, StepCall
from bespeak.runtime.exchange import Exchange
from bespeak.state.audit.reading import payload_of
from bespeak.state.audit.record import make_payload
from bespeak.state.store.command import Sealed
from bespeak.state.store.commands.audit import AppendAudit

_MERCHANT: Final = {"merchant_id": MERCHANT_ID, "merchant_fingerprint": MERCHANT_MANIFEST_FINGERPRINT}
"""Core 10.3: what the record of a purchase has beside its input."""


class Auditor:
    """Builds the records of one server. They are committed with the exchange, so a subscriber cannot do it."""

    def __init__(
        self,
        server_id: str,
        *,
        attributes: bool,
        discovery: bool = False,
        fields: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._server_id = server_id
        self._attributes = attributes
        """True if a response carries its signed record, Attribution-Record."""
        self._discovery = discovery
        self._fields = fields or {}
        self._clock = clock

    def audits(self, call: Call) -> bool:
        """Return True for a call to be recorded: what an endpoint did, and its refusals.

        Callers that reach no endpoint are logged but not recorded: they must not fill the trail.
        """
        route = call.route
        if route is None:
            return call.principal.agent_id is not None
        return self._discovery or not route.endpoint.is_basic or route.endpoint.semantic.impact != "informational"

    def entry(self, exchange: Exchange) -> AppendAudit:
        """Return the command that records an exchange; its result is the Sealed record."""
        call = exchange.call
        composing = None if call.parent is None else call.parent.composing
        payload = make_payload(
            request=call.request,
            response=exchange.response,
            principal=call.principal,
            method=call.method,
            path=exchange.template,
            server_id=self._server_id,
            issued_at=self._clock(),
            replayed=exchange.replayed,
            recorded=self._recorded(call),
            parent_response_id=None if composing is None else composing.response_id,
            step=call.number if isinstance(call, StepCall) else None,
            synthesis_id=None if call.route is None else call.route.synthesis_id,
        )
        return AppendAudit(call.agent_id or "", payload)

    def headers(self, sealed: Sealed) -> tuple[tuple[str, str], ...]:
        """Return the headers by which a response names its record."""
        named = ("Audit-ID", sealed.audit_id)
        return (named, ("Attribution-Record", sealed.jws)) if self._attributes else (named,)

    def _recorded(self, call: Call) -> Mapping[str, Any] | None:
        """Return the input fields that the operator has chosen to record, and those that the method must."""
        if not isinstance(call, RoutedCall):
            return None
        endpoint = call.route.endpoint
        names = (*endpoint.recorded, *self._fields.get(endpoint.key, ()))
        recorded = {name: call.input[name] for name in names if name in call.input} if names else None
        if recorded is not None and call.method == "PURCHASE":
            headers = call.request.headers
            recorded |= {name: headers[header] for name, header in _MERCHANT.items() if header in headers}
            intent = payload_of(headers.get(INTENT_ASSERTION, ""))
            if intent is not None and isinstance(intent.get("jti"), str):
                recorded["intent_assertion_jti"] = intent["jti"]
        return recorded
