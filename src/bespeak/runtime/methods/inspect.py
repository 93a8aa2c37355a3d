"""INSPECT: reads records of the audit trail, the history of an agent and synthesized contracts.

An agent may inspect what concerns itself; the scope `audit:read` gives access to the rest. Anonymous callers see
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import ID_SCHEMA, NEGOTIATED_ID_SCHEMA
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.extension import INSPECT_SYNTHESIS
from bespeak.runtime.handling import RefusedError, invalid, refusal, stateful
from bespeak.state.audit.record import KeptRecord, payload_of
from bespeak.state.store.commands.agents import ReadLifecycle
from bespeak.state.store.commands.audit import ReadAudit, ReadChainHead
from bespeak.state.store.store import Store

READ: Final = "audit:read"  # scope that lets a caller inspect records of other agents

_TELLING: Final = frozenset({"method", "requested_method", "path", "extra", "request_hash"})
"""Members of a record that say what was called: a hash can be compared with guesses."""

TARGETS: Final = ("audit", "chain_head", "lifecycle", "contract")

INSPECT: Final = StandardMethod(
    name="INSPECT",
    description="Shows a record of the audit trail, the head of an agent's chain, the changes of its state, or a "
    "synthesized contract.",
    intent="Inspect what this server has recorded about an agent.",
    outcome="The record or the events are returned; nothing has been changed.",
    takes={
        "target": {"type": "string", "enum": list(TARGETS)},
        "audit_id?": ID_SCHEMA,
        "agent_id?": ID_SCHEMA,
        "synthesis_id?": NEGOTIATED_ID_SCHEMA,
    },
)


@stateful
async def inspect(call: RoutedCall) -> Envelope:
    assert call.server.store is not None
    store, target = call.server.store, call.input["target"]
    if target == "audit":
        row = await store.read(ReadAudit(_named(call, "audit_id", "the record")))
        _check_owner(call, KeptRecord(*row).agent_id if row is not None else "")
        return _show(call, row, "No record has this Audit-ID.")
    if target == "contract":
        return await _contract(store, call)
    agent_id: str = call.input.get("agent_id") or call.agent_id or ""
    _check_owner(call, agent_id)
    if target == "chain_head":
        return _show(call, await store.read(ReadChainHead(agent_id)), "There is no record of this agent.")
    return await _lifecycle(store, agent_id)


def _named(call: RoutedCall, member: str, what: str) -> str:
    if member not in call.input:
        raise invalid(member, f"is missing: it names {what} to inspect.")
    name: str = call.input[member]
    return name


async def _contract(store: Store, call: RoutedCall) -> Envelope:
    synthesis_id = _named(call, "synthesis_id", "the contract")
    agent_id, described = await call.server.hooks[INSPECT_SYNTHESIS](store, synthesis_id)
    _check_owner(call, agent_id)
    if described is None:
        raise refusal(status.NOT_FOUND, "record-not-found", "No synthesis has this id.")
    return Envelope({"agent_id": agent_id, **described})


async def _lifecycle(store: Store, agent_id: str) -> Envelope:
    events = await store.read(ReadLifecycle(agent_id))
    if not events:
        message = "There is no recorded change of this agent's state."
        raise refusal(status.NOT_FOUND, "agent-not-found", message)
    listed = [
        {
            "event": event.event,
            "previous_status": event.previous_status,
            "status": event.status,
            "actor": event.actor,
            "reason": event.reason,
            "at": write_instant(event.at),
        }
        for event in events
    ]
    return Envelope({"agent_id": agent_id, "status": events[-1].status, "events": listed})


def _check_owner(call: RoutedCall, agent_id: str) -> None:
    """Refuse what the caller may not see, whether or not it exists. Records of anonymous calls have no owner."""
    if call.agent_id != agent_id and not call.principal.scopes.covers(READ):
        raise RefusedError(_FORBIDDEN)


def _show(call: RoutedCall, row: Any, otherwise: str) -> Envelope:
    if row is None:
        raise refusal(status.NOT_FOUND, "record-not-found", otherwise)
    record = KeptRecord(*row)
    place = {"audit_id": record.audit_id, "stream": record.stream, "sequence": record.sequence}
    payload = payload_of(record.jws)
    if payload is not None and not call.principal.scopes.covers(READ) and not _may_be_told(call, payload):
        told = {name: value for name, value in payload.items() if name not in _TELLING}
        return Envelope({**place, "record": told, "internal": True})
    return Envelope({**place, "record": payload, "attribution_record": record.jws})


def _may_be_told(call: RoutedCall, payload: Mapping[str, Any]) -> bool:
    """Return False for a step of a composition whose endpoint is internal, or can no longer be known not to be."""
    if "step" not in payload:
        return True
    route = call.routes.steps.get((payload["method"], payload.get("path", "")))
    return route is not None and not route.endpoint.internal


_FORBIDDEN: Final = Refused(
    status.FORBIDDEN,
    "inspection-forbidden",
    f"The caller has no such record; only an agent with the scope {READ} may inspect others.",
    {"required_scopes": [READ]},
)
