"""Routing of a work item: the candidates of ROUTE, and the criteria by which they are ranked."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.standard.definition import METHOD, NOT_LISTED, PATH
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.message import MOST_CONTENT, Message, put_messages
from bespeak.extensions.messages.posting import is_deliverable
from bespeak.extensions.messages.recipients import is_unlisted
from bespeak.extensions.monitors.monitors import find_fault, find_member, holds
from bespeak.extensions.workflows.methods import decode_body
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Fault
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, find_visible
from bespeak.runtime.composition.step import Steps
from bespeak.runtime.expressions.pool import ExpressionFault
from bespeak.runtime.handling import check_content, effects, finish_step, new_id, refusal, stateful
from bespeak.runtime.route import Route

AGENT: Final = "agent"
ENDPOINT: Final = "endpoint"
SERVICE: Final = "service"
MOST_CANDIDATES: Final = 64 * 1024  # maximum bytes of all candidates
_MEMBERS: Final = frozenset({"agent", "service", "method", "path", "attributes", "when"})
_LONGEST: Final = 1000
_METHOD: Final = re.compile(METHOD["pattern"])
_PATH: Final = re.compile(PATH["pattern"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCandidate:
    name: str  # Agent-ID, `METHOD /path`, or both with the address of a service
    kind: str
    method: str = ""
    path: str = ""
    address: str = ""  # address of another service
    declared: Mapping[str, Any]  # attributes that the caller gives it
    when: Mapping[str, Any]  # conditions on the payload, by path
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteHandler:
    candidate: RouteCandidate
    attributes: Mapping[str, Any]
    route: Route | None = None
    given: dict[str, Any] | None = None  # input of an endpoint here

    @property
    def key(self) -> tuple[str, str]:
        candidate = self.candidate
        if self.route is not None:
            return self.route.endpoint.key
        return candidate.method, f"{candidate.address}{candidate.path}" if candidate.address else candidate.name


def parse_candidate(written: Any, position: int = 0) -> RouteCandidate | str:
    """Read a candidate; return what is wrong with it as a text."""
    if isinstance(written, str):
        method, _, path = written.partition(" ")
        written = {"agent": written} if is_canonical_id(written) else {"method": method or "-", "path": path or "-"}
    unknown = written.keys() - _MEMBERS
    if unknown:
        return f"has the unknown member {min(unknown)[:40]!r}; it takes {', '.join(sorted(_MEMBERS))}"
    texts = {name: written[name] for name in ("agent", "service", "method", "path") if name in written}
    common = {"declared": written.get("attributes", {}), "when": written.get("when", {})}
    if not all(isinstance(text, str) and 0 < len(text) <= _LONGEST for text in texts.values()):
        return "must have texts of at most 1,000 characters as agent, service, method and path"
    if not all(isinstance(table, dict) for table in common.values()):
        return "must have objects as attributes and when"
    faults = [fault for condition in common["when"].values() if (fault := find_fault(condition))]
    return f"has a condition that cannot be tested: {faults[0]}" if faults else _read(texts, common, position)


def _read(texts: dict[str, str], common: dict[str, Any], position: int) -> RouteCandidate | str:
    common = {**common, "position": position}
    if "agent" in texts:
        if len(texts) > 1 or not is_canonical_id(texts["agent"]):
            return "names an agent, so it takes an Agent-ID of 64 digits and neither method, path nor service"
        return RouteCandidate(name=texts["agent"], kind=AGENT, **common)
    path = texts.get("path", "/")
    if "method" not in texts or not path.startswith("/"):
        return "is neither an Agent-ID nor METHOD /path"
    if _METHOD.fullmatch(texts["method"]) is None or _PATH.fullmatch(path) is None:
        return "has a method or a path that cannot be called"
    call = f"{texts['method']} {path}"
    address = texts.get("service", "")
    if not address:
        return RouteCandidate(name=call, kind=ENDPOINT, method=texts["method"], path=path, **common)
    if not address.startswith("agtp://"):
        return "names a service that is not written as agtp://host"
    called: dict[str, Any] = {"method": texts["method"], "path": path, "address": address}
    return RouteCandidate(name=f"{address} {call}", kind=SERVICE, **called, **common)


def find_handler(call: RoutedCall, candidate: RouteCandidate) -> RouteHandler | str:
    """Find what a candidate means; return why it cannot take the item as a text."""
    payload = call.input["payload"]
    for path, condition in candidate.when.items():
        if not holds(condition, find_member(payload, path)):
            return "the payload does not meet its conditions"
    if candidate.kind == AGENT:
        return _find_agent(call, candidate)
    if candidate.kind == SERVICE:
        known = {"kind": SERVICE, "method": candidate.method, "path": candidate.path, "service": candidate.address}
        return RouteHandler(candidate=candidate, attributes={**candidate.declared, **known})
    return _find_endpoint(call, candidate, payload)


def is_recursive(call: RoutedCall, candidate: RouteCandidate) -> bool:
    """Return True for a candidate that would pass the item on in turn: ROUTE, CHAIN and the like, here or elsewhere."""
    if candidate.kind == SERVICE:
        builtin = call.routes.router.find(candidate.method, "/")
        return candidate.path == "/" and builtin is not None and builtin[0].endpoint.passes_on
    found = find_visible(call, candidate.method, candidate.path) if candidate.kind == ENDPOINT else None
    return found is not None and (found[0].endpoint.passes_on or (found[0].builtin and found[0].composes))


def _find_agent(call: RoutedCall, candidate: RouteCandidate) -> RouteHandler | str:
    agent: Agent | None = call.server.agents.get(candidate.name)
    if agent is None and call.server.principals.requires_known:
        return "the agent is not registered here"
    if agent is not None and not agent.is_active:
        return "the agent is not active"
    known: dict[str, Any] = {"kind": AGENT}
    if agent is not None and (call.routes.service.agent_disclosure == "public" or agent.agent_id == call.agent_id):
        known |= {"name": agent.name, "trust_tier": agent.trust_tier, "trust_score": agent.trust_score}
        listed = agent.document.get("capabilities")
        known |= {} if listed is None else {"capability": listed}
    return RouteHandler(candidate=candidate, attributes={**candidate.declared, **known})


def _find_endpoint(call: RoutedCall, candidate: RouteCandidate, payload: Any) -> RouteHandler | str:
    found = find_visible(call, candidate.method, candidate.path)
    if found is None or candidate.method not in call.routes.allowed:
        return "there is no such endpoint"
    route, captures = found
    endpoint = route.endpoint
    if call.principal.scopes.missing(endpoint.required_scopes):
        return "the caller lacks its scopes"
    if not isinstance(payload, dict):
        return "the payload is not an object"
    given = route.fill_captures(payload, captures)
    if not route.input.is_valid(given):
        return "the payload does not fit its input schema"
    known = {"kind": ENDPOINT, "method": endpoint.method, "path": endpoint.path, "namespace": endpoint.namespace}
    known |= {"capability": endpoint.semantic.capability, "impact": endpoint.semantic.impact}
    return RouteHandler(candidate=candidate, attributes={**candidate.declared, **known}, route=route, given=given)


MOST_CRITERIA: Final = 16 * 1024  # maximum bytes of criteria
PREFERENCES: Final = ("load", "latency", "cost", "order")
COMPUTE_SECONDS: Final = "compute-seconds"  # unit of costs that this process has measured
_NAMES: Final = ("payload", "candidate")
_WITHIN: Final = 10.0  # seconds for the expressions of all candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    prefer: str = "load"
    unit: str = COMPUTE_SECONDS
    max_latency: float | None = None
    max_cost: float | None = None
    expression: str | None = None
    attributes: Mapping[str, Any]  # conditions on attributes of candidates, by path


@dataclass(frozen=True, slots=True)
class Ranked:
    """A handler that fits, with its score: the higher, the better."""

    handler: RouteHandler
    score: float
    running: int
    latency: float | None


async def read_criteria(call: RoutedCall) -> Criteria | str:
    """Read criteria; return what is wrong with them as a text."""
    given = dict(call.input["criteria"])
    if len(msgspec.json.encode(given)) > MOST_CRITERIA:
        return f"must not be larger than {MOST_CRITERIA // 1024} KiB"
    prefer, unit = given.pop("prefer", "load"), given.pop("cost_unit", COMPUTE_SECONDS)
    if prefer not in PREFERENCES:
        return f"prefer one of {', '.join(PREFERENCES)}; got {str(prefer)[:40]!r}"
    limits = {name: given.pop(name, None) for name in ("max_latency", "max_cost")}
    for name, limit in limits.items():
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 0):
            return f"must have a number of at least 0 as {name}"
    if not isinstance(unit, str):
        return "must have the name of a unit as cost_unit"
    expression = given.pop("expression", None)
    if expression is not None:
        if not isinstance(expression, str):
            return "must have a text as expression"
        fault = await call.server.expressions.check(expression, _NAMES, call.agent_id)
        if fault is not None:
            return f"have an expression that cannot be used: {fault}"
    for name, condition in given.items():
        fault = find_fault(condition)
        if fault is not None:
            return f"have a condition on {name[:40]!r} that cannot be tested: {fault}"
    return Criteria(prefer=prefer, unit=unit, expression=expression, attributes=given, **limits)


async def rank(call: RoutedCall, criteria: Criteria, handlers: list[RouteHandler]) -> list[Ranked] | Fault:
    """Return the handlers that fit, the best first; of two that are equally good, the first by name."""
    ranked = []
    try:
        async with asyncio.timeout(_WITHIN):
            for handler in handlers:
                found = await _judge(call, criteria, handler)
                if isinstance(found, ExpressionFault):
                    return Fault(f"the expression has no value for {handler.candidate.name[:80]}: {found.message}")
                if found is not None:
                    ranked.append(found)
    except TimeoutError:
        return Fault(f"the expression took longer than {_WITHIN:g} s for all candidates")
    return sorted(ranked, key=lambda one: (-one.score, one.handler.candidate.name))


async def _judge(call: RoutedCall, criteria: Criteria, handler: RouteHandler) -> Ranked | ExpressionFault | None:
    attributes = handler.attributes
    for path, condition in criteria.attributes.items():
        value = find_member(attributes, path)
        # Of a list, such as that of the capabilities of an agent, one is enough.
        if not any(holds(condition, one) for one in (value, *(value if isinstance(value, list) else ()))):
            return None
    statistics = call.server.part("statistics")
    running, latency = statistics.count_running(handler.key), statistics.find_latency(handler.key)
    cost = find_cost(call, handler, criteria.unit)
    if criteria.max_latency is not None and latency is not None and latency > criteria.max_latency:
        return None
    if criteria.max_cost is not None and (cost is None or cost > criteria.max_cost):
        return None
    took = latency or 0.0
    worse = {"load": running + took, "latency": took, "cost": cost, "order": float(handler.candidate.position)}
    worst = worse[criteria.prefer]
    score = 0.0 if worst is None else 1 / (1 + worst)
    if criteria.expression is not None:
        variables = {"payload": call.input["payload"], "candidate": dict(attributes)}
        found = await call.server.expressions.evaluate(criteria.expression, variables, call.agent_id)
        if isinstance(found, ExpressionFault):
            return found
        if found is False or not isinstance(found, bool | int | float):
            return None if found is False else ExpressionFault("it must be true, false or a number")
        score = score if found is True else float(found)
    return Ranked(handler, score, running, latency)


def find_cost(call: RoutedCall, handler: RouteHandler, unit: str) -> float | None:
    """Return what a call is expected to cost: as it is declared, or as it was measured; None if neither is known."""
    declared = handler.attributes.get("cost")
    if isinstance(declared, int | float) and not isinstance(declared, bool):
        return float(declared)
    route = handler.route
    if route is None:
        return None
    amounts = route.endpoint.cost.amounts if route.endpoint.cost else {}
    if unit in amounts:
        return float(amounts[unit])
    samples = call.server.part("costs").find(route.endpoint.key, len(msgspec.json.encode(handler.given)))
    return median(sample.seconds for sample in samples) if samples and unit == COMPUTE_SECONDS else None


NOTICE: Final = "routed"  # kind of the messages by which agents receive items
_ROUTE: Final = STANDARD["ROUTE"]
_UNREACHED: Final = frozenset({status.UNAVAILABLE, status.RATE_LIMITED})  # the handler has not taken the item
_MOST_TOLD: Final = 10  # candidates whose faults a refusal tells


@stateful
async def route(call: RoutedCall, steps: Steps) -> Effects | Envelope:
    """Answer ROUTE /. The item goes to the best handler that can be reached, else to the fallback."""
    criteria = await read_criteria(call)
    if isinstance(criteria, str):
        raise refusal(_ROUTE, "invalid-criteria", f"`criteria` {criteria}.", field="/criteria")
    candidates = _read_candidates(call)
    fallback = _read_fallback(call)
    found = [(candidate.name, find_handler(call, candidate)) for candidate in candidates]
    ranked = await rank(call, criteria, [one for _, one in found if isinstance(one, RouteHandler)])
    if isinstance(ranked, Fault):
        raise refusal(_ROUTE, "invalid-criteria", f"`criteria` cannot be used: {ranked.message}.", field="/criteria")
    for unreached, one in enumerate(ranked):
        outcome = await _hand_over(call, steps, one.handler, _explain(criteria, one, len(ranked), unreached), one.score)
        if outcome is not None:
            return outcome
    if fallback is not None:
        reason = f"The fallback: none of {len(candidates)} candidates fits." if not ranked else ""
        reason = reason or f"The fallback: {len(ranked)} of the candidates fit, but none of them could be reached."
        outcome = await _hand_over(call, steps, fallback, reason, None)
        if outcome is not None:
            return outcome
    if ranked or fallback is not None:
        raise refusal(_ROUTE, "handler-unavailable", "No handler that fits could be reached; try again later.")
    told = [(name, one if isinstance(one, str) else "it does not meet the criteria") for name, one in found]
    reasons = [{"candidate": name, "reason": reason} for name, reason in told[:_MOST_TOLD]]
    message = f"None of {len(candidates)} candidates fits, and there is no fallback."
    raise refusal(_ROUTE, "no-handler", message, candidates=reasons)


def _read_candidates(call: RoutedCall) -> list[RouteCandidate]:
    """Read the candidates; for a caller that names none, they are the published endpoints of this server."""
    written = call.input.get("candidates")
    if written is None:
        return [
            RouteCandidate(name=str(one), kind=ENDPOINT, method=one.method, path=one.path, declared={}, when={})
            for one in call.routes.endpoints.values()
            if one.is_listed and not one.passes_on and not one.builtin
        ]
    check_content(call.input, "candidates", MOST_CANDIDATES)
    return [_read_candidate(call, one, f"/candidates/{position}", position) for position, one in enumerate(written)]


def _read_fallback(call: RoutedCall) -> RouteHandler | None:
    if "fallback" not in call.input:
        return None
    found = find_handler(call, _read_candidate(call, call.input["fallback"], "/fallback"))
    if isinstance(found, RouteHandler):
        return found
    raise refusal(_ROUTE, "invalid-candidate", f"The fallback cannot take the item: {found}.", field="/fallback")


def _read_candidate(call: RoutedCall, written: Any, field: str, *position: int) -> RouteCandidate:
    """Refuse what is not written as a candidate, passes items on itself, or is a service that is not allowed."""
    candidate = parse_candidate(written, *position)
    if isinstance(candidate, str):
        raise refusal(_ROUTE, "invalid-candidate", f"The candidate {candidate}.", field=field)
    if is_recursive(call, candidate):
        message = f"{candidate.name[:80]} passes items on itself, so it cannot be a handler."
        raise refusal(_ROUTE, "invalid-candidate", message, field=field)
    if candidate.kind == SERVICE and not is_deliverable(candidate.address, call.server):
        message = "The service is not one that the operator lists as a recipient."
        error = NOT_LISTED.name if is_unlisted(candidate.address, call.server) else "invalid-candidate"
        raise refusal(_ROUTE, error, message, field=field)
    return candidate


def _explain(criteria: Criteria, one: Ranked, fitting: int, unreached: int) -> str:
    measured = "" if one.latency is None else f", median {one.latency * 1000:.1f} ms"
    how = "by the expression" if criteria.expression is not None else f"by {criteria.prefer}"
    skipped = f" {unreached} better ones could not be reached." if unreached else ""
    return f"Best of {fitting} that fit, {how}: {one.running} calls run{measured}.{skipped}"


async def _hand_over(
    call: RoutedCall, steps: Steps, handler: RouteHandler, reason: str, score: float | None
) -> Effects | Envelope | None:
    """Give the item to a handler; return None if it could not be reached, so that nothing has happened."""
    decision: dict[str, Any] = {"handler": handler.candidate.name, "reason": reason}
    if score is not None:
        decision["score"] = round(score, 6)
    if handler.candidate.kind == AGENT:
        return _send(call, handler.candidate.name, decision)
    if handler.candidate.kind == SERVICE:
        return await _call_service(call, handler, decision)
    return await _call_endpoint(call, steps, handler, decision)


def _send(call: RoutedCall, agent_id: str, decision: dict[str, Any]) -> Effects:
    """Put the item into the inbox of an agent, in the transaction of the answer."""
    check_content(call.input, "payload", MOST_CONTENT)
    message = Message(sender=call.agent_id or "", kind=NOTICE, content=call.input["payload"])
    put = put_messages(new_id("ntf"), message, (agent_id,))
    return effects(
        [put],
        lambda _: {**decision, "delivered": True, "message_id": put.messages[0].record_id},
        _ROUTE.refuse("handler-unavailable", "The agent has no room for more messages.", handler=agent_id),
    )


async def _call_endpoint(
    call: RoutedCall, steps: Steps, handler: RouteHandler, decision: dict[str, Any]
) -> Envelope | None:
    """Call an endpoint here. Every gate of it judges the caller."""
    assert handler.route is not None
    statistics, began = call.server.part("statistics"), time.perf_counter()
    with statistics.running(handler.key):
        called = steps.run_step(call, handler.route, dict(handler.given or {}), handler.candidate.path, "1")
        done, response = await finish_step(called)
    statistics.note(handler.key, time.perf_counter() - began, response.status)
    if response.code == "upstream_connection_error":
        return None
    return _tell(decision, response.status, response.body, lambda: done.output)


async def _call_service(call: RoutedCall, handler: RouteHandler, decision: dict[str, Any]) -> Envelope | None:
    """Call an endpoint of another service, within the guard of delivery."""
    candidate, key, began = handler.candidate, handler.key, time.perf_counter()
    asked = (candidate.method, candidate.path, new_id("route"), msgspec.json.encode(call.input["payload"]))
    with call.server.part("statistics").running(key):
        answer = await call.server.part("delivery").call(candidate.address, *asked)
    if not isinstance(answer, ResponseMessage):
        if getattr(answer, "sent", False):
            message = f"{answer.message} Whether the handler has taken the item is not known."
            raise refusal(_ROUTE, "handler-unavailable", message, handler=candidate.name)
        return None
    call.server.part("statistics").note(key, time.perf_counter() - began, answer.status)
    return _tell(decision, answer.status, answer.body, lambda: decode_body(answer.body))


def _tell(decision: dict[str, Any], code: int, body: bytes, output: Callable[[], Any]) -> Envelope | None:
    if code in _UNREACHED:
        return None
    if status.is_success(code):
        return Envelope({**decision, "delivered": True, "code": code, "output": output()})
    found = decode_body(body)
    error = found.get("error") if isinstance(found, dict) else None
    error = error if isinstance(error, dict) else {}
    return Envelope({**decision, "delivered": False, "code": code, "error": error})
