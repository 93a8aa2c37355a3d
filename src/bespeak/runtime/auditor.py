"""Audit records: which exchanges are recorded, and their content."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import INTENT_ASSERTION, MERCHANT_ID, MERCHANT_MANIFEST_FINGERPRINT
from bespeak.runtime.call import Call, RoutedCall, StepCall
from bespeak.runtime.exchange import Exchange
from bespeak.runtime.payments.gate import merchant_of
from bespeak.state.audit.record import make_payload
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.store import Sealed

_MERCHANT: Final = {"merchant_id": MERCHANT_ID, "merchant_fingerprint": MERCHANT_MANIFEST_FINGERPRINT}
"""Core 10.3: what the record of a purchase has beside its input."""


class Auditor:
    """Builds the records of one server. They are committed with the exchange, so a subscriber cannot do it."""

    def __init__(
        self,
        server_id: str,
        *,
        attributes: bool,
        everything: bool = True,
        discovery: bool = False,
        fields: Mapping[tuple[str, str], tuple[str, ...]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._server_id = server_id
        self._attributes = attributes
        """True if a response carries its signed record, Attribution-Record."""
        self.everything = everything
        """False if only what governance needs is recorded."""
        self._discovery = discovery
        self._fields = fields or {}
        self._clock = clock

    def audits(self, call: Call) -> bool:
        """Return True for a call to be recorded, whatever its answer.

        Callers that reach no endpoint are logged but not recorded: they must not fill the trail.
        """
        route = call.route
        if not self.everything:
            return route is not None and route.is_governed
        if route is None:
            return call.principal.agent_id is not None
        return self._discovery or not route.endpoint.is_basic or route.endpoint.semantic.impact != "informational"

    def audits_refusal(self, call: Call, number: int) -> bool:
        """Return True for a call to be recorded because it was refused with a status.

        For governance these are calls of agents without the authority for them. Anonymous callers are only logged.
        """
        if self.everything:
            return self.audits(call)
        return number in status.LACKING_AUTHORITY and call.principal.agent_id is not None

    def entry(self, exchange: Exchange, more: Mapping[str, Any] | None = None) -> AppendAudit:
        """Return the command that records an exchange; its result is the Sealed record. `more` goes with the input."""
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
            recorded={**(self._recorded(call) or {}), **more} if more else self._recorded(call),
            parent_response_id=None if composing is None else composing.response_id,
            step=call.number if isinstance(call, StepCall) else None,
            synthesis_id=None if call.route is None else call.route.synthesis_id,
            semantic_mapping=None if call.request.semantic is None else call.request.semantic.outcome.mapping,
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
            from bespeak.state.audit.record import payload_of  # noqa: PLC0415 - loads cryptography, for purchases

            said = merchant_of(call)
            recorded |= {name: said[header] for name, header in _MERCHANT.items() if header in said}
            intent = payload_of(said.get(INTENT_ASSERTION, ""))
            if intent is not None and isinstance(intent.get("jti"), str):
                recorded["intent_assertion_jti"] = intent["jti"]
        return recorded
