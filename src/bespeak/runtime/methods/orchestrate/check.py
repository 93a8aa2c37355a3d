"""CHECK: the health of this server, or the state of something that belongs to the caller (Tier 2 8.9)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.disclosure import find_visible
from bespeak.runtime.health import OK, UPSTREAM, WITHIN, examine, examine_upstreams, judge
from bespeak.runtime.messages.origin import BROADCAST, NOTIFICATION
from bespeak.runtime.methods.communicate.send import KIND as DELIVERY
from bespeak.runtime.methods.transact.cancel import CANCELS
from bespeak.runtime.workflows.engine import receipt_steps
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.commands.steps import WORKFLOW

_CHECK: Final = STANDARD["CHECK"]
_SERVER: Final = ("server", "self")
_KINDS: Final = (*CANCELS, DELIVERY, NOTIFICATION, BROADCAST)
"""Kinds of records whose owner can ask for their state."""


class _Ended(msgspec.Struct):
    message: str = ""


class _Bounded(msgspec.Struct):
    expires: float | None = None


class _Content(msgspec.Struct):
    """What records of every kind say in the same way: why they ended, and when their authority ends."""

    ended: _Ended | None = None
    authority: _Bounded | None = None

    @property
    def expires(self) -> float | None:
        """End of the authority; None if it has none."""
        return None if self.authority is None else self.authority.expires


_decode = msgspec.json.Decoder(_Content).decode


async def check(call: RoutedCall) -> Envelope | Refused:
    """Answer CHECK /."""
    target = call.input["target"]
    deep = call.input.get("depth", "shallow") == "deep"
    if is_canonical_id(target):
        return _agent(call, target)
    try:
        if target in (*_SERVER, call.routes.service.identity.server_id):
            # Whoever answers is reachable, which is all that a shallow check asks.
            found = await examine(call.server) if deep else [{"name": "server", "status": OK}]
            return _report(target, judge(found), found)
        method, _, path = target.removeprefix(UPSTREAM).partition(" ")
        if path.startswith("/"):
            async with asyncio.timeout(WITHIN):
                return await _endpoint(call, target, method, path)
    except TimeoutError:
        return _CHECK.refuse("timeout", f"The check took longer than {WITHIN:g} s.", target=target)
    return await _owned(call, target)


async def _endpoint(call: RoutedCall, target: str, method: str, path: str) -> Envelope | Refused:
    """Tell whether an endpoint is there, and whether its upstream can be reached."""
    found = find_visible(call, method, path)
    if found is None:
        return _CHECK.refuse("target-not-found", f"There is no endpoint {target[:80]!r} here.")
    components = [{"name": str(found[0].endpoint), "status": OK}, *await examine_upstreams([found[0].endpoint])]
    return _report(target, judge(components), components)


def _agent(call: RoutedCall, agent_id: str) -> Envelope | Refused:
    agent = call.server.agents.get(agent_id)
    public = call.routes.service.agent_disclosure == "public"
    if agent is None or not (public or call.agent_id == agent_id):
        return _CHECK.refuse("target-not-found", "No agent with this id is known here.")
    return _report(agent_id, agent.status, [{"name": agent.name, "status": agent.status}])


async def _owned(call: RoutedCall, target: str) -> Envelope | Refused:
    """Tell the state of a record of the caller, and what became of the steps of a workflow."""
    store = call.server.store
    record: Record | None = None if store is None else await store.read(FindRecord(_KINDS, target))
    if record is None or call.agent_id is None or record.owner not in (call.agent_id, call.principal.principal_id):
        message = f"This agent has nothing with the id {target[:80]!r}; `server` checks this server."
        return _CHECK.refuse("target-not-found", message)
    content = _decode(record.data)
    components: Sequence[dict[str, Any]] = [_component(record.kind, record.state, content.ended)]
    if record.kind == WORKFLOW:
        workflow = await call.server.workflows.find(target)
        components = [
            _component(step.get("name") or f"step {step['step']}", step["status"], _decode_error(step.get("error")))
            for step in receipt_steps(workflow)
        ]
    return _report(target, record.state, components, content.expires)


def _decode_error(raw: msgspec.Raw | None) -> _Ended | None:
    return None if raw is None else msgspec.json.decode(raw, type=_Ended)


def _component(name: str, state: str, ended: _Ended | None) -> dict[str, Any]:
    made = {"name": name, "status": state}
    return made if ended is None or not ended.message else {**made, "message": ended.message}


def _report(target: str, state: str, components: Sequence[dict[str, Any]], expires: float | None = None) -> Envelope:
    result = {
        "target": target,
        "status": state,
        "components": list(components),
        "checked_at": write_instant(time.time()),
    }
    return Envelope(result if expires is None else {**result, "expires_at": write_instant(expires)})
