"""PLAN: calls that reach a goal, which EXECUTE can run; nothing is executed (core 4.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import prod
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, may_discover, sees, undisclosed
from bespeak.runtime.concurrency import run_in_thread
from bespeak.runtime.handling import RefusedError, handler, refusal
from bespeak.runtime.rate import caller
from bespeak.state.store.commands.records import PutRecord, RemoveRecord
from bespeak.state.store.store import Conflict

if TYPE_CHECKING:
    from bespeak.extensions.negotiation.plan import Impossible
    from bespeak.extensions.workflows.goals import Composed, Goal

KIND: Final = "plan"
KEPT: Final = 86400.0  # seconds for which a plan can be executed by its id
MOST: Final = 1000  # plans of one agent
_AT_ONCE: Final = 4  # plans that one process makes, one for each caller: handlers that block use the same threads
_LONGEST: Final = 64 * 1024
_planning: Final[set[str]] = set()
_BUSY: Final = Refused(
    status.UNAVAILABLE,
    "planner-busy",
    "A plan of this caller or too many others are being made; try again later.",
    headers=(("Retry-After", "1"),),
)


class StoredPlan(msgspec.Struct, frozen=True):
    steps: tuple[dict[str, Any], ...]
    given: dict[str, Any]
    result: dict[str, Any]


@handler
async def plan(call: RoutedCall) -> Effects | Envelope:
    """Answer PLAN /: calls of endpoints that the caller may use, or 422 with what came nearest."""
    if not may_discover(call):
        raise RefusedError(undisclosed(call))
    # Planning loads English, which most servers do without.
    from bespeak.extensions.negotiation.plan import Impossible  # noqa: PLC0415
    from bespeak.extensions.workflows.goals import read_goal  # noqa: PLC0415

    goal = read_goal(call.input)
    if not any(endpoint.is_listed and not endpoint.builtin for endpoint in call.routes.endpoints.values()):
        raise _impossible(Impossible(misses=()))
    asking = caller(call.principal, call.request.connection.address)
    if asking in _planning or len(_planning) >= _AT_ONCE:
        raise RefusedError(_BUSY)
    _planning.add(asking)
    try:
        composed = await run_in_thread(_compose, call, goal)
    finally:
        _planning.discard(asking)
    if isinstance(composed, Impossible):
        raise _impossible(composed)
    cost = _cost(composed.endpoints)
    dear = next((unit for unit, most in goal.max_cost.items() if cost.get(unit, Decimal(0)) > most), None)
    if dear is not None:
        message = f"The plan would cost {cost[dear]} {dear}, and at most {goal.max_cost[dear]} is allowed."
        raise _no_plan(message, estimated_cost=_written(cost))
    return _answer(call, goal, composed, cost)


def _compose(call: RoutedCall, goal: Goal) -> Composed | Impossible:
    from bespeak.extensions.workflows.goals import composer_of  # noqa: PLC0415

    def usable(endpoint: Endpoint) -> bool:
        route = call.routes.steps.get(endpoint.key)
        return (
            route is not None
            and endpoint.method in call.routes.allowed
            and (not goal.methods or endpoint.method in goal.methods)
            and IMPACTS.index(endpoint.semantic.impact) <= IMPACTS.index(goal.impact)
            and sees(call, route)
            and not call.principal.scopes.missing(endpoint.required_scopes)
        )

    return composer_of(call.routes).compose(goal, usable)


def _answer(call: RoutedCall, goal: Goal, made: Composed, cost: Mapping[str, Decimal]) -> Effects | Envelope:
    steps = [
        {
            "step": number,
            **one,
            "purpose": endpoint.description,
            "impact": endpoint.semantic.impact,
            "required_scopes": list(endpoint.required_scopes),
            "estimated_cost": _written(_cost((endpoint,))),
            "confidence": endpoint.semantic.confidence,
        }
        for number, (one, endpoint) in enumerate(zip(made.calls, made.endpoints, strict=True), 1)
    ]
    sure = prod(endpoint.semantic.confidence for endpoint in made.endpoints) * made.quality
    result: dict[str, Any] = {
        "ordered_steps": steps,
        "estimated_cost": _written(cost),
        "confidence": round(sure, 4),
        "assumptions": [*goal.assumptions, *made.doubts],
        "needs": list(made.needs),
        "result": dict(made.result),
        "impact": max((one.semantic.impact for one in made.endpoints), key=IMPACTS.index),
    }
    stored = msgspec.json.encode(StoredPlan(made.calls, dict(goal.given), dict(made.result)))
    if call.server.store is None or call.agent_id is None or len(stored) > _LONGEST:
        return Envelope(result)
    # The same plan has the same id, so that asking again changes nothing.
    plan_id = "plan-" + hashlib.sha256(call.agent_id.encode() + stored).hexdigest()[:32]
    keep = PutRecord(plan_id, KIND, call.agent_id, "open", stored.decode(), lifetime=KEPT, most=MOST)

    def tell(results: Sequence[Any] | Conflict) -> Envelope:
        return Envelope(result if isinstance(results, Conflict) else {"plan_id": plan_id, **result})

    return Effects((RemoveRecord(plan_id), keep), tell)


def _cost(endpoints: Sequence[Endpoint]) -> dict[str, Decimal]:
    total = {"calls": Decimal(len(endpoints))}
    for endpoint in endpoints:
        for unit, amount in (endpoint.cost.amounts if endpoint.cost is not None else {}).items():
            if unit != "calls":
                total[unit] = total.get(unit, Decimal(0)) + amount
    return total


def _written(cost: Mapping[str, Decimal]) -> dict[str, float]:
    return {unit: int(amount) if amount == int(amount) else float(amount) for unit, amount in cost.items()}


def _impossible(impossible: Impossible) -> RefusedError:
    """Say what no endpoint covers. Only endpoints that the caller may use are known to the search."""
    misses = [
        {"field": one.field[:200], "reason": one.reason[:300]} | ({"nearest": str(one.nearest)} if one.nearest else {})
        for one in impossible.misses[:10]
    ]
    message = f"No plan reaches this goal. {misses[0]['reason']}" if misses else "No plan reaches this goal."
    return _no_plan(message, misses=misses)


def _no_plan(message: str, **details: Any) -> RefusedError:
    return refusal(status.UNPROCESSABLE, "no-plan", message, **details)
