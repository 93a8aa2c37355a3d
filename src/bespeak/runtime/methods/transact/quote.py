"""QUOTE: what a call would cost, by its contract and by what earlier calls took (Tier 2 5.1). Nothing is executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from statistics import quantiles
from typing import Final

import msgspec

from bespeak.contract.schema.report import refuse_input
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.budget import format_amount
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.cost_history import Sample
from bespeak.runtime.gates import find_route

_QUOTE: Final = STANDARD["QUOTE"]
_DECLARED: Final = 0.5
"""Confidence in a cost that the contract declares: it is the most a call costs, not what this one will."""
_HALF: Final = 8
"""Earlier calls that make a confidence of one half."""
_MOST: Final = 0.95
_SECONDS: Final = "compute-seconds"


def quote(call: RoutedCall) -> Envelope | Refused:
    """Answer QUOTE /."""
    given = call.input
    method, path, parameters = given["method"], given.get("path", "/"), given["parameters"]
    asked = Call(msgspec.structs.replace(call.request, method=method, path=path, body=b""), call.server)
    asked.principal = call.principal
    found = find_route(asked)
    if isinstance(found, Refused):
        return _QUOTE.refuse("endpoint-not-found", found.message, method=method, path=path)
    route = found.route
    parameters = route.fill_captures(parameters, found.captures)
    if not route.input.is_valid(parameters):
        violations = refuse_input(method, path, route.input.violations(parameters))
        return _QUOTE.refuse("invalid-parameters", violations.message, **violations.details)
    declared = route.endpoint.cost.amounts if route.endpoint.cost else {}
    samples = call.server.costs.find(route.endpoint.key, len(msgspec.json.encode(parameters)))
    ranges = _ranges(declared, samples, given.get("budget_units"))
    confidence = max(_DECLARED if declared else 0.0, min(len(samples) / (len(samples) + _HALF), _MOST))
    basis = ("both" if samples else "declared") if declared else ("measured" if samples else "none")
    header = " ".join(f"{unit}={_written(unit, value['expected'])}" for unit, value in ranges.items())
    return Envelope(
        {
            "method": route.endpoint.method,
            "path": route.endpoint.path,
            "estimated_cost": {unit.replace("-", "_"): value for unit, value in ranges.items()},
            "confidence": round(confidence, 2),
            "basis": basis,
            "samples": len(samples),
        },
        headers=(("Cost-Estimate", header),) if header else (),
    )


def _ranges(
    declared: Mapping[str, Decimal], samples: Sequence[Sample], units: Iterable[str] | None
) -> dict[str, dict[str, float]]:
    """Return the range of each unit: what is declared is the most; what was measured lies between its fifths."""
    ranges: dict[str, dict[str, float]] = {
        unit: {"min": 0.0, "expected": float(amount), "max": float(amount)} for unit, amount in declared.items()
    }
    ranges.setdefault("calls", {"min": 1, "expected": 1, "max": 1})
    if samples:
        times = sorted(sample.seconds for sample in samples)
        cuts = quantiles(times, n=20) if len(times) > 1 else times * 19
        ranges[_SECONDS] = {"min": round(cuts[0], 6), "expected": round(cuts[9], 6), "max": round(cuts[-1], 6)}
    wanted = None if units is None else set(units)
    return {unit: value for unit, value in ranges.items() if wanted is None or unit in wanted}


def _written(unit: str, amount: float) -> str:
    return format_amount(unit, Decimal(repr(amount)) if amount % 1 else Decimal(int(amount)))
