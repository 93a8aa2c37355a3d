"""456: the call would exceed the caller's Budget-Limit. 400: the Budget-Limit is not valid."""

from __future__ import annotations

from functools import lru_cache

from bespeak.protocol import status
from bespeak.protocol.exchange.budget import ONE_CALL, exceeded_units, format_amount, parse_budget
from bespeak.protocol.exchange.headers import BUDGET_LIMIT
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.runtime.call import RoutedCall

_LONGEST_REMEMBERED = 200
"""Maximum length of a cached header, enough for a list of all units; callers cannot fill the cache with longer ones."""

_remembered = lru_cache(1024)(parse_budget)


def budget_gate(call: RoutedCall) -> Refused | None:
    """Compare the endpoint's declared cost with Budget-Limit, unit by unit."""
    headers = call.request.headers
    if BUDGET_LIMIT not in headers:
        return None
    text = headers[BUDGET_LIMIT]
    limit = _remembered(text) if len(text) <= _LONGEST_REMEMBERED else parse_budget(text)
    if isinstance(limit, Fault):
        entry = limit.at[:80]
        message = f"Budget-Limit contains {entry!r}: {limit.message}. Write it like tokens=5000, USD=0.50."
        return Refused(status.BAD_REQUEST, "invalid-budget-limit", message, {"entry": entry})
    endpoint = call.route.endpoint
    cost = {"calls": ONE_CALL, **(endpoint.cost.amounts if endpoint.cost else {})}
    if call.parent is not None and call.parent.composing is not None:
        # The limit is for the whole call: the cost of its earlier steps counts too.
        spent = call.parent.composing.spent
        cost |= {unit: amount + spent.get(unit, 0) for unit, amount in cost.items() if unit != "calls"}
    over = exceeded_units(cost, limit)
    if not over:
        if call.parent is not None and call.parent.composing is not None:
            call.parent.composing.spent |= {unit: amount for unit, amount in cost.items() if unit != "calls"}
        return None
    costs = {unit: format_amount(unit, amount) for unit, amount in cost.items()}
    limits = {unit: format_amount(unit, amount) for unit, amount in limit.items()}
    excess = " and ".join(f"{costs[unit]} {unit} (limit {limits[unit]})" for unit in over)
    return Refused(
        status.BUDGET_EXCEEDED,
        "budget-exceeded",
        f"{endpoint} costs {excess}; raise Budget-Limit or call a cheaper endpoint.",
        {"cost": costs, "limit": limits, "exceeded": over},
    )
