"""CHECK: the health of this server, or the state of something that belongs to the caller (Tier 2 8.9)."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from bespeak.contract.handler import ExternalService
from bespeak.contract.standard.methods import STANDARD
from bespeak.errors import StoreError
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.bindings.upstream_probe import find_unreachable
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.transact.cancel import CANCELS
from bespeak.runtime.workflows.engine import receipt_steps
from bespeak.state.store.commands.nonces import UseNonce
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.commands.steps import WORKFLOW

_CHECK: Final = STANDARD["CHECK"]
_SECONDS: Final = 10.0
"""Time for a deep check."""
_SERVER: Final = ("server", "self")
_OK: Final = "ok"
_FAILING: Final = "failing"


async def check(call: RoutedCall) -> Envelope | Refused:
    """Answer CHECK /."""
    target = call.input["target"]
    deep = call.input.get("depth", "shallow") == "deep"
    if target in (*_SERVER, call.routes.service.identity.server_id):
        try:
            async with asyncio.timeout(_SECONDS):
                found = [component async for component in _server(call, deep=deep)]
        except TimeoutError:
            return _CHECK.refuse("timeout", f"The check took longer than {_SECONDS:g} s.", target=target)
        failing = any(component["status"] == _FAILING for component in found)
        return _report(target, _FAILING if failing else _OK, found)
    if is_canonical_id(target):
        return _agent(call, target)
    return await _owned(call, target)


async def _server(call: RoutedCall, *, deep: bool) -> AsyncIterator[dict[str, Any]]:
    """Yield the components of this server. Whoever answers is reachable, which is all that a shallow check asks."""
    yield {"name": "server", "status": _OK}
    if not deep:
        return
    store = call.server.store
    if store is not None:
        try:
            await store.do(UseNonce("check", secrets.token_hex(8), 1.0))
            yield {"name": "store", "status": _OK}
        except StoreError:
            yield {"name": "store", "status": _FAILING, "message": "It cannot be written."}
    if call.server.workflows is not None:
        yield {"name": "workflows", "status": _OK, "message": f"{call.server.workflows.driven} are running here."}
    external = [each for each in call.routes.endpoints.values() if isinstance(each.handler, ExternalService)]
    listed = [endpoint for endpoint in external if endpoint.is_listed]
    # Where an upstream is, is the operator's business; what it does is published.
    unreachable = {endpoint.key for endpoint, _, _ in await find_unreachable(listed)}
    for endpoint in listed:
        state = _FAILING if endpoint.key in unreachable else _OK
        yield {"name": f"upstream of {endpoint}", "status": state}


def _agent(call: RoutedCall, agent_id: str) -> Envelope | Refused:
    agent = call.server.agents.get(agent_id)
    public = call.routes.service.agent_disclosure == "public"
    if agent is None or not (public or call.agent_id == agent_id):
        return _CHECK.refuse("target-not-found", "No agent with this id is known here.")
    return _report(agent_id, agent.status, [{"name": agent.name, "status": agent.status}])


async def _owned(call: RoutedCall, target: str) -> Envelope | Refused:
    """Tell the state of a record of the caller, and what became of the steps of a workflow."""
    store = call.server.store
    record: Record | None = None if store is None else await store.read(FindRecord(tuple(CANCELS), target))
    if record is None or call.agent_id is None or record.owner not in (call.agent_id, call.principal.principal_id):
        message = f"This agent has nothing with the id {target[:80]!r}; `server` checks this server."
        return _CHECK.refuse("target-not-found", message)
    components: Sequence[dict[str, Any]] = [{"name": record.kind, "status": record.state}]
    if record.kind == WORKFLOW:
        workflow = await call.server.workflows.find(target)
        components = [
            {"name": step.get("name") or f"step {step['step']}", "status": step["status"]}
            for step in receipt_steps(workflow)
        ]
    return _report(target, record.state, components)


def _report(target: str, state: str, components: Sequence[dict[str, Any]]) -> Envelope:
    result = {
        "target": target,
        "status": state,
        "components": list(components),
        "checked_at": write_instant(time.time()),
    }
    return Envelope(result)
