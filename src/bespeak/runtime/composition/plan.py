"""A recipe bound to the endpoints that it calls: everything that does not depend on a call is computed here, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Paging, Recipe, RecipeStep
from bespeak.runtime.composition.scope import Scope
from bespeak.runtime.composition.values import Value, compile_conditions, compile_members, compile_value, split_path

Key = tuple[str, str]
"""Method and path template of an endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepPlan:
    """One step of a recipe."""

    number: int
    """Number in the recipe, from 1."""
    key: Key
    internal: bool
    """True if callers must not learn which endpoint it is."""
    changes: bool
    """True if the step may change something."""
    journaled: bool
    """True if its answer is kept under the caller's key because a later step changes something.

    A repeated request must take the same values to that step, or it would not be the same deed.
    """
    build: Value
    """Builds the input."""
    fill: Callable[[Mapping[str, Any]], str]
    """Builds the path."""
    capture: str | None
    when: Callable[[Scope, Any], bool] | None
    for_each: Value | None
    max_items: int
    skips: bool
    """True if a failure leaves the step, or the element, out."""
    pages: PagePlan | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PagePlan:
    """How all pages of a list are read."""

    parameter: str
    cursor: tuple[str, ...]
    items: tuple[str, ...]
    most: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompositionPlan:
    """All steps of a recipe, for one endpoint."""

    recipe: str
    keys: tuple[Key, ...]
    """Endpoint of each step."""
    groups: tuple[tuple[StepPlan, ...], ...]
    """Steps in order; those of one group run at the same time."""
    result: Callable[[Scope, Sequence[Any]], Any]
    """Builds the output from the scope and the outputs of the steps, in order, without those that were skipped."""
    timeout: float


def plan_composition(endpoint: Endpoint, recipe: Recipe, endpoints: Sequence[Endpoint]) -> CompositionPlan:
    """Plan a recipe for an endpoint. `endpoints` are those of the steps, in order."""
    changing = [index for index, step in enumerate(endpoints) if step.semantic.impact != "informational"]
    last = changing[-1] if changing else -1
    plans = [
        _plan_step(index + 1, step, called, journaled=index < last)
        for index, (step, called) in enumerate(zip(recipe.steps, endpoints, strict=True))
    ]
    return CompositionPlan(
        recipe=recipe.name,
        keys=tuple(plan.key for plan in plans),
        groups=_grouped(recipe.steps, plans),
        result=_plan_result(endpoint, recipe),
        timeout=recipe.timeout_seconds,
    )


def _plan_step(number: int, step: RecipeStep, endpoint: Endpoint, *, journaled: bool) -> StepPlan:
    return StepPlan(
        number=number,
        key=endpoint.key,
        internal=endpoint.internal,
        changes=endpoint.semantic.impact != "informational",
        journaled=journaled,
        build=compile_members(step.input, endpoint.input_schema),
        fill=_plan_path(endpoint.path),
        capture=step.output,
        when=compile_conditions(step.when) if step.when else None,
        for_each=None if step.for_each is None else compile_value(step.for_each),
        max_items=step.max_items,
        skips=step.on_failure == "skip",
        pages=None if step.pages is None else _plan_pages(step.pages),
    )


def _plan_pages(pages: Paging) -> PagePlan:
    return PagePlan(
        parameter=pages.parameter, cursor=split_path(pages.cursor), items=split_path(pages.items), most=pages.most
    )


def _grouped(steps: Sequence[RecipeStep], plans: Sequence[StepPlan]) -> tuple[tuple[StepPlan, ...], ...]:
    """Put neighbouring steps of one group together; a step without a group stands alone."""
    numbered = [(step.group or f"step {plan.number}", plan) for step, plan in zip(steps, plans, strict=True)]
    return tuple(tuple(plan for _, plan in members) for _, members in groupby(numbered, key=lambda pair: pair[0]))


def _plan_path(template: str) -> Callable[[Mapping[str, Any]], str]:
    if "{" not in template:
        return lambda given: template
    parts = [(part.strip("{}"), part.startswith("{")) for part in template.split("/")]

    def fill(given: Mapping[str, Any]) -> str:
        return "/".join(_segment(given.get(part)) if varies else part for part, varies in parts)

    return fill


def _segment(value: Any) -> str:
    text = value if isinstance(value, str) else "true" if value is True else "false" if value is False else str(value)
    return quote(text, safe="")


def _plan_result(endpoint: Endpoint, recipe: Recipe) -> Callable[[Scope, Sequence[Any]], Any]:
    schema = endpoint.output_schema
    if recipe.output:
        build = compile_members(recipe.output, schema)
        return lambda scope, outputs: build(scope, None)
    is_array = schema.get("type") == "array"

    def combine(scope: Scope, outputs: Sequence[Any]) -> Any:
        if recipe.aggregation == "merge":
            return {name: value for output in outputs if isinstance(output, dict) for name, value in output.items()}
        combined = list(outputs) if recipe.aggregation == "list" else outputs[-1] if outputs else {}
        return {"results": combined} if isinstance(combined, list) and not is_array else combined

    return combine
