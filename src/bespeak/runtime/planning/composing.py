"""Composing calls that reach a goal, from the endpoints that a caller may use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_index import EndpointIndex
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.recipe import Recipe, RecipeStep
from bespeak.contract.semantic import Semantic
from bespeak.contract.source import Source
from bespeak.protocol.fault import Fault
from bespeak.runtime.negotiation.plan import Impossible, Miss, Plan
from bespeak.runtime.negotiation.planner.planner import Planner
from bespeak.runtime.planning.calls import write_call, write_value
from bespeak.runtime.planning.goal import Goal
from bespeak.runtime.route_table import RouteTable
from bespeak.text.language.head_verb import head_verbs

DOUBTFUL: Final = 0.5
"""Relevance below which it is doubted that an endpoint is what words mean."""
LEAST: Final = 0.25
"""Relevance below which an endpoint is not taken for what words mean."""
_CLOSE: Final = 0.9
_PARTS: Final = re.compile(r"(?:,\s*|\s+)(?:and\s+)?then\s+|[;.]\s+|,?\s+and\s+(?=\w)", re.IGNORECASE)
_MOST_PARTS: Final = 6
_NEAREST: Final = 5

Usable = Callable[[Endpoint], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """Calls that reach a goal."""

    calls: tuple[dict[str, Any], ...]
    """Steps as CHAIN takes them."""
    endpoints: tuple[Endpoint, ...]
    quality: float
    result: Mapping[str, Any] = field(default_factory=dict)
    """Where the wanted fields come from."""
    doubts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Input that the caller still has to give."""


class Composer:
    """Composes over the endpoints of one table. It is used in threads."""

    def __init__(self, routes: RouteTable) -> None:
        self._endpoints = [
            route.endpoint
            for route in routes.steps.values()
            if route.endpoint.key in routes.endpoints
            and not (route.builtin or route.synthesis_id or route.endpoint.internal or route.endpoint.missing)
        ]
        self._planner = Planner(self._endpoints)
        self._index = EndpointIndex(self._endpoints)

    def compose(self, goal: Goal, usable: Usable) -> Composed | Impossible:
        """Return the calls that reach a goal, or what is missing."""
        return self._from_fields(goal, usable) if goal.path else self._from_words(goal, usable)

    def _from_fields(self, goal: Goal, usable: Usable) -> Composed | Impossible:
        plan = self._planner.plan(_wanted(goal, goal.output), usable, depth=goal.max_steps)
        return plan if isinstance(plan, Impossible) else _write(plan, goal.given, 0)

    def _from_words(self, goal: Goal, usable: Usable) -> Composed | Impossible:
        parts = _split(goal.text)
        made: Composed | None = None
        for part in parts if len(parts) > 1 else (goal.text,):
            found = self._target(part, usable)
            if isinstance(found, Impossible):
                return found
            target, score, doubts = found
            following = self._reach(target, goal, usable, made)
            if isinstance(following, Impossible):
                return following
            following = replace(following, quality=following.quality * score, doubts=(*doubts, *following.doubts))
            made = following if made is None else _join(made, following)
        assert made is not None
        if len(made.calls) > goal.max_steps:
            return Impossible(
                misses=(Miss(field="goal", reason=f"It takes {len(made.calls)} calls, more than allowed."),)
            )
        return made

    def _target(self, words: str, usable: Usable) -> tuple[Endpoint, float, tuple[str, ...]] | Impossible:
        """Find the endpoint that does what words say."""
        ranked = [(score, self._endpoints[at]) for score, at in self._index.rank(words) if usable(self._endpoints[at])]
        if not ranked or ranked[0][0] < LEAST:
            near = [
                Miss(field=words[:80], reason=f"`{one}` is the nearest endpoint.", nearest=one) for _, one in ranked
            ]
            missing = Miss(field=words[:80], reason="No endpoint that the agent may call does this.")
            return Impossible(misses=(missing, *near[:_NEAREST]))
        score, target = ranked[0]
        doubts = []
        if score < DOUBTFUL:
            doubts.append(f"It is doubtful whether {words[:80]!r} means `{target}`.")
        if len(ranked) > 1 and ranked[1][0] >= _CLOSE * score:
            doubts.append(f"{words[:80]!r} may also mean `{ranked[1][1]}`.")
        return target, min(score / DOUBTFUL, 1.0) if score < DOUBTFUL else 1.0, tuple(doubts)

    def _reach(self, target: Endpoint, goal: Goal, usable: Usable, before: Composed | None) -> Composed | Impossible:
        """Compose a call of an endpoint with the calls that its input comes from."""
        sources = {} if before is None else _outputs(before)
        known = {**{name: {} for name in sources}, **goal.given}
        required = [name for name in target.input_schema.get("required", ()) if name not in known]
        at = 0 if before is None else len(before.calls)
        if required:
            wanted = replace(goal, method=target.method, path=target.path, given=goal.given)
            plan = self._planner.plan(_wanted(wanted, target.output_schema), usable, depth=goal.max_steps)
            if isinstance(plan, Plan) and target.key in [endpoint.key for endpoint in plan.endpoints]:
                return _write(plan, goal.given, at)
        properties = target.input_schema.get("properties", {})
        names = [name for name in properties if name in known or name in required]
        step = RecipeStep(
            method=target.method,
            path=target.path,
            input={name: Source(kind="proposal", value=name) for name in names},
            output="step_1",
        )
        plan = Plan(recipe=Recipe(name="call", steps=(step,)), endpoints=(target,), quality=1.0)
        written = _write(plan, goal.given, at)
        if isinstance(written, Impossible):
            return written
        (call,) = written.calls
        linked = {name: {"$from": sources[name]} for name in names if name in sources and name not in goal.given}
        call = {**call, "parameters": {**call["parameters"], **linked}}
        return replace(written, calls=(call,), needs=tuple(required))


