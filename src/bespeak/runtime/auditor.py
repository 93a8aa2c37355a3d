"""Which answers are put on record, and what their records say of a call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from bespeak.protocol.exchange.messages import Response
from bespeak.runtime.call import Call
from bespeak.state.audit.record import make_payload
from bespeak.state.store.command import Sealed
from bespeak.state.store.commands.audit import AppendAudit


class Auditor:
    """Makes the records of one server."""

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
        """Whether a response carries its signed record, Attribution-Record."""
        self._discovery = discovery
        self._fields = fields or {}
        self._clock = clock

    def audits(self, call: Call) -> bool:
        """Whether a call is to be recorded: what an endpoint did, and whom it was refused to.

        Strangers who reach no endpoint are logged and not recorded: the trail is not theirs to fill.
        """
        route = call.route
        if route is None:
            return call.principal.agent_id is not None
        endpoint = route.endpoint
        return self._discovery or not endpoint.builtin or endpoint.semantic.impact != "informational"

    def entry(self, call: Call, response: Response, *, replayed: bool) -> AppendAudit:
        """The command that records an answer; it returns the Sealed record."""
        route = call.route
        principal = call.principal
        path = None if route is None else route.endpoint.path
        payload = make_payload(
            request=call.request,
            response=response,
            principal=principal,
            method=call.method,
            path=path,
            server_id=self._server_id,
            issued_at=self._clock(),
            replayed=replayed,
            recorded=self._recorded(call),
        )
        return AppendAudit(principal.agent_id or "", payload)

    def headers(self, sealed: Sealed) -> tuple[tuple[str, str], ...]:
        """What the response says of its record."""
        named = ("Audit-ID", sealed.audit_id)
        return (named, ("Attribution-Record", sealed.jws)) if self._attributes else (named,)

    def _recorded(self, call: Call) -> Mapping[str, Any] | None:
        """The input the operator wants to see in the record."""
        if not self._fields or call.route is None:
            return None
        names = self._fields.get(call.route.endpoint.key)
        return {name: call.input[name] for name in names if name in call.input} if names else None
