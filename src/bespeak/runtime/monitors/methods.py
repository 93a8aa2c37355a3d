"""MONITOR, CHECK and RETRY: subscriptions to changes, states, and repeated calls (Tier 2 8.3, 8.5, 8.9)."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, find_visible, refuse_without_needs
from bespeak.runtime.entities.methods_cancel import CANCELS
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.messages.message import BROADCAST, NOTIFICATION
from bespeak.runtime.messages.methods_send import DELIVERY
from bespeak.runtime.messages.recipients import verify_callback
from bespeak.runtime.monitors.conditions import check_threshold
from bespeak.runtime.monitors.health import OK, UPSTREAM, WITHIN, examine, examine_upstreams, judge
from bespeak.runtime.monitors.monitors import Monitors, describe
from bespeak.runtime.monitors.retries import MOST_ATTEMPTS, KeptCall, Retries, restored
from bespeak.runtime.monitors.target import EVENTS, SERVER, Monitor, Target, encode, parse_target
from bespeak.runtime.workflows.engine import Workflow, receipt_steps
from bespeak.runtime.workflows.methods import is_workflow_id
from bespeak.runtime.workflows.spec import repeat_commands
from bespeak.state.store.commands.monitors import ACTIVE, FAILED, MONITOR, SUCCEEDED, monitor_key
from bespeak.state.store.commands.records import FindRecord, PutRecord, Record
from bespeak.state.store.commands.steps import COMPLETED, WORKFLOW
from bespeak.state.store.commands.steps import FAILED as WORKFLOW_FAILED
from bespeak.state.store.store import Conflict

OBSERVABLE: Final = tuple(kind for kind in CANCELS if kind != MONITOR)
"""Kinds of records that their owner can observe. A monitor of a monitor could be one of itself."""
INBOX: Final = "inbox"
"""Callback that means the inbox of the caller, beside its Agent-ID."""
MOST_MONITORS: Final = 100
"""Monitors of one agent that exist or can still be looked up."""
LEAST_INTERVAL: Final = 5.0
INTERVAL: Final = 60.0
"""Seconds between two looks, if the caller does not say."""
MOST_TARGET: Final = 8 * 1024
"""Maximum bytes of a target or a threshold."""
_MONITOR: Final = STANDARD["MONITOR"]


async def monitor(call: RoutedCall) -> Effects | Refused:
    """Answer MONITOR /. The target is looked at once, and the callback has agreed, before the subscription exists."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    wanted = await _read(call)
    if isinstance(wanted, Refused):
        return wanted
    monitors: Monitors = call.server.monitors
    found = await monitors.observe(call, wanted)
    if isinstance(found, Refused):
        known = next((error for error in _MONITOR.errors if error.name == found.code), None)
        return found if known is None else _MONITOR.refuse(found.code, found.message, **found.details)
    if wanted.callback != call.agent_id:
        refused = await verify_callback(call, wanted.callback)
        if refused is not None:
            return refused
    started, token = found[0], secrets.token_hex(16)
    command = PutRecord(
        f"monitor-{token}",
        MONITOR,
        call.agent_id or "",
        ACTIVE,
        encode(started),
        monitor_key(token, started.target.mark, started.version),
        delay=started.authority.within(call.server.principals, started.interval),
        most=MOST_MONITORS,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _MONITOR.refuse("too-many-monitors", f"The agent has {MOST_MONITORS} monitors, the maximum.")
        result = {
            "subscription_id": command.record_id,
            "target": describe(started.target),
            "events": list(started.events),
            "interval": started.interval,
        }
        end = started.authority.expires
        return Envelope(result if end is None else {**result, "expires_at": write_instant(end)})

    return Effects((command,), tell)


async def _read(call: RoutedCall) -> Monitor | Refused:
    """Read the input into a monitor that has not looked yet."""
    given, agent_id = call.input, call.agent_id or ""
    for member in ("target", "threshold"):
        if len(msgspec.json.encode(given.get(member))) > MOST_TARGET:
            message = f"`{member}` must not be larger than {MOST_TARGET // 1024} KiB."
            return _MONITOR.refuse("invalid-" + member, message, field=f"/{member}")
    target = parse_target(given["target"], (SERVER, "self", call.routes.service.identity.server_id))
    if not isinstance(target, Target):
        return _MONITOR.refuse("invalid-target", f"`target` {target}.", field="/target")
    events = tuple(dict.fromkeys(given["events"]))
    unknown = next((event for event in events if event not in EVENTS[target.kind]), None)
    if unknown is not None:
        message = f"A target of this kind has no event {unknown[:80]!r}; it has {', '.join(EVENTS[target.kind])}."
        return _MONITOR.refuse("unknown-event", message, field="/events")
    fault = await check_threshold(given.get("threshold"), events, call.server.expressions, agent_id)
    if fault is not None:
        return _MONITOR.refuse("invalid-threshold", f"`threshold` {fault}.", field="/threshold")
    interval = float(given.get("interval", INTERVAL))
    if interval < LEAST_INTERVAL:
        message = f"`interval` must be at least {LEAST_INTERVAL:g} s; got {interval:g}."
        return _MONITOR.refuse("invalid-interval", message, field="/interval")
    callback = given["callback"]
    return Monitor(
        target=target,
        events=events,
        callback=agent_id if callback == INBOX else callback,
        interval=interval,
        authority=Authority.of(call.principal, call.request),
        threshold=given.get("threshold"),
    )


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


_RETRY: Final = STANDARD["RETRY"]


async def retry(call: RoutedCall) -> Effects | Envelope | Refused:
    """Answer RETRY /. The call is judged by every gate again, with the authority that the caller has now."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given, agent_id = call.input, call.agent_id or ""
    task_id: str = given["original_task_id"]
    retries: Retries | None = call.server.retries
    found = None if retries is None else await retries.find(agent_id, task_id)
    if found is None and is_workflow_id(task_id):  # a Task-ID may look like the id of a workflow
        return await _retry_workflow(call, task_id)
    if retries is None or found is None:
        return _not_found(task_id)
    record, kept = found
    if record.state == SUCCEEDED:
        return _tell(kept, "suppressed")
    if record.state != FAILED:
        return _RETRY.refuse("task-running", f"The task is {record.state}; its outcome is not known yet.")
    most = min(given.get("max_attempts", MOST_ATTEMPTS), MOST_ATTEMPTS)
    if kept.attempts >= most:
        message = f"The task has been tried {kept.attempts} times, and at most {most} attempts are allowed."
        return _RETRY.refuse("attempts-exhausted", message, attempts=kept.attempts)
    if given.get("delay"):
        # Later, too, it is repeated with no more authority than the caller has now.
        kept = msgspec.structs.replace(kept, authority=Authority.of(call.principal, call.request))
        return _schedule(retries, record, kept, given["delay"], given.get("max_attempts"))
    kept = msgspec.structs.replace(kept, delay=None, max_attempts=None)  # the caller waits for this one
    done = await retries.repeat(record, kept, restored(kept, call, call.request.connection))
    if done is None:
        return _RETRY.refuse("task-running", "The task is being repeated already.")
    if not status.is_success(done.status):
        return _tell(done, "failed")
    return _tell(done, "suppressed" if done.replayed else "completed")


def _schedule(retries: Retries, record: Record, kept: KeptCall, delay: float, most: int | None) -> Effects:
    planned = msgspec.structs.replace(kept, delay=delay, max_attempts=most)

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _RETRY.refuse("task-running", "The task is being repeated already.")
        return _tell(planned, "scheduled", attempt=kept.attempts + 1)

    return Effects((retries.schedule(record, planned, delay),), tell)


async def _retry_workflow(call: RoutedCall, workflow_id: str) -> Effects | Envelope | Refused:
    workflow: Workflow | None = await call.server.workflows.find(workflow_id, call.agent_id)
    if workflow is None:
        return _not_found(workflow_id)
    attempt = max((row.attempt for row in workflow.rows), default=1)
    result = {"retry_id": _new_id(), "original_task_id": workflow_id, "attempt": attempt + 1}
    if workflow.record.state == COMPLETED:
        return Envelope({**result, "attempt": attempt, "status": "suppressed"})
    if workflow.record.state != WORKFLOW_FAILED:
        return _RETRY.refuse("task-running", f"The workflow is {workflow.record.state}.")
    if attempt >= min(call.input.get("max_attempts", MOST_ATTEMPTS), MOST_ATTEMPTS):
        message = f"A step of the workflow has been tried {attempt} times, as often as allowed."
        return _RETRY.refuse("attempts-exhausted", message, attempts=attempt)
    authority = workflow.spec.authority.renew(call.principal, call.request)
    commands = repeat_commands(workflow.record, workflow.rows, call.input.get("delay", 0.0), authority)
    if isinstance(commands, str):
        return _RETRY.refuse("attempts-exhausted", f"{commands}; begin it anew.")

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _RETRY.refuse("task-running", "The workflow is being repeated already.")
        return Envelope({**result, "status": "scheduled"}, status.ACCEPTED)

    return Effects(commands, tell)


def _tell(kept: KeptCall, state: str, *, attempt: int | None = None) -> Envelope:
    result: dict[str, Any] = {
        "retry_id": _new_id(),
        "original_task_id": kept.task_id,
        "attempt": attempt or kept.attempts,
        "status": state,
    }
    if state != "scheduled":
        result |= {"code": kept.status, "output": kept.answer}
    return Envelope(result, status.ACCEPTED if state == "scheduled" else status.OK)


def _new_id() -> str:
    return f"retry-{secrets.token_hex(16)}"


def _not_found(task_id: str) -> Refused:
    message = f"This agent has no call with the Task-ID {task_id[:80]!r} that can be repeated; call the endpoint again."
    return _RETRY.refuse("task-not-found", message)
