"""MONITOR, CHECK and RETRY: subscriptions to changes, states, and repeated calls (Tier 2 8.3, 8.5, 8.9)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import quantiles
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.participant import CHECKS
from bespeak.contract.schema.validation import refuse_input
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.orchestrate import LISTS
from bespeak.extensions.messages.recipients import verify_callback
from bespeak.extensions.monitors.health import OK, UPSTREAM, WITHIN, Sample, examine, examine_upstreams, judge
from bespeak.extensions.monitors.monitors import EVENTS, Monitor, MonitorTarget, check_threshold, describe, parse_target
from bespeak.extensions.monitors.retries import MOST_ATTEMPTS, KeptCall, Retries, restored
from bespeak.extensions.monitors.store import ACTIVE, AGENT, ENDPOINT, FAILED, MONITOR, SERVER, SUCCEEDED, PutMonitor
from bespeak.extensions.workflows import states
from bespeak.extensions.workflows.engine import Workflow
from bespeak.extensions.workflows.procedures import find_procedure
from bespeak.extensions.workflows.spec import StepSpec, outcome_of, receipt_steps, repeat_commands
from bespeak.extensions.workflows.start import find_run, find_uncallable, read_steps
from bespeak.extensions.workflows.store import WORKFLOW
from bespeak.extensions.workflows.turn import ATTEMPTS
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import ONE_CALL, UNITS, format_amount
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.bindings.composition import CompositionBinding
from bespeak.runtime.bindings.participant import METHOD as RUN
from bespeak.runtime.bindings.participant import path_of
from bespeak.runtime.call import Call, RoutedCall, find_visible, sees
from bespeak.runtime.composition.plan import StepPlan
from bespeak.runtime.composition.values import Scope, UnmetError
from bespeak.runtime.extension import PRICE
from bespeak.runtime.gates import find_route
from bespeak.runtime.handling import (
    RefusedError,
    ask_service,
    effects,
    find_own,
    handler,
    invalid,
    new_id,
    refusal,
    stateful,
    to_json,
)
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.route import Route
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
    owner, data = call.agent_id or "", to_json(started)
    record = PutRecord(new_id(MONITOR), MONITOR, owner, ACTIVE, data, delay=delay, most=MOST_MONITORS)
    result: dict[str, Any] = {"subscription_id": record.record_id, "target": describe(target)}
    result |= {"events": list(started.events), "interval": started.interval}
    if end is not None:
        result["expires_at"] = write_instant(end)
    full = _MONITOR.refuse("too-many-monitors", f"The agent has {MOST_MONITORS} monitors, the maximum.")
    return effects([PutMonitor(record, target.kind, target.name, started.version)], lambda _: result, full)


async def _read(call: RoutedCall) -> Monitor:
    given, agent_id = call.input, call.agent_id or ""
    for member in ("target", "threshold"):
        if len(msgspec.json.encode(given.get(member))) > MOST_TARGET:
            raise _wrong(member, f"must not be larger than {MOST_TARGET // 1024} KiB")
    target = parse_target(given["target"], call.routes.service.identity.server_id)
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
    target, server_id = call.input["target"], call.routes.service.identity.server_id
    deep = call.input.get("depth", "shallow") == "deep"
    wanted = parse_target(target.removeprefix(UPSTREAM) if " /" in target else target, server_id)
    assert isinstance(wanted, MonitorTarget), "every text is a target"
    if wanted.kind == AGENT:
        return _agent(call, wanted.name)
    try:
        if wanted.kind == SERVER:
            # Whoever answers is reachable, which is all that a shallow check asks.
            found = await examine(call.server) if deep else [{"name": "server", "status": OK}]
            return _report(target, judge(found), found)
        if wanted.kind == ENDPOINT:
            async with asyncio.timeout(WITHIN):
                return await _endpoint(call, target, wanted)
    except TimeoutError:
        raise refusal(_CHECK, "timeout", f"The check took longer than {WITHIN:g} s.", target=target) from None
    return await _owned(call, target)


async def _endpoint(call: RoutedCall, target: str, wanted: MonitorTarget) -> Envelope:
    """Tell whether an endpoint is there, and whether its upstream can be reached. A URI names a path only."""
    methods = (wanted.method, *sorted(call.routes.allowed)) if target.startswith("agtp:") else (wanted.method,)
    found = next(filter(None, (find_visible(call, method, wanted.name) for method in methods)), None)
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
            told = _report(target, thing.state, [_component(thing.kind, thing.state)])
            return Envelope({**told.result, "details": thing.output})
        message = f"This agent has nothing with the id {target[:80]!r}; `server` checks this server."
        raise refusal(_CHECK, "target-not-found", message)
    try:
        content = _decode(record.data)
    except msgspec.MsgspecError:  # a record of an extension may have any content
        content = _RecordContent()
    if record.kind == WORKFLOW:
        return _report_run(await call.server.part("workflows").find(record.record_id), content.expires)
    report = _report(target, record.state, [_component(record.kind, record.state, content.ended)], content.expires)
    describe = call.server.kinds[record.kind].describe
    details = {} if describe is None else {"details": await describe(call.server, record)}
    return Envelope({**report.result, **details})


def _report_run(workflow: Workflow, expires: float | None) -> Envelope:
    """Tell what became of a workflow and of each of its steps, with their outputs and errors."""
    steps, record = receipt_steps(workflow), workflow.record
    named = ((step.get("name") or f"step {step['step']}", step) for step in steps)
    components = [_component(name, step["status"], step.get("error")) for name, step in named]
    report = _report(record.record_id, record.state, components, expires)
    task_id = workflow.spec.authority.headers.get(TASK_ID)
    told = {} if task_id is None else {"task_id": task_id}
    return Envelope({**report.result, **told, **outcome_of(workflow), "steps": steps})


def _component(name: str, state: str, error: _Ended | msgspec.Raw | None = None) -> dict[str, Any]:
    ended = msgspec.json.decode(error, type=_Ended) if isinstance(error, msgspec.Raw) else error
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
        message = f"This agent has no call with the Task-ID {task_id[:80]!r} that can be repeated; "
        raise refusal(_RETRY, "task-not-found", f"{message}call the endpoint again.")
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
    good = "suppressed" if done.replayed else "completed"
    return _tell(done, good if status.is_success(done.status) else "failed")


async def _retry_workflow(call: RoutedCall, workflow_id: str) -> Effects | Envelope:
    workflow: Workflow = await call.server.part("workflows").find(workflow_id, call.agent_id)
    attempt = max((row.attempt for row in workflow.rows), default=1)
    result = {"retry_id": new_id("retry"), "original_task_id": workflow_id, "attempt": attempt + 1}
    if workflow.record.state == states.COMPLETED:
        return Envelope({**result, "attempt": attempt, "status": "suppressed"})
    if workflow.record.state != states.FAILED:
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
    result: dict[str, Any] = {"retry_id": new_id("retry"), "original_task_id": kept.task_id}
    result |= {"attempt": attempt or kept.attempts, "status": state}
    if state != "scheduled":
        result |= {"code": kept.status, "output": kept.answer}
    return Envelope(result, status.ACCEPTED if state == "scheduled" else status.OK)


_QUOTE: Final = STANDARD["QUOTE"]
_DECLARED: Final = 0.5  # confidence in a declared cost: it is the most a call costs, not what this one will
_HALF: Final = 8  # earlier calls that make a confidence of one half
_MOST: Final = 0.95
_CALLS: Final = "calls"
_SECONDS: Final = "compute-seconds"
_NO_AMOUNT: Final = {"amount": {"value": 0, "currency": "EUR"}}  # limit of a purchase whose price is asked for


class _Range(NamedTuple):
    fewest: Decimal
    expected: Decimal
    most: Decimal

    def __add__(self, other: Any) -> _Range:
        return _Range(*(one + another for one, another in zip(self, other, strict=True)))


class _QuotedCall(NamedTuple):
    route: Route
    given: Mapping[str, Any]  # input as far as it is known before the call
    fewest: int = 1
    expected: int = 1
    most: int = 1
    price: Mapping[str, Decimal] = {}  # exact price by currency, if a seller has told it

    def times(self, other: _QuotedCall) -> _QuotedCall:
        """Return the call as often as another one makes it."""
        counts = (self.fewest * other.fewest, self.expected * other.expected, self.most * other.most)
        return _QuotedCall(self.route, self.given, *counts)


class _Estimate(NamedTuple):
    ranges: dict[str, _Range]
    is_declared: bool
    samples: int

    @property
    def confidence(self) -> float:
        return max(_DECLARED if self.is_declared else 0.0, min(self.samples / (self.samples + _HALF), _MOST))


@handler
async def quote(call: RoutedCall) -> Envelope:
    given = call.input
    found = await _ask_price(call, _find(call, given["method"], given.get("path"), given["parameters"]))
    route = found.route
    made = await _parts(call, found)
    parts = made if made == [found] else [await _ask_price(call, part, known=False) for part in made]
    estimate = _estimate(call, found, parts)
    wanted = given.get("budget_units", list(estimate.ranges))
    unknown = [unit for unit in wanted if unit not in estimate.ranges and unit not in UNITS]
    if unknown:
        units = list(dict.fromkeys((*UNITS, *estimate.ranges)))
        message = f"{unknown[0][:40]!r} is not a unit of estimates; write one of {', '.join(units)}."
        raise refusal(_QUOTE, "invalid-parameters", message, field="/budget_units", units=units)
    ranges = {unit: one for unit, one in estimate.ranges.items() if unit in wanted}
    # The answer always has an estimate: a unit that nothing is known of does not cost nothing.
    ranges = ranges or {_CALLS: estimate.ranges[_CALLS]}
    told = [unit for unit in ranges if unit in UNITS]
    basis = ("both" if estimate.samples else "declared") if estimate.is_declared else "measured"
    return Envelope(
        {
            "method": route.endpoint.method,
            "path": route.endpoint.path,
            "estimated_cost": {
                unit.replace("-", "_"): dict(zip(("min", "expected", "max"), map(_number, one), strict=True))
                for unit, one in ranges.items()
            },
            "confidence": 1.0 if found.price else round(estimate.confidence, 2),
            "basis": "price" if found.price else basis if estimate.is_declared or estimate.samples else "none",
            "samples": estimate.samples,
            "unestimated": [unit for unit in wanted if unit not in estimate.ranges],
        },
        headers=(("Cost-Estimate", " ".join(f"{unit}={_written(unit, ranges[unit])}" for unit in told)),),
    )


def _find(call: RoutedCall, method: str, path: str | None, parameters: dict[str, Any]) -> _QuotedCall:
    """Find the endpoint of a call, and check its input. Without a path, the parameters tell which one is meant."""
    found = _route(call, method, path or "/")
    if isinstance(found, Refused) and path is None:
        routes = call.routes.steps.values() if method in call.routes.allowed else ()
        listed = [route for route in routes if route.endpoint.method == method and route.endpoint.is_listed]
        others = [route for route in listed if sees(call, route)]
        fitting = [route for route in others if route.input.is_valid(parameters)] or others
        if len(fitting) > 1:
            paths = [route.endpoint.path for route in fitting[:10]]
            message = f"{method} is offered on {len(fitting)} paths that fit; name one in `path`: {', '.join(paths)}."
            raise refusal(_QUOTE, "invalid-parameters", message, method=method, paths=paths)
        if fitting:
            found = _QuotedCall(fitting[0], parameters)
    if isinstance(found, Refused):
        raise refusal(_QUOTE, "endpoint-not-found", found.message, method=method, path=path or "/")
    # Who asks for the price cannot name it.
    known = {**(_NO_AMOUNT if _finds_price(call, found) else {}), **found.given, **parameters}
    if not found.route.input.is_valid(known):
        violations = refuse_input(method, found.route.endpoint.path, found.route.input.violations(known))
        raise refusal(_QUOTE, "invalid-parameters", violations.message, **violations.details)
    return _QuotedCall(found.route, known)


def _route(call: RoutedCall, method: str, path: str) -> _QuotedCall | Refused:
    """Find what the caller would reach, with the values of its path."""
    asked = Call(msgspec.structs.replace(call.request, method=method, path=path, body=b""), call.server)
    asked.principal = call.principal
    own = call.server.own_endpoints
    found: RoutedCall | Refused | None = None if own is None else own.find_own(asked)
    if found is None:
        found = find_route(asked)
    if isinstance(found, Refused):
        return found
    return _QuotedCall(found.route, found.route.fill_captures({}, found.captures))


def _finds_price(call: RoutedCall, asked: _QuotedCall) -> bool:
    return asked.route.builtin and PRICE + asked.route.method in call.server.hooks


async def _ask_price(call: RoutedCall, asked: _QuotedCall, *, known: bool = True) -> _QuotedCall:
    """Add the price of a call to it, if a seller tells one. The input of a step may not be known yet."""
    if not _finds_price(call, asked):
        return asked
    try:
        return asked._replace(price=await call.server.hooks[PRICE + asked.route.method](call, asked.given))
    except RefusedError as error:
        refused = error.refused
        if not known:
            return asked
        if refused.status >= status.SERVER_ERROR:
            raise
        raise refusal(_QUOTE, "invalid-parameters", refused.message, **refused.details) from None


async def _parts(call: RoutedCall, asked: _QuotedCall) -> list[_QuotedCall]:
    """Return the calls that a call makes, of which it is the only one if it makes no others."""
    route, given = asked.route, asked.given
    if isinstance(route.call, CompositionBinding):
        return _flatten(call, asked)
    if not route.builtin or route.method not in (*LISTS, RUN):
        return [asked]
    if route.method == RUN:
        try:
            steps = (await find_procedure(call, given["procedure_id"])).steps
        except RefusedError as error:
            raise refusal(_QUOTE, "endpoint-not-found", error.refused.message, method=RUN, path="/") from None
    else:
        read = read_steps(given[LISTS[route.method]], LISTS[route.method])
        if isinstance(read, Fault):
            raise invalid("parameters", f"has steps that are not valid: {read.message}")
        steps = read
        wrong = find_uncallable(call, steps)
        if wrong is not None:
            raise refusal(_QUOTE, "endpoint-not-found", wrong.message, **wrong.place)
    return list(_calls(call, steps, given, given.get("on_failure"), (1, 1, 1)))


def _calls(
    call: RoutedCall, steps: Iterable[StepSpec], given: Mapping[str, Any], policy: str | None, times: Sequence[int]
) -> Iterator[_QuotedCall]:
    """Yield the calls of steps, those of lists inside them too; `times` is how often each list runs."""
    for step in steps:
        fewest, expected, most = times
        nested, each = step.nested, step.for_each
        fewest = 0 if step.when else fewest
        if each is not None:
            # A list of an earlier step is not known yet.
            sizes = (len(each.items),) * 3 if isinstance(each.items, list) else (0, 1, each.max_items)
            fewest, expected, most = fewest * sizes[0], expected * sizes[1], most * sizes[2]
        if nested is not None:
            inner = nested.on_failure or policy
            yield from _calls(call, nested.steps, given, inner, (fewest, expected, most))
        elif step.method:
            found = _route(call, step.method, step.sought) if step.procedure is None else None
            if step.procedure is not None:
                found = _QuotedCall(call.routes.steps[RUN, path_of(step.procedure)], given.get("input", {}))
            assert isinstance(found, _QuotedCall), "it was found before"
            retries = ATTEMPTS if (step.on_failure or policy) == "retry" else 1
            counts = (fewest, expected, most * (step.retry.attempts if step.retry else retries))
            yield from _flatten(call, _QuotedCall(found.route, {**found.given, **step.parameters}, *counts))


def _flatten(call: RoutedCall, part: _QuotedCall) -> list[_QuotedCall]:
    """Return the calls of a recipe, and of the recipes that it calls; any other call is one itself."""
    if not isinstance(part.route.call, CompositionBinding):
        return [part]
    found: list[_QuotedCall] = []
    for step in part.route.call.plan.steps:
        route = call.routes.steps.get(step.key)
        if route is not None:
            found += _flatten(call, _QuotedCall(route, {}, *_counts(step, part.given)).times(part))
    return found


def _counts(step: StepPlan, given: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return how often a step is called: at least, probably and at most."""
    fewest = expected = most = 1
    if step.for_each is not None:
        try:
            items = step.for_each(Scope(dict(given)), None)
        except UnmetError:
            items = None
        # A list of an earlier step is not known yet.
        fewest, expected, most = (len(items),) * 3 if isinstance(items, list) else (0, 1, step.max_items)
    most *= 1 if step.pages is None else step.pages.most
    most *= 1 if step.retry is None else step.retry.attempts
    return (0 if step.when else fewest, expected, most)


