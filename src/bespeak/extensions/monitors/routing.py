"""Routing of a work item: the candidates of ROUTE, and the criteria by which they are ranked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.standard.definition import METHOD, PATH
from bespeak.extensions.messages.posting import is_deliverable
from bespeak.extensions.monitors.conditions import find_fault, find_member, holds
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.call import RoutedCall, find_visible
from bespeak.runtime.expressions.pool import ExpressionFault
from bespeak.runtime.route import Route

AGENT: Final = "agent"
ENDPOINT: Final = "endpoint"
SERVICE: Final = "service"
MOST_CANDIDATES: Final = 64 * 1024  # maximum bytes of all candidates
_AGTP: Final = "agtp://"
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
    if not address.startswith(_AGTP):
        return "names a service that is not written as agtp://host"
    return RouteCandidate(
        name=f"{address} {call}", kind=SERVICE, method=texts["method"], path=path, address=address, **common
    )


def list_endpoints(call: RoutedCall) -> list[RouteCandidate]:
    """Return the published endpoints of this server as candidates, for a caller that names none."""
    return [
        RouteCandidate(name=str(one), kind=ENDPOINT, method=one.method, path=one.path, declared={}, when={})
        for one in call.routes.endpoints.values()
        if one.is_listed and not one.passes_on and not one.builtin
    ]


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


def is_allowed(call: RoutedCall, candidate: RouteCandidate) -> bool:
    """Return True unless it is a service that the operator does not list as a recipient."""
    return candidate.kind != SERVICE or is_deliverable(candidate.address, call.server)


def _find_agent(call: RoutedCall, candidate: RouteCandidate) -> RouteHandler | str:
    agent: Agent | None = call.server.agents.get(candidate.name)
    if agent is None:
        if call.server.principals.requires_known:
            return "the agent is not registered here"
        return RouteHandler(candidate=candidate, attributes={**candidate.declared, "kind": AGENT})
    if not agent.is_active:
        return "the agent is not active"
    if call.routes.service.agent_disclosure != "public" and agent.agent_id != call.agent_id:
        return RouteHandler(candidate=candidate, attributes={**candidate.declared, "kind": AGENT})
    known = {"kind": AGENT, "name": agent.name, "trust_tier": agent.trust_tier, "trust_score": agent.trust_score}
    listed = agent.document.get("capabilities")
    return RouteHandler(
        candidate=candidate,
        attributes={**candidate.declared, **({} if listed is None else {"capability": listed}), **known},
    )


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
    known = {
        "kind": ENDPOINT,
        "method": endpoint.method,
        "path": endpoint.path,
        "namespace": endpoint.namespace,
        "capability": endpoint.semantic.capability,
        "impact": endpoint.semantic.impact,
    }
    return RouteHandler(candidate=candidate, attributes={**candidate.declared, **known}, route=route, given=given)


def size_of(candidates: list[Any]) -> int:
    """Return the bytes of candidates as they were written."""
    return len(msgspec.json.encode(candidates))


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
    score = _score(criteria.prefer, handler.candidate.position, running, latency or 0.0, cost)
    if criteria.expression is not None:
        variables = {"payload": call.input["payload"], "candidate": dict(attributes)}
        found = await call.server.expressions.evaluate(criteria.expression, variables, call.agent_id)
        if isinstance(found, ExpressionFault):
            return found
        if found is False or not isinstance(found, bool | int | float):
            return None if found is False else ExpressionFault("it must be true, false or a number")
        score = score if found is True else float(found)
    return Ranked(handler, score, running, latency)


def _score(prefer: str, position: int, running: int, latency: float, cost: float | None) -> float:
    if prefer == "cost":
        return 0.0 if cost is None else 1 / (1 + cost)
    worse = {"load": running + latency, "latency": latency, "order": float(position)}[prefer]
    return 1 / (1 + worse)


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
