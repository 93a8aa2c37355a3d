"""Goals of PLAN: wanted fields or a text, and the calls that reach them with the endpoints that a caller may use."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import IMPACTS, Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.limits import read_cost
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.matching.calibration import FLOOR
from bespeak.contract.recipe import Condition, Recipe, RecipeStep, Source
from bespeak.contract.schema.view import json_type
from bespeak.extensions.negotiation.plan import Impossible, Miss, Plan
from bespeak.extensions.negotiation.planner.planner import Planner
from bespeak.runtime.handling import invalid
from bespeak.runtime.route_table import RouteTable
from bespeak.text.language.head_verb import head_verbs

LONGEST_TEXT: Final = 2000
MOST_FIELDS: Final = 100
MOST_STEPS: Final = 8
_GOAL: Final = frozenset({"text", "method", "path", "output"})
_CONSTRAINTS: Final = frozenset({"given", "max_steps", "impact", "max_cost"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    text: str = ""
    method: str = "FETCH"
    path: str = ""  # resource of the wanted fields; empty for a goal in words
    output: Mapping[str, Any] = field(default_factory=dict)  # JSON Schema of the wanted fields
    given: Mapping[str, Any] = field(default_factory=dict)  # values that the caller knows already
    max_steps: int = MOST_STEPS
    impact: str = IMPACTS[-1]  # worst impact that a step may have
    max_cost: Mapping[str, Decimal] = field(default_factory=dict)
    methods: frozenset[str] = frozenset()  # methods that steps may have; empty for all
    assumptions: tuple[str, ...] = ()

    @property
    def input(self) -> dict[str, Any]:
        return {name: {"type": "string" if value is None else json_type(value)} for name, value in self.given.items()}


def read_goal(given: Mapping[str, Any]) -> Goal:
    """Read the parameters of PLAN. Raises RefusedError for one that cannot be used."""
    goal, limits = given["goal"], given.get("constraints", {})
    named = given.get("available_methods", ())
    methods = [one.strip() for one in named.split(",")] if isinstance(named, str) else named
    if not all(isinstance(one, str) for one in methods):
        raise invalid("available_methods", "must be names of methods.")
    fields = {"text": goal} if isinstance(goal, str) else dict(goal)
    if (fault := _find_fault(fields)) is not None:
        raise invalid("goal", fault)
    assumptions: tuple[str, ...] = ()
    if isinstance(limits, str):
        limits, assumptions = {}, (f"Constraints in words are not checked: {limits[:200]}",)
    if (fault := _find_fault_in_limits(limits)) is not None:
        raise invalid("constraints", fault)
    cost, _ = read_cost(limits.get("max_cost", {}))
    return Goal(
        text=fields.get("text", ""),
        method=fields.get("method", "FETCH").upper(),
        path=fields.get("path", ""),
        output=_schema(fields.get("output", {})),
        given=limits.get("given", {}),
        max_steps=min(limits.get("max_steps", MOST_STEPS), MOST_STEPS),
        impact=limits.get("impact", IMPACTS[-1]),
        max_cost={} if cost is None else cost.amounts,
        methods=frozenset(one.upper() for one in methods if one),
        assumptions=assumptions,
    )


def _find_fault(fields: Mapping[str, Any]) -> str | None:
    texts = (fields.get(name, "") for name in ("text", "method", "path"))
    if not fields.keys() <= _GOAL or not all(isinstance(text, str) for text in texts):
        return f"must be a text, or an object with {', '.join(sorted(_GOAL))}."
    if len(fields.get("text", "")) > LONGEST_TEXT:
        return f"must have at most {LONGEST_TEXT} characters; got {len(fields['text'])}."
    if "output" not in fields:
        return None if fields.get("text", "").strip() else "must say what is wanted: a text, or `path` and `output`."
    if not fields.get("path", "").startswith("/"):
        return "needs the `path` of the resource whose fields are wanted, like /guests/bookings."
    output = fields["output"]
    if not isinstance(output, (list, dict)) or not output or len(output) > MOST_FIELDS:
        return f"must have `output`, a list of 1 to {MOST_FIELDS} fields, or their types or JSON Schema."
    if isinstance(output, list) and not all(isinstance(one, str) for one in output):
        return "must have the names of fields in `output`."
    return None


def _find_fault_in_limits(limits: Mapping[str, Any]) -> str | None:
    if not limits.keys() <= _CONSTRAINTS:
        unknown = min(limits.keys() - _CONSTRAINTS)
        return f"has {unknown[:80]!r}, which cannot be kept; it takes {', '.join(sorted(_CONSTRAINTS))}."
    steps = limits.get("max_steps", 1)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        return "has a `max_steps` that is not a number of 1 or more."
    if limits.get("impact", IMPACTS[0]) not in IMPACTS:
        return f"has an `impact` that is not one of {', '.join(IMPACTS)}."
    for name in ("given", "max_cost"):
        if not isinstance(limits.get(name, {}), dict) or len(limits.get(name, {})) > MOST_FIELDS:
            return f"has a `{name}` that is not an object of at most {MOST_FIELDS} members."
    _, faults = read_cost(limits.get("max_cost", {}))
    return f"has a `max_cost` that is not valid: {faults[0].message}." if faults else None


def _schema(output: Any) -> dict[str, Any]:
    if isinstance(output, dict) and isinstance(output.get("properties"), dict):
        return output
    named = {name: {} for name in output} if isinstance(output, list) else output
    return _object({name: {"type": one} if isinstance(one, str) else one for name, one in named.items()})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_OPERATORS: Final = {"eq": "==", "ne": "!=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_ROW: Final = "row"


class UnwritableError(Exception):
    """A step or a value of a recipe that CHAIN cannot say."""


def write_call(step: RecipeStep, given: Mapping[str, Any]) -> dict[str, Any]:
    """Write a step of a recipe as one of CHAIN: `given` are values that are known now; others come from `input`."""
    if step.for_each is not None or step.when or step.compensate is not None:
        raise UnwritableError("a call must be made for each element of a list, or under a condition")
    parameters = {name: write_value(source, given) for name, source in step.input.items()}
    return {"name": step.output, "method": step.method, "path": step.path or "/", "parameters": parameters}


def write_value(source: Source, given: Mapping[str, Any]) -> Any:
    if source.kind == "constant":
        return source.value
    if source.kind == "proposal" and source.value in given and _is_plain(source):
        return given[source.value]
    if (
        source.sort is not None
        or source.limit is not None
        or source.select is not None
        or source.reduce
        or source.form
        or source.kind == "item"
    ):
        raise UnwritableError(f"the values of {source.value!r} must be sorted, cut, converted or shaped between calls")
    text = str(source.value) if source.kind == "previous_step" else f"input.{source.value}"
    if _WORD.fullmatch(text) is None or (source.get and _WORD.fullmatch(source.get) is None):
        raise UnwritableError(f"the field {text!r} has a name that expressions cannot say")
    rest = f".{source.get}" if source.get else ""
    if not source.where and source.pick in ("all", "first"):
        return {"$from": f"{text}[0]{rest}" if source.pick == "first" else f"{text}{rest}"}
    text = f"steps.{text}" if source.kind == "previous_step" else text
    conditions = " && ".join(map(_condition, source.where))
    rows = f"{text}.filter({_ROW}, {conditions})" if conditions else text
    if source.pick == "all":
        return {"$expr": f"{rows}.map({_ROW}, {_ROW}{rest})" if rest else rows}
    # Where only one may be meant, several are an error: there is no element -1.
    index = "0" if source.pick == "first" else f"{rows}.size() == 1 ? 0 : -1"
    return {"$expr": f"{rows}[{index}]{rest}"}


def _is_plain(source: Source) -> bool:
    return not source.where and source.pick == "all" and not source.get


def _condition(condition: Condition) -> str:
    left, right = condition.left, condition.right
    operator = _OPERATORS.get(condition.op)
    if operator is None or right is None or left.kind != "item" or _WORD.fullmatch(str(left.value)) is None:
        raise UnwritableError(f"elements must be chosen by {condition.op!r} between calls")
    if right.kind == "constant":
        return f"{_ROW}.{left.value} {operator} {msgspec.json.encode(right.value).decode()}"
    place = {"proposal": "input", "previous_step": "steps"}.get(right.kind)
    if place is None or not _is_plain(right) or _WORD.fullmatch(str(right.value)) is None:
        raise UnwritableError("elements must be compared with other elements between calls")
    return f"{_ROW}.{left.value} {operator} {place}.{right.value}"


DOUBTFUL: Final = 0.5  # confidence below which it is doubted that an endpoint is what words mean
LEAST: Final = 0.15  # confidence below which an endpoint that only reads is not taken for what words mean
_PARTS: Final = re.compile(r"(?:,\s*|\s+)(?:and\s+)?then\s+|[;.]\s+|,?\s+and\s+(?=\w)", re.IGNORECASE)

Usable = Callable[[Endpoint], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    calls: tuple[dict[str, Any], ...]  # steps as CHAIN takes them
    endpoints: tuple[Endpoint, ...]
    quality: float
    result: Mapping[str, Any] = field(default_factory=dict)  # where the wanted fields come from
    doubts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # input that the caller still has to give


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
        if not goal.path:
            return self._from_words(goal, usable)
        plan = self._planner.plan(_wanted(goal, goal.output), usable, depth=goal.max_steps)
        return plan if isinstance(plan, Impossible) else _write(plan, goal.given, 0)

    def _from_words(self, goal: Goal, usable: Usable) -> Composed | Impossible:
        made: Composed | None = None
        for part in _split(goal.text):
            found = self._target(part, usable)
            if isinstance(found, Impossible):
                return found
            target, score, doubts = found
            following = self._reach(target, goal, usable, made)
            if isinstance(following, Impossible):
                return following
            following = replace(following, quality=following.quality * score, doubts=(*doubts, *following.doubts))
            if made is not None:
                following = replace(
                    following,
                    calls=(*made.calls, *following.calls),
                    endpoints=(*made.endpoints, *following.endpoints),
                    quality=made.quality * following.quality,
                    doubts=(*made.doubts, *following.doubts),
                    needs=tuple(dict.fromkeys((*made.needs, *following.needs))),
                )
            made = following
        assert made is not None
        if len(made.calls) > goal.max_steps:
            miss = Miss(field="goal", reason=f"It takes {len(made.calls)} calls, more than allowed.")
            return Impossible(misses=(miss,))
        return made

    def _target(self, words: str, usable: Usable) -> tuple[Endpoint, float, tuple[str, ...]] | Impossible:
        found = self._index.match(words, floor=0.0, admits=lambda place: usable(self._endpoints[place]))
        nearest = [self._endpoints[one.place] for one in found]
        least = LEAST if found and nearest[0].semantic.impact == IMPACTS[0] else FLOOR
        if not found or found[0].confidence < least:
            said = words[:80]
            near = [Miss(field=said, reason=f"`{one}` is the nearest endpoint.", nearest=one) for one in nearest]
            return Impossible(misses=(Miss(field=said, reason="No endpoint that the agent may call does this."), *near))
        score, target = found[0].confidence, nearest[0]
        doubts = []
        if score < DOUBTFUL:
            doubts.append(f"It is doubtful whether {words[:80]!r} means `{target}`.")
        if len(found) > 1 and found[1].score >= 0.9 * found[0].score:
            doubts.append(f"{words[:80]!r} may also mean `{nearest[1]}`.")
        return target, min(score / DOUBTFUL, 1.0) if score < DOUBTFUL else 1.0, tuple(doubts)

    def _reach(self, target: Endpoint, goal: Goal, usable: Usable, before: Composed | None) -> Composed | Impossible:
        """Compose a call of an endpoint with the calls that its input comes from."""
        # Where fields are found by their name: in what the last call that has one returns.
        sources = {
            name: f"{call['name']}.{name}"
            for call, endpoint in (() if before is None else zip(before.calls, before.endpoints, strict=True))
            for name in endpoint.output_schema.get("properties", {})
            if re.fullmatch(r"\w+", name)
        }
        known = {**{name: {} for name in sources}, **goal.given}
        required = [name for name in target.input_schema.get("required", ()) if name not in known]
        at = 0 if before is None else len(before.calls)
        if required:
            wanted = replace(goal, method=target.method, path=target.path, given=goal.given)
            plan = self._planner.plan(_wanted(wanted, target.output_schema), usable, depth=goal.max_steps)
            if isinstance(plan, Plan) and target.key in [endpoint.key for endpoint in plan.endpoints]:
                return _write(plan, goal.given, at)
        names = [name for name in target.input_schema.get("properties", {}) if name in known or name in required]
        given = {name: Source(kind="proposal", value=name) for name in names}
        step = RecipeStep(method=target.method, path=target.path, input=given, output="step_1")
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
    properties = {**{name: {"type": "string"} for name in re.findall(r"\{(\w+)\}", goal.path)}, **goal.input}
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
        input_schema={**_object(properties), "additionalProperties": False},
        output_schema=output,
        handler=OpaqueHandler(type="composition"),
    )


def _write(plan: Plan, given: Mapping[str, Any], after: int) -> Composed | Impossible:
    """Write a plan as calls whose names follow those of earlier ones."""
    names = {step.output: f"step_{number}" for number, step in enumerate(plan.recipe.steps, after + 1) if step.output}
    doubts = [*plan.doubts]
    calls = []
    for step in plan.recipe.steps:
        sources = {name: _rename(source, names) for name, source in step.input.items()}
        renamed = replace(step, input=sources, output=names.get(step.output or "", step.output))
        try:
            calls.append(write_call(renamed, given))
        except UnwritableError as error:
            reason = f"The calls do not fit together without more: {error}. PROPOSE an endpoint with these fields."
            return Impossible(misses=(Miss(field="output", reason=reason),))
        if step.pages is not None:
            doubts.append(f"Only the first page of `{step.method} {step.path}` is read.")
    result = {}
    for name, one in (plan.recipe.output or {}).items():
        with suppress(UnwritableError):  # the output has the other fields
            result[name] = write_value(_rename(one, names), given)
    needs = sorted({name for call in calls for name in _inputs(call["parameters"])})
    missing = tuple(name for name in needs if name not in given)
    made: dict[str, Any] = {"calls": tuple(calls), "result": result, "doubts": tuple(doubts), "needs": missing}
    return Composed(endpoints=plan.endpoints, quality=plan.quality, **made)


def _rename(source: Source, names: Mapping[str, str]) -> Source:
    where = tuple(replace(one, right=None if one.right is None else _rename(one.right, names)) for one in source.where)
    if source.kind != "previous_step":
        return replace(source, where=where)
    head, dot, rest = str(source.value).partition(".")
    return replace(source, value=f"{names.get(head, head)}{dot}{rest}", where=where)


def _inputs(value: Any) -> set[str]:
    if isinstance(value, list):
        return set[str]().union(*map(_inputs, value))
    if not isinstance(value, dict):
        return set()
    if isinstance(value.get("$from"), str):
        return {value["$from"].split(".")[1].split("[")[0]} if value["$from"].startswith("input.") else set()
    if isinstance(value.get("$expr"), str):
        return set(re.findall(r"\binput\.(\w+)", value["$expr"]))
    return set[str]().union(*map(_inputs, value.values()))


def _split(text: str) -> Sequence[str]:
    """Split a goal into the things to do; words without a verb belong to the part before them."""
    parts: list[str] = []
    for part in _PARTS.split(text):
        if parts and not head_verbs(part[:200]):
            parts[-1] += f" {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts if 1 < len(parts) <= 6 else (text,)