def _estimate(call: RoutedCall, asked: _QuotedCall, parts: list[_QuotedCall]) -> _Estimate:
    own = _measure(call, asked)
    if parts == [asked]:
        return own
    made = [_measure(call, part) for part in parts]
    ranges: dict[str, _Range] = {}
    for one in made:
        for unit, amount in one.ranges.items():
            ranges[unit] = ranges[unit] + amount if unit in ranges else amount
    is_measured = all(one.samples for one in made)
    # The time of a recipe has been measured as a whole; that of CHAIN depends on its steps.
    if not asked.route.builtin and own.samples:
        ranges[_SECONDS] = own.ranges[_SECONDS]
    elif not is_measured:
        ranges.pop(_SECONDS, None)
    # Budget-Limit is compared with the cost of the call and with that of its steps.
    for unit in asked.route.endpoint.cost.amounts if asked.route.endpoint.cost else ():
        ranges[unit] = max(ranges.get(unit, own.ranges[unit]), own.ranges[unit], key=lambda one: one.most)
    samples = own.samples if not asked.route.builtin else min((one.samples for one in made), default=0)
    return _Estimate(ranges, own.is_declared or any(one.is_declared for one in made), samples)


def _measure(call: RoutedCall, part: _QuotedCall) -> _Estimate:
    """Estimate a call as often as it is made: declared costs are bounds, times are percentiles 5 to 95."""
    endpoint = part.route.endpoint
    declared = endpoint.cost.amounts if endpoint.cost else {}
    fewest, expected, most = map(Decimal, part[2:5])
    ranges = {unit: _Range(Decimal(), amount * expected, amount * most) for unit, amount in declared.items()}
    calls = declared.get(_CALLS, ONE_CALL)
    ranges[_CALLS] = _Range(calls * fewest, calls * expected, calls * most)
    ranges |= {unit: _Range(one * fewest, one * expected, one * most) for unit, one in part.price.items()}
    samples = call.server.part("costs").find(endpoint.key, len(msgspec.json.encode(part.given)))
    if samples:
        low, middle, high = quantile_times(samples)
        ranges[_SECONDS] = _Range(low * fewest, middle * expected, high * most)
    return _Estimate(ranges, bool(declared or part.price), len(samples))


def quantile_times(samples: Sequence[Sample]) -> Iterable[Decimal]:
    """Return the percentiles 5, 50 and 95 of what earlier calls took."""
    times = sorted(sample.seconds for sample in samples)
    # The other kind of quantiles goes beyond what was measured, for two times even below zero.
    cuts = quantiles(times, n=20, method="inclusive") if len(times) > 1 else times * 19
    return (Decimal(repr(round(cuts[at], 6))) for at in (0, 9, -1))


def _number(amount: Decimal) -> float:
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def _written(unit: str, amount: _Range) -> str:
    expected = amount.expected
    return format_amount(unit, Decimal(int(expected)) if expected == expected.to_integral_value() else expected)
