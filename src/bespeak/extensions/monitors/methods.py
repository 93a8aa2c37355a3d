"""MONITOR, CHECK and RETRY: subscriptions to changes, states, and repeated calls (Tier 2 8.3, 8.5, 8.9)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.participant import CHECKS
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.recipients import verify_callback
from bespeak.extensions.monitors.health import OK, UPSTREAM, WITHIN, examine, examine_upstreams, judge
from bespeak.extensions.monitors.monitors import describe
from bespeak.extensions.monitors.retries import MOST_ATTEMPTS, KeptCall, Retries, restored
from bespeak.extensions.monitors.store import ACTIVE, FAILED, MONITOR, SUCCEEDED, PutMonitor
from bespeak.extensions.monitors.target import (
    EVENTS,
    SERVER,
    Monitor,
    MonitorTarget,
    check_threshold,
    encode,
    parse_target,
)
from bespeak.extensions.workflows.engine import Workflow, outcome_of, receipt_steps
from bespeak.extensions.workflows.spec import repeat_commands
from bespeak.extensions.workflows.start import find_run
from bespeak.extensions.workflows.store import COMPLETED, WORKFLOW
from bespeak.extensions.workflows.store import FAILED as WORKFLOW_FAILED
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, find_visible
from bespeak.runtime.handling import RefusedError, ask_service, effects, find_own, handler, new_id, refusal, stateful
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import PutRecord

INBOX: Final = "inbox"  # callback that means the inbox of the caller, beside its Agent-ID
MOST_MONITORS: Final = 100  # monitors of one agent that exist or can still be looked up
LEAST_INTERVAL: Final = 5.0
INTERVAL: Final = 60.0  # seconds between two looks, if the caller does not say
MOST_TARGET: Final = 8 * 1024  # maximum bytes of a target or a threshold
_MONITOR: Final = STANDARD["MONITOR"]


@stateful
async def monitor(call: RoutedCall) -> Effects:
    """Answer MONITOR /. The target is looked at once, and the callback has agreed, before the subscription exists."""
    wanted = await _read(call)
    found = await call.server.part("monitors").observe(call, wanted)
    if isinstance(found, Refused):
        known = next((error for error in _MONITOR.errors if error.name == found.code), None)
        raise RefusedError(found if known is None else known.refuse(found.message, **found.details))
    if wanted.callback != call.agent_id:
        await verify_callback(call, wanted.callback)
    started: Monitor = found[0]
    end, target = started.authority.expires, started.target
    delay = started.authority.within(call.server.principals, started.interval)
    owner, data = call.agent_id or "", encode(started)
    record = PutRecord(new_id(MONITOR), MONITOR, owner, ACTIVE, data, delay=delay, most=MOST_MONITORS)
    result = {
        "subscription_id": record.record_id,
        "target": describe(target),
        "events": list(started.events),
        "interval": started.interval,
    }
    if end is not None:
        result["expires_at"] = write_instant(end)
    full = _MONITOR.refuse("too-many-monitors", f"The agent has {MOST_MONITORS} monitors, the maximum.")
    return effects([PutMonitor(record, target.kind, target.name, started.version)], lambda _: result, full)


async def _read(call: RoutedCall) -> Monitor:
    """Read the input into a monitor that has not looked yet."""
    given, agent_id = call.input, call.agent_id or ""
    for member in ("target", "threshold"):
        if len(msgspec.json.encode(given.get(member))) > MOST_TARGET:
            raise _wrong(member, f"must not be larger than {MOST_TARGET // 1024} KiB")
    target = parse_target(given["target"], (SERVER, "self", call.routes.service.identity.server_id))
    if not isinstance(target, MonitorTarget):
        raise _wrong("target", target)
    events = tuple(dict.fromkeys(given["events"]))
    unknown = next((event for event in events if event not in EVENTS[target.kind]), None)
    if unknown is not None:
        message = f"A target of this kind has no event {unknown[:80]!r}; it has {', '.join(EVENTS[target.kind])}."
        raise refusal(_MONITOR, "unknown-event", message, field="/events")
    fault = await check_threshold(given.get("threshold"), events, call.server.expressions, agent_id)
    if fault is not None:
        raise _wrong("threshold", fault)
    interval = float(given.get("interval", INTERVAL))
    if interval < LEAST_INTERVAL:
        raise _wrong("interval", f"must be at least {LEAST_INTERVAL:g} s; got {interval:g}")
    callback = given["callback"]
    return Monitor(
        target=target,
        events=events,
        callback=agent_id if callback == INBOX else callback,
        interval=interval,
        authority=Authority.of(call.principal, call.request),
        threshold=given.get("threshold"),
    )


def _wrong(member: str, fault: str) -> RefusedError:
    return refusal(_MONITOR, f"invalid-{member}", f"`{member}` {fault}.", field=f"/{member}")


_CHECK: Final = STANDARD["CHECK"]
_SERVER: Final = ("server", "self")


class _Ended(msgspec.Struct):
    message: str = ""


class _RecordAuthority(msgspec.Struct):
    expires: float | None = None


class _RecordContent(msgspec.Struct):
    """What records of every kind say in the same way: why they ended, and when their authority ends."""

    ended: _Ended | None = None
    authority: _RecordAuthority | None = None

    @property
    def expires(self) -> float | None:
        """End of the authority; None if it has none."""
        return None if self.authority is None else self.authority.expires


_decode = msgspec.json.Decoder(_RecordContent).decode


@handler
async def check(call: RoutedCall) -> Envelope:
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
        raise refusal(_CHECK, "timeout", f"The check took longer than {WITHIN:g} s.", target=target) from None
    return await _owned(call, target)


async def _endpoint(call: RoutedCall, target: str, method: str, path: str) -> Envelope:
    """Tell whether an endpoint is there, and whether its upstream can be reached."""
    found = find_visible(call, method, path)
    if found is None:
        raise refusal(_CHECK, "target-not-found", f"There is no endpoint {target[:80]!r} here.")
    components = [{"name": str(found[0].endpoint), "status": OK}, *await examine_upstreams([found[0].endpoint])]
    return _report(target, judge(components), components)


def _agent(call: RoutedCall, agent_id: str) -> Envelope:
    agent = call.server.agents.get(agent_id)
    public = call.routes.service.agent_disclosure == "public"
    if agent is None or not (public or call.agent_id == agent_id):
        raise refusal(_CHECK, "target-not-found", "No agent with this id is known here.")
    return _report(agent_id, agent.status, [{"name": agent.name, "status": agent.status}])


async def _owned(call: RoutedCall, target: str) -> Envelope:
    """Tell the state of a record of the caller, and what became of the steps of a workflow."""
    known = call.server.store is not None and call.agent_id is not None
    record = await find_own(call, call.server.checkable, target) if known else None
    named = None if record is not None or not known else await find_run(call, target)
    if named is not None:
        record = await find_own(call, (WORKFLOW,), named)
    if record is None:
        thing = await ask_service(call, CHECKS, target, call.input)
        if thing is not None:
            told = _report(target, thing.state, [_component(thing.kind, thing.state, None)])
            return Envelope({**told.result, "details": thing.output})
        message = f"This agent has nothing with the id {target[:80]!r}; `server` checks this server."
        raise refusal(_CHECK, "target-not-found", message)
    try:
        content = _decode(record.data)
    except msgspec.MsgspecError:  # a record of an extension may have any content
        content = _RecordContent()
    components: Sequence[dict[str, Any]] = [_component(record.kind, record.state, content.ended)]
    if record.kind == WORKFLOW:
        return _report_run(await call.server.part("workflows").find(record.record_id), content.expires)
    report = _report(target, record.state, components, content.expires)
    describe = call.server.kinds[record.kind].describe
    if describe is None:
        return report
    return Envelope({**report.result, "details": await describe(call.server, record)})


def _report_run(workflow: Workflow, expires: float | None) -> Envelope:
    """Tell what became of a workflow and of each of its steps, with their outputs and errors."""
    steps, record = receipt_steps(workflow), workflow.record
    components = [
        _component(step.get("name") or f"step {step['step']}", step["status"], _decode_error(step.get("error")))
        for step in steps
    ]
    report = _report(record.record_id, record.state, components, expires)
    task_id = workflow.spec.authority.headers.get(TASK_ID)
    named = {} if task_id is None else {"task_id": task_id}
    return Envelope({**report.result, **named, **outcome_of(workflow), "steps": steps})


def _decode_error(raw: msgspec.Raw | None) -> _Ended | None:
    return None if raw is None else msgspec.json.decode(raw, type=_Ended)


def _component(name: str, state: str, ended: _Ended | None) -> dict[str, Any]:
    made = {"name": name, "status": state}
    return made if ended is None or not ended.message else {**made, "message": ended.message}


def _report(target: str, state: str, components: Sequence[dict[str, Any]], expires: float | None = None) -> Envelope:
    checked_at = write_instant(time.time())
    result = {"target": target, "status": state, "components": list(components), "checked_at": checked_at}
    return Envelope(result if expires is None else {**result, "expires_at": write_instant(expires)})


_RETRY: Final = STANDARD["RETRY"]


@stateful
async def retry(call: RoutedCall) -> Effects | Envelope:
    """Answer RETRY /. The call is judged by every gate again, with the authority that the caller has now."""
    given, agent_id = call.input, call.agent_id or ""
    task_id: str = given["original_task_id"]
    retries: Retries | None = call.server.part("retries")
    found = None if retries is None else await retries.find(agent_id, task_id)
    workflow_id = await find_run(call, task_id) if found is None else None
    if workflow_id is not None:
        return await _retry_workflow(call, workflow_id)
    if retries is None or found is None:
        raise _not_found(task_id)
    record, kept = found
    if record.state == SUCCEEDED:
        return _tell(kept, "suppressed")
    if record.state != FAILED:
        raise refusal(_RETRY, "task-running", f"The task is {record.state}; its outcome is not known yet.")
    most = min(given.get("max_attempts", MOST_ATTEMPTS), MOST_ATTEMPTS)
    if kept.attempts >= most:
        message = f"The task has been tried {kept.attempts} times, and at most {most} attempts are allowed."
        raise refusal(_RETRY, "attempts-exhausted", message, attempts=kept.attempts)
    delay, running = given.get("delay"), _RETRY.refuse("task-running", "The task is being repeated already.")
    if delay:
        # Later, too, it is repeated with no more authority than the caller has now.
        authority = Authority.of(call.principal, call.request)
        kept = msgspec.structs.replace(kept, authority=authority, delay=delay, max_attempts=given.get("max_attempts"))
        later = _tell(kept, "scheduled", attempt=kept.attempts + 1)
        return effects([retries.schedule(record, kept, delay)], lambda _: later, running)
    kept = msgspec.structs.replace(kept, delay=None, max_attempts=None)  # the caller waits for this one
    done = await retries.repeat(record, kept, restored(kept, call, call.request.connection))
    if done is None:
        raise RefusedError(running)
    if not status.is_success(done.status):
        return _tell(done, "failed")
    return _tell(done, "suppressed" if done.replayed else "completed")


async def _retry_workflow(call: RoutedCall, workflow_id: str) -> Effects | Envelope:
    workflow: Workflow = await call.server.part("workflows").find(workflow_id, call.agent_id)
    attempt = max((row.attempt for row in workflow.rows), default=1)
    result = {"retry_id": new_id("retry"), "original_task_id": workflow_id, "attempt": attempt + 1}
    if workflow.record.state == COMPLETED:
        return Envelope({**result, "attempt": attempt, "status": "suppressed"})
    if workflow.record.state != WORKFLOW_FAILED:
        raise refusal(_RETRY, "task-running", f"The workflow is {workflow.record.state}.")
    if attempt >= min(call.input.get("max_attempts", MOST_ATTEMPTS), MOST_ATTEMPTS):
        message = f"A step of the workflow has been tried {attempt} times, as often as allowed."
        raise refusal(_RETRY, "attempts-exhausted", message, attempts=attempt)
    authority = workflow.spec.authority.renew(call.principal, call.request)
    commands = repeat_commands(workflow.record, workflow.rows, call.input.get("delay", 0.0), authority)
    if isinstance(commands, str):
        raise refusal(_RETRY, "attempts-exhausted", f"{commands}; begin it anew.")
    running = _RETRY.refuse("task-running", "The workflow is being repeated already.")
    return effects(commands, lambda _: Envelope({**result, "status": "scheduled"}, status.ACCEPTED), running)


def _tell(kept: KeptCall, state: str, *, attempt: int | None = None) -> Envelope:
    result: dict[str, Any] = {
        "retry_id": new_id("retry"),
        "original_task_id": kept.task_id,
        "attempt": attempt or kept.attempts,
        "status": state,
    }
    if state != "scheduled":
        result |= {"code": kept.status, "output": kept.answer}
    return Envelope(result, status.ACCEPTED if state == "scheduled" else status.OK)


def _not_found(task_id: str) -> RefusedError:
    message = f"This agent has no call with the Task-ID {task_id[:80]!r} that can be repeated; call the endpoint again."
    return refusal(_RETRY, "task-not-found", message)
