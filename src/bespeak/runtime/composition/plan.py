"""A recipe bound to the endpoints that it calls: whatever does not depend on a call is computed here, once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Compensation, Paging, Recipe, RecipeStep, Retry, Source
from bespeak.contract.schema.view import SchemaView
from bespeak.runtime.composition import values
from bespeak.runtime.composition.step import JOURNALED, UNDOES
from bespeak.runtime.composition.values import MISSING, Scope, UnmetError, Value


@dataclass(slots=True, eq=False)
class PagedOutput:
    plan: Paging
    count: int = 0
    _first: Any = None
    _items: list[Any] = field(default_factory=list)
    _last: list[Any] = field(default_factory=list)
    _number: int = 0  # of the page that was asked for last; the first one, 0, is asked for without a number

    def add(self, output: Any) -> Any:
        """Add a page; return the cursor or number of the next, MISSING after the last. Raises UnmetError."""
        plan = self.plan
        if not self.count:
            self._first = output
        self.count += 1
        found = values.follow(output, values.split_path(plan.items))
        rows = found if type(found) is list else []
        following = values.follow(output, values.split_path(plan.cursor)) if plan.cursor else True
        if plan.counts:
            number = self._count(rows)
            following = number if _continues(following) else MISSING
        else:
            self._items += rows
        if not _continues(following):
            return MISSING
        if self.count == plan.most:
            raise UnmetError("too-many-pages", f"its list has more than {plan.most} pages; ask for fewer elements")
        return following

    def _count(self, rows: list[Any]) -> Any:
        """Add a page; return the number of the next one. The last page is empty, or repeats the one before it."""
        by_page = self.plan.counts == "pages"
        if self.count > 1 and rows == self._last:
            if not by_page or self._number != 1:
                return MISSING
        elif rows:
            self._items += rows
            self._last = rows
        else:
            return MISSING
        self._number = self._number + 1 if by_page else len(self._items)
        return self._number

    @property
    def output(self) -> Any:
        """The first page with the elements of all pages, and without a cursor."""
        cursor = values.split_path(self.plan.cursor)
        first = _replaced(self._first, cursor, MISSING) if cursor else self._first
        return _replaced(first, values.split_path(self.plan.items), self._items)


def _continues(cursor: Any) -> bool:
    return values.is_there(cursor) and cursor is not False and cursor != ""


def _replaced(value: Any, names: tuple[str, ...], new: Any) -> Any:
    if not names:
        return new
    if type(value) is not dict:
        return value
    kept = {name: inner for name, inner in value.items() if name != names[0]}
    inner = _replaced(value.get(names[0], {}), names[1:], new)
    return kept if inner is MISSING else {**kept, names[0]: inner}


Key = tuple[str, str]  # method and path template of an endpoint
Mirror = Callable[[dict[str, Any]], dict[str, Any]]  # copies an input
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch  # finds texts that need not be quoted, in half the time
_FLAT: Final = frozenset({"string", "integer", "number", "boolean", "null"})  # types whose values cannot be changed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepPlan:
    number: int  # number in the recipe, from 1
    named: str  # the same as text
    key: Key
    internal: bool  # True if callers must not learn which endpoint it is
    changes: bool  # True if the step may change something
    is_idempotent: bool  # True if calling twice does no more than calling once
    is_plain: bool  # True if the step is called exactly once, with nothing to decide
    flags: int
    """JOURNALED if its answer is kept under the caller's key because a later step changes something.

    A repeated request must take the same values to that step, or it would not be the same deed.
    """
    build: Value  # builds the input
    mirror: Mirror | None  # copies the input of the composition if the step gets just that, by the same schema
    fill: Callable[[Mapping[str, Any]], str]  # builds the path
    capture: str | None
    when: Callable[[Scope, Any], bool] | None
    for_each: Value | None
    max_items: int
    skips: bool  # True if a failure leaves the step, or the element, out
    pages: Paging | None
    undo: UndoPlan | None  # how to undo it if a later step fails; None if it is not undone
    retry: Retry | None
    timeout: float | None  # seconds for one attempt; None for those of the composition


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UndoPlan:
    key: Key
    internal: bool
    build: Value  # builds the input; the name that the step captures is the output of this step or element
    fill: Callable[[Mapping[str, Any]], str]
    flags: int = UNDOES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompositionPlan:
    recipe: str
    steps: tuple[StepPlan, ...]
    changes: bool  # True if a step may change something
    undoes: bool  # True if a step can be undone
    is_sole: bool  # True if there is only one step, and it only calls its endpoint
    groups: tuple[tuple[StepPlan, ...], ...]  # steps in order; those of one group run at the same time
    result: Callable[[Scope, Mapping[int, Any]], Any]
    """Builds the output from the scope and the outputs by number, without those of steps that were skipped."""
    is_last: bool  # True if the output is that of the last step, which only has to become an object if it is a list
    timeout: float


def plan_composition(endpoint: Endpoint, recipe: Recipe, served: Mapping[Key, Endpoint]) -> CompositionPlan:
    """Plan a recipe for an endpoint. `served` has the endpoints of its steps, and of what undoes them."""
    endpoints = [served[step.endpoint] for step in recipe.steps]
    changing = [index for index, step in enumerate(endpoints) if step.semantic.impact != "informational"]
    last = changing[-1] if changing else -1
    plans = [
        _plan_step(index + 1, step, called, served, journaled=index < last)
        for index, (step, called) in enumerate(zip(recipe.steps, endpoints, strict=True))
    ]
    first = plans[0]
    # Neighbouring steps of one group are together; a step without a group stands alone.
    named = [(step.group or f"step {plan.number}", plan) for step, plan in zip(recipe.steps, plans, strict=True)]
    return CompositionPlan(
        recipe=recipe.name,
        steps=tuple(plans),
        changes=bool(changing),
        undoes=any(plan.undo is not None for plan in plans),
        is_sole=len(plans) == 1 and first.is_plain and not first.skips and first.undo is None,
        groups=tuple(tuple(plan for _, plan in members) for _, members in groupby(named, key=lambda pair: pair[0])),
        result=_plan_result(endpoint, recipe),
        is_last=not recipe.output and recipe.aggregation == "last",
        timeout=recipe.timeout_seconds,
    )


def _plan_step(
    number: int, step: RecipeStep, endpoint: Endpoint, served: Mapping[Key, Endpoint], *, journaled: bool
) -> StepPlan:
    undo = step.compensate
    return StepPlan(
        number=number,
        named=str(number),
        key=endpoint.key,
        internal=endpoint.internal,
        changes=endpoint.semantic.impact != "informational",
        is_idempotent=endpoint.semantic.is_idempotent,
        is_plain=not step.when and (step.for_each, step.pages, step.retry, step.timeout) == (None,) * 4,
        flags=JOURNALED if journaled else 0,
        build=values.compile_members(step.input, endpoint.input_schema, copies=True),
        mirror=_plan_mirror(step.input, endpoint.input_schema),
        fill=_plan_path(endpoint.path),
        capture=step.output,
        when=values.compile_conditions(step.when) if step.when else None,
        for_each=None if step.for_each is None else values.compile_value(step.for_each),
        max_items=step.max_items,
        skips=step.on_failure == "skip",
        pages=step.pages,
        undo=None if undo is None else _plan_undo(undo, served[undo.endpoint]),
        retry=step.retry,
        timeout=step.timeout,
    )


def _plan_mirror(sources: Mapping[str, Source], schema: Mapping[str, Any]) -> Mirror | None:
    properties = schema.get("properties", {})
    if (
        schema.get("additionalProperties") is not False
        or "patternProperties" in schema
        or sources.keys() != properties.keys()
        or any(source != Source(kind="proposal", value=name) for name, source in sources.items())
    ):
        return None
    kinds = [SchemaView(inner, schema).types for inner in properties.values()]
    return dict.copy if all(kind and kind <= _FLAT for kind in kinds) else msgspec.to_builtins


def _plan_undo(compensation: Compensation, endpoint: Endpoint) -> UndoPlan:
    return UndoPlan(
        key=endpoint.key,
        internal=endpoint.internal,
        build=values.compile_members(compensation.input, endpoint.input_schema, copies=True),
        fill=_plan_path(endpoint.path),
    )


def _plan_path(template: str) -> Callable[[Mapping[str, Any]], str]:
    if "{" not in template:
        return lambda given: template
    parts = [(part.strip("{}"), part.startswith("{")) for part in template.split("/")]
    return lambda given: "/".join([_segment(given.get(part)) if varies else part for part, varies in parts])


def _segment(value: Any) -> str:
    if type(value) is str and _UNRESERVED(value):
        return value
    text = value if isinstance(value, str) else "true" if value is True else "false" if value is False else str(value)
    return quote(text, safe="")


def _plan_result(endpoint: Endpoint, recipe: Recipe) -> Callable[[Scope, Mapping[int, Any]], Any]:
    schema = endpoint.output_schema
    if recipe.output:
        build = values.compile_members(recipe.output, schema)
        return lambda scope, outputs: build(scope, None)
    is_array = schema.get("type") == "array"

    def combine(scope: Scope, outputs: Mapping[int, Any]) -> Any:
        if recipe.aggregation == "last":
            combined = outputs[max(outputs)] if outputs else {}
        else:
            ordered = [outputs[number] for number in sorted(outputs)]
            if recipe.aggregation == "merge":
                return {name: value for output in ordered if isinstance(output, dict) for name, value in output.items()}
            combined = ordered
        return {"results": combined} if isinstance(combined, list) and not is_array else combined

    return combine