@lru_cache(maxsize=2)
def composer_of(routes: RouteTable) -> Composer:
    """Return the composer of a table. Building it takes long, so it is called in a thread."""
    return Composer(routes)


def _wanted(goal: Goal, output: Mapping[str, Any]) -> Endpoint:
    """Return the endpoint that would reach a goal, as a proposal would describe it."""
    names = re.findall(r"\{(\w+)\}", goal.path)
    properties = {**{name: {"type": "string"} for name in names}, **goal.input}
    return Endpoint(
        method=goal.method,
        path=goal.path,
        description=goal.text or f"{goal.method} {goal.path}",
        semantic=Semantic(
            intent=goal.text or f"{goal.method} {goal.path}.",
            actor="agent",
            outcome="The wanted fields are returned.",
            confidence=1.0,
            impact=goal.impact,
            is_idempotent=False,
        ),
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
        output_schema=output,
        handler=OpaqueHandler(type="composition"),
    )


def _write(plan: Plan, given: Mapping[str, Any], after: int) -> Composed | Impossible:
    """Write a plan as calls whose names follow those of earlier ones."""
    names = {step.output: f"step_{number}" for number, step in enumerate(plan.recipe.steps, after + 1) if step.output}
    doubts = [*plan.doubts]
    calls = []
    for step in plan.recipe.steps:
        call = write_call(_renamed(step, names), given)
        if isinstance(call, Fault):
            return _inexpressible(call)
        if step.pages is not None:
            doubts.append(f"Only the first page of `{step.method} {step.path}` is read.")
        calls.append(call)
    shown = {name: write_value(_rename(one, names), given) for name, one in (plan.recipe.output or {}).items()}
    result = {name: one for name, one in shown.items() if not isinstance(one, Fault)}
    needs = sorted({name for call in calls for name in _inputs(call["parameters"])})
    return Composed(
        calls=tuple(calls),
        endpoints=plan.endpoints,
        quality=plan.quality,
        result=result,
        doubts=tuple(doubts),
        needs=tuple(name for name in needs if name not in given),
    )


def _inexpressible(fault: Fault) -> Impossible:
    reason = f"The calls do not fit together without more: {fault.message}. PROPOSE an endpoint with these fields."
    return Impossible(misses=(Miss(field="output", reason=reason),))


def _renamed(step: RecipeStep, names: Mapping[str, str]) -> RecipeStep:
    given = {name: _rename(source, names) for name, source in step.input.items()}
    return replace(step, input=given, output=names.get(step.output or "", step.output))


def _rename(source: Source, names: Mapping[str, str]) -> Source:
    conditions = tuple(
        replace(one, right=None if one.right is None else _rename(one.right, names)) for one in source.where
    )
    if source.kind != "previous_step":
        return replace(source, where=conditions)
    head, dot, rest = str(source.value).partition(".")
    return replace(source, value=f"{names.get(head, head)}{dot}{rest}", where=conditions)


def _inputs(value: Any) -> set[str]:
    """Return the members of the input that a value refers to."""
    if isinstance(value, list):
        return set[str]().union(*map(_inputs, value))
    if not isinstance(value, dict):
        return set()
    if isinstance(value.get("$from"), str):
        return {value["$from"].split(".")[1].split("[")[0]} if value["$from"].startswith("input.") else set()
    if isinstance(value.get("$expr"), str):
        return set(re.findall(r"\binput\.(\w+)", value["$expr"]))
    return set[str]().union(*map(_inputs, value.values()))


def _outputs(made: Composed) -> dict[str, str]:
    """Return where later calls find fields by their name: in what the last call that has one returns."""
    found = {}
    for call, endpoint in zip(made.calls, made.endpoints, strict=True):
        for name in endpoint.output_schema.get("properties", {}):
            if re.fullmatch(r"\w+", name):
                found[name] = f"{call['name']}.{name}"
    return found


def _join(before: Composed, after: Composed) -> Composed:
    return Composed(
        calls=(*before.calls, *after.calls),
        endpoints=(*before.endpoints, *after.endpoints),
        quality=before.quality * after.quality,
        result=after.result,
        doubts=(*before.doubts, *after.doubts),
        needs=tuple(dict.fromkeys((*before.needs, *after.needs))),
    )


def _split(text: str) -> Sequence[str]:
    """Split a goal into the things to do; words without a verb belong to the part before them."""
    parts: list[str] = []
    for part in _PARTS.split(text):
        if parts and not head_verbs(part[:200]):
            parts[-1] += f" {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts if len(parts) <= _MOST_PARTS else (text,)
