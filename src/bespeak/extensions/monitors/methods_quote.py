"""QUOTE: what a call would cost, by its contract and by what earlier calls took (Tier 2 5.1). Nothing is executed.

A call that makes others costs what they cost: the steps of CHAIN and BATCH, the procedure of RUN, a recipe. What a
seller sells costs its price.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import quantiles
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.schema.validation import refuse_input
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.orchestrate import LISTS
from bespeak.extensions.monitors.statistics import Sample
from bespeak.extensions.workflows.procedures import find_procedure
from bespeak.extensions.workflows.spec import StepSpec
from bespeak.extensions.workflows.start import find_uncallable, read_steps
from bespeak.extensions.workflows.turn import ATTEMPTS
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import ONE_CALL, UNITS, format_amount
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.bindings.composition import CompositionBinding
from bespeak.runtime.bindings.participant import METHOD as RUN
from bespeak.runtime.bindings.participant import path_of
from bespeak.runtime.call import Call, RoutedCall, sees
from bespeak.runtime.composition.plan import StepPlan
from bespeak.runtime.composition.values import Scope, UnmetError
from bespeak.runtime.extension import PRICE
from bespeak.runtime.gates import find_route
from bespeak.runtime.handling import RefusedError, handler, invalid, refusal
from bespeak.runtime.route import Route

_QUOTE: Final = STANDARD["QUOTE"]
_DECLARED: Final = 0.5  # confidence in a declared cost: it is the most a call costs, not what this one will
_HALF: Final = 8  # earlier calls that make a confidence of one half
_MOST: Final = 0.95
_CALLS: Final = "calls"
_SECONDS: Final = "compute-seconds"
_MOST_NAMED: Final = 10
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
        """Share of certainty."""
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
            paths = [route.endpoint.path for route in fitting[:_MOST_NAMED]]
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
    return (
        found if isinstance(found, Refused) else _QuotedCall(found.route, found.route.fill_captures({}, found.captures))
    )


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
            found = (
                _route(call, step.method, step.sought)
                if step.procedure is None
                else _QuotedCall(call.routes.steps[RUN, path_of(step.procedure)], given.get("input", {}))
            )
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
