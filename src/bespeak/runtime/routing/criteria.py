"""Criteria of ROUTE: which handlers fit, and which of them is best."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import msgspec

from bespeak.protocol.fault import Fault
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.condition import find_fault, find_member, holds
from bespeak.runtime.expressions.pool import ExpressionFault
from bespeak.runtime.routing.candidate import Handler

MOST_CRITERIA: Final = 16 * 1024
"""Maximum bytes of criteria."""
PREFERENCES: Final = ("load", "latency", "cost", "order")
COMPUTE_SECONDS: Final = "compute-seconds"
"""Unit of costs that this process has measured."""
_NAMES: Final = ("payload", "candidate")
_WITHIN: Final = 10.0
"""Seconds for the expressions of all candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """How to choose."""

    prefer: str = "load"
    unit: str = COMPUTE_SECONDS
    max_latency: float | None = None
    max_cost: float | None = None
    expression: str | None = None
    attributes: Mapping[str, Any]
    """Conditions on attributes of candidates, by path."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A handler that fits, with its score: the higher, the better."""

    handler: Handler
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


async def rank(call: RoutedCall, criteria: Criteria, handlers: list[Handler]) -> list[Ranked] | Fault:
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


async def _judge(call: RoutedCall, criteria: Criteria, handler: Handler) -> Ranked | ExpressionFault | None:
    attributes = handler.attributes
    for path, condition in criteria.attributes.items():
        value = find_member(attributes, path)
        # Of a list, such as that of the capabilities of an agent, one is enough.
        if not any(holds(condition, one) for one in (value, *(value if isinstance(value, list) else ()))):
            return None
    statistics = call.server.statistics
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


def find_cost(call: RoutedCall, handler: Handler, unit: str) -> float | None:
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
    samples = call.server.costs.find(route.endpoint.key, len(msgspec.json.encode(handler.given)))
    return median(sample.seconds for sample in samples) if samples and unit == COMPUTE_SECONDS else None
