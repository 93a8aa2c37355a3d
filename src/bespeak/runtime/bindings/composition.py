"""Compositions: the composition binding (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CoroutineType
from typing import Any

from bespeak.contract.confirmation import UNKNOWN, ListedCall, bounded
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Recipe
from bespeak.contract.schema.validation import compile_schema
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.composition.plan import CompositionPlan, Key, StepPlan, UndoPlan, plan_composition
from bespeak.runtime.composition.run import SUCCESS, Routes, Run
from bespeak.runtime.composition.step import AUTHORIZED, VALID, Steps
from bespeak.runtime.composition.values import Scope, UnmetError
from bespeak.runtime.concurrency import is_in_task
from bespeak.runtime.route import Route
from bespeak.runtime.route_table import RouteTable


class CompositionBinding:
    def __init__(self, endpoint: Endpoint, plan: CompositionPlan) -> None:
        self.plan = plan
        self._endpoint = endpoint
        self._table: RouteTable | None = None
        self._routes: Routes | None = None
        self._waits = False
        self._needs_key = False
        # True if a step has ever been a coroutine. Such a run begins in a task, where a coroutine that need not wait
        # costs no more than a function.
        self._in_task = False

    def __call__(self, call: RoutedCall, steps: Steps) -> Any:
        """Return the output or a Refused, or a coroutine of either if a step has to wait."""
        if self._table is not call.routes:
            self._resolve(call.routes)
        if self._routes is None:
            return _outdated(call)
        if self._needs_key and not call.route.is_confirmed and (call.composing is None or not call.composing.is_keyed):
            message = (
                f"{call.route.endpoint} changes something before it waits for a confirmation: send an Idempotency-Key, "
                "under which it continues when you repeat the call."
            )
            return Refused(status.BAD_REQUEST, "idempotency-key-required", message)
        run = Run(self.plan, call, steps, self._routes)
        if self._in_task and not is_in_task():
            return _run_later(run)
        result = run.start()
        self._in_task |= type(result) is CoroutineType
        return result

    def waits(self, table: RouteTable) -> bool:
        """Return True if a step may wait for a confirmation."""
        if self._table is not table:
            self._resolve(table)
        return self._waits

    def _resolve(self, table: RouteTable) -> None:
        """Look up the routes of all steps, once per table."""
        self._table = table
        steps = self.plan.steps
        plans: list[StepPlan | UndoPlan] = [*steps, *(step.undo for step in steps if step.undo is not None)]
        routes = {plan: route for plan in plans if (route := table.steps.get(plan.key)) is not None}
        bound = {plan: (route, plan.fill, plan.flags | self._flags(route)) for plan, route in routes.items()}
        self._routes = bound if len(bound) == len(plans) else None
        waiting = [step for step in steps if step in routes and _waits(routes[step], table)]
        self._waits = bool(waiting)
        changing = [step.number for step in steps if step.changes]
        # Such a call goes on after the confirmation, and only the key says what has been done.
        self._needs_key = any(
            step.for_each is not None or any(one < step.number for one in changing) for step in waiting
        )

    def _flags(self, route: Route) -> int:
        """Return the gates that every call of a step passes, because its caller has passed those of the composition."""
        wanted = route.endpoint.required_scopes
        is_authorized = wanted and not route.builtin and set(self._endpoint.required_scopes).issuperset(wanted)
        return AUTHORIZED if is_authorized else 0


class SoleStepBinding(CompositionBinding):
    """Runs a recipe that only calls one endpoint. If it succeeds at once, nothing has to be remembered for a Run."""

    def __call__(self, call: RoutedCall, steps: Steps) -> Any:
        if self._table is not call.routes:
            self._resolve(call.routes)
        if self._routes is None:
            return _outdated(call)
        plan, step = self.plan, self.plan.steps[0]
        done: Any = None
        route, fill, flags = self._routes[step]
        try:
            if flags & VALID and step.mirror is not None:
                given = step.mirror(call.input)
            else:
                given = step.build(Scope(call.input), None)
            done = steps.run_step(call, route, given, fill(given), step.named, flags=flags)
            if type(done) is not CoroutineType and done.response.status in SUCCESS:
                output = done.output
                if plan.is_last and type(output) is not list:
                    return output
                scope = Scope(call.input)
                if step.capture is not None:
                    scope.capture(step.capture, output)
                return plan.result(scope, {step.number: output})
        except UnmetError:
            pass  # the run meets it too, and explains it
        return Run(plan, call, steps, self._routes).start(done)

    def _flags(self, route: Route) -> int:
        is_valid = self.plan.steps[0].mirror is not None and route.input is compile_schema(self._endpoint.input_schema)
        return super()._flags(route) | (VALID if is_valid else 0)


def bind_composition(endpoint: Endpoint, recipe: Recipe, served: Mapping[Key, Endpoint]) -> CompositionBinding:
    """Bind an endpoint to its recipe; `served` has the endpoints that the recipe calls."""
    plan = plan_composition(endpoint, recipe, served)
    return (SoleStepBinding if plan.is_sole else CompositionBinding)(endpoint, plan)


def list_composition(table: RouteTable, key: Key) -> tuple[ListedCall, ...] | Fault:
    """List the calls of the recipe of an endpoint, for a person who decides about it; nothing if it has none."""
    route = table.steps.get(key)
    return () if route is None else bounded(composed_calls(table, route))


def composed_calls(table: RouteTable, route: Route) -> Iterator[ListedCall]:
    """Yield the calls of a recipe, each with those that it makes in turn. The linter has refused cycles."""
    for step in route.call.plan.steps if isinstance(route.call, CompositionBinding) else ():
        notes = ["if its condition holds"] if step.when is not None else []
        notes += [f"for each element, at most {step.max_items}"] if step.for_each is not None else []
        yield _listed(table, step.key, ", ".join(notes))
        if step.undo is not None:
            yield _listed(table, step.undo.key, "to undo the one before, if a later one fails")


def _listed(table: RouteTable, key: Key, note: str) -> ListedCall:
    found = table.steps.get(key)
    if found is None:
        return ListedCall(*key, UNKNOWN, note=note)
    # Callers see the question too, and must not learn which internal endpoints there are.
    method, path = ("CALL", "(an internal endpoint)") if found.endpoint.internal else key
    impact = found.endpoint.semantic.impact
    return ListedCall(method, path, impact, note=note, calls=tuple(composed_calls(table, found)))


async def _run_later(run: Run) -> Any:
    result = run.start()
    return await result if type(result) is CoroutineType else result


def _waits(route: Route, table: RouteTable) -> bool:
    return route.is_confirmed or (isinstance(route.call, CompositionBinding) and route.call.waits(table))


def _outdated(call: RoutedCall) -> Refused:
    message = f"{call.route.endpoint} calls an endpoint that has been removed; it cannot be used any more."
    return Refused(status.GONE, "composition-outdated", message, {"method": call.method, "path": call.path[:300]})
