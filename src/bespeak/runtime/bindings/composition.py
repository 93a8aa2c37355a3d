"""Compositions: the composition binding (AGTP-API 12.1)."""

from __future__ import annotations

from asyncio import current_task
from collections.abc import Mapping
from types import CoroutineType
from typing import Any

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Recipe
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.composition.plan import CompositionPlan, Key, plan_composition
from bespeak.runtime.composition.run import Run
from bespeak.runtime.composition.step import ComposedCall, Steps
from bespeak.runtime.route import Route
from bespeak.runtime.route_table import RouteTable


class CompositionBinding:
    """Runs the recipe of an endpoint."""

    def __init__(self, endpoint: Endpoint, recipe: Recipe, served: Mapping[Key, Endpoint]) -> None:
        """Plan the recipe; `served` has the endpoints that it calls."""
        self.plan: CompositionPlan = plan_composition(endpoint, recipe, served)
        undone = [step.undo.key for step in self.plan.steps if step.undo is not None]
        self._keys = (*(step.key for step in self.plan.steps), *undone)
        self._table: RouteTable | None = None
        self._routes: Mapping[Key, Route] | None = None
        self._waits = False
        self._needs_key = False
        self._in_task = False
        """True if a step has ever been a coroutine. Such a run begins in a task, where a coroutine that need not wait
        costs no more than a function.
        """

    def __call__(self, call: ComposedCall, steps: Steps) -> Any:
        """Return the output or a Refused, or a coroutine of either if a step has to wait."""
        if self._table is not call.routes:
            self._resolve(call.routes)
        if self._routes is None:
            return _outdated(call)
        if self._needs_key and not call.route.is_confirmed and (call.composing is None or not call.composing.is_keyed):
            return _keyless(call)
        run = Run(self.plan, call, steps, self._routes)
        if self._in_task and _is_outside():
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
        found = {key: table.steps.get(key) for key in self._keys}
        routes = {key: route for key, route in found.items() if route is not None}
        self._table = table
        self._routes = routes if len(routes) == len(found) else None
        waiting = [step for step in self.plan.steps if step.key in routes and _waits(routes[step.key], table)]
        self._waits = bool(waiting)
        changing = [step.number for step in self.plan.steps if step.changes]
        # Such a call goes on after the confirmation, and only the key says what has been done.
        self._needs_key = any(
            step.for_each is not None or any(one < step.number for one in changing) for step in waiting
        )


def _is_outside() -> bool:
    """Return True if a loop runs, but no task."""
    try:
        return current_task() is None
    except RuntimeError:
        return False


async def _run_later(run: Run) -> Any:
    result = run.start()
    return await result if type(result) is CoroutineType else result


def _waits(route: Route, table: RouteTable) -> bool:
    return route.is_confirmed or (isinstance(route.call, CompositionBinding) and route.call.waits(table))


def _outdated(call: ComposedCall) -> Refused:
    message = f"{call.route.endpoint} calls an endpoint that has been removed; it cannot be used any more."
    return Refused(status.GONE, "composition-outdated", message, {"method": call.method, "path": call.path[:300]})


def _keyless(call: ComposedCall) -> Refused:
    return Refused(
        status.BAD_REQUEST,
        "idempotency-key-required",
        f"{call.route.endpoint} changes something before it waits for a confirmation: send an Idempotency-Key, under "
        "which it continues when you repeat the call.",
    )
