"""A plan: a proposed endpoint composed of existing ones (AGTP-API 10.4). It promises no more than its steps do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import IMPACTS, Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.recipe import Recipe
from bespeak.contract.schema.subschemas import DATA_KEYWORDS, NAMING_KEYWORDS, nodes, resolve
from bespeak.contract.schema.view import overlaps
from bespeak.extensions.negotiation.proposal import LONGEST_TEXT, Proposal

CERTAIN: Final = 0.62
"""Quality from which a plan is approved. Below it, the plan is only offered as a counter-proposal."""
PLAUSIBLE: Final = 0.35  # quality below which a plan is not even offered


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A recipe whose steps fit together. What it publishes is derived from its steps, never from the proposer."""

    recipe: Recipe
    endpoints: tuple[Endpoint, ...]  # endpoint of each step, in the order of the recipe
    quality: float  # how sure it is that the plan means what the proposal means, 0 to 1
    explanation: tuple[str, ...] = ()  # what each step does, for people
    output: Mapping[str, Any] | None = None  # schema of its output, if that is not the proposed one
    doubts: tuple[str, ...] = ()  # choices that the proposal leaves open, each with what would settle it

    @property
    def is_certain(self) -> bool:
        return self.quality >= CERTAIN

    @cached_property
    def impact(self) -> str:
        return max((endpoint.semantic.impact for endpoint in self.endpoints), key=IMPACTS.index)

    @cached_property
    def is_idempotent(self) -> bool:
        """True if every step is idempotent and at most one of them changes something."""
        changing = [endpoint for endpoint in self.endpoints if endpoint.semantic.impact != "informational"]
        return len(changing) <= 1 and all(endpoint.semantic.is_idempotent for endpoint in self.endpoints)

    @cached_property
    def confidence(self) -> float:
        """Product of the steps' confidences and the quality of the plan."""
        return round(prod(endpoint.semantic.confidence for endpoint in self.endpoints) * self.quality, 4)

    @cached_property
    def scopes(self) -> tuple[str, ...]:
        return tuple(sorted({scope for endpoint in self.endpoints for scope in endpoint.required_scopes}))

    @cached_property
    def has_internal(self) -> bool:
        """True if a step calls an internal endpoint, so that the words of the plan are not for the caller."""
        return any(endpoint.internal for endpoint in self.endpoints)

    def is_worse_than(self, proposal: Proposal) -> bool:
        """Return True if the proposal claims a lesser impact than a call would have."""
        claimed = proposal.endpoint.semantic.impact
        return not proposal.is_brief and IMPACTS.index(claimed) < IMPACTS.index(self.impact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A field of a proposal that no plan covers."""

    field: str  # path of the field, such as `invoices[].total`
    reason: str  # what is wrong, in a sentence
    nearest: Endpoint | None = None  # the endpoint that came closest; None if none did


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    misses: tuple[Miss, ...]
    exhausted: bool = False  # True if the search ended at its bound, so that a plan may exist


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedContract:
    endpoint: Endpoint
    recipe: Recipe
    explanation: tuple[str, ...]  # what each step does; internal endpoints are not named
    is_public: bool = True  # False if a scope of it is only that of an internal step, so that no manifest may list it


def make_contract(proposal: Proposal, plan: Plan, *, states_plan: bool = False) -> PlannedContract:
    """Derive the contract of a plan; the proposer may only have claimed worse. `states_plan`: the description does."""
    proposed = proposal.endpoint
    claimed = proposed.semantic
    if proposal.is_brief:
        impact, is_idempotent = plan.impact, plan.is_idempotent
    else:
        impact = max(claimed.impact, plan.impact, key=IMPACTS.index)
        is_idempotent = claimed.is_idempotent and plan.is_idempotent
    semantic = replace(
        claimed, impact=impact, is_idempotent=is_idempotent, confidence=min(claimed.confidence, plan.confidence)
    )
    name = f"synthesis-{proposal.contract[:16]}"
    explanation = explain(plan)
    description = " ".join(" ".join(explanation).split()) if states_plan else proposed.description
    if states_plan and len(description) > LONGEST_TEXT:
        description = f"{description[: LONGEST_TEXT - 3]}..."
    endpoint = replace(
        proposed,
        semantic=semantic,
        required_scopes=tuple(sorted({*proposed.required_scopes, *plan.scopes})),
        handler=Composition(recipe=name),
        description=description,
    )
    named = {scope for part in plan.endpoints if not part.internal for scope in part.required_scopes}
    return PlannedContract(
        endpoint=endpoint,
        recipe=replace(plan.recipe, name=name, pattern={}),
        explanation=explanation,
        is_public=named.issuperset({*plan.scopes} - {*proposed.required_scopes}),
    )


def loosen(schema: Mapping[str, Any], paths: Iterable[tuple[str, ...]]) -> dict[str, Any] | None:
    """Return a schema that does not require the fields at some paths; None if it requires them by a reference."""
    loose: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(schema))
    for path in paths:
        place: Any = loose
        for name in path[:-1]:
            place = place.get("items") if name == "[]" else place.get("properties", {}).get(name)
            if not isinstance(place, dict):
                return None
        if path[-1] not in place.get("required", ()):
            return None
        place["required"].remove(path[-1])
    return loose


def explain(plan: Plan) -> tuple[str, ...]:
    """Return what each step does; with an internal one, only the endpoints: names of fields would tell more."""
    if not plan.has_internal:
        return plan.explanation
    return tuple(
        f"Step {number}: {'an internal step' if endpoint.internal else f'call {endpoint}'}."
        for number, endpoint in enumerate(plan.endpoints, 1)
    )


Schema = Mapping[str, Any]

_NEVER: Final = frozenset(
    {
        *("minItems", "contains", "minContains", "maxContains", "minProperties", "propertyNames", "patternProperties"),
        *("not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"),
        *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
    }
)
"""Promises about several values at once: filters, projections and joins do not keep them."""


class Promises:
    """The promises of a proposal's output that its plan keeps, and those that it does not."""

    def __init__(self, proposed: Endpoint, endpoints: Iterable[Endpoint]) -> None:
        self.unkept: list[str] = []  # promises that nobody keeps, like `rooms[].name` and its keyword
        self._root = proposed.output_schema
        self._made: dict[str, list[Schema]] = defaultdict(list)
        # A value that is given comes back as it was.
        for schema in (proposed.input_schema, *(endpoint.output_schema for endpoint in endpoints)):
            for at, node in nodes(dict(schema)):
                if len(at) > 1 and at[-2] == "properties":
                    self._made[str(at[-1])].append(resolve(node, schema, most=5))
        described = (node.get("properties") for _, node in nodes(dict(proposed.output_schema)))
        self._described = {name for properties in described if isinstance(properties, dict) for name in properties}
        self.output: Schema = self._keep(proposed.output_schema, None, "")  # the proposed output schema without them

    def _keep(self, node: Any, name: str | None, at: str) -> Any:
        if not isinstance(node, dict):
            return node
        kept: dict[str, Any] = {}
        place = f"`{at}`" if at else "the output"
        for keyword, value in node.items():
            if keyword == "required" and not self._described.issuperset(value):
                # No step fills a field that the proposal does not describe.
                self.unkept += [f"`{one}` of {place}" for one in value if one not in self._described]
                kept[keyword] = [one for one in value if one in self._described]
            elif not self._is_kept(keyword, value, name):
                self.unkept.append(f"`{keyword}` of {place}")
            elif keyword in NAMING_KEYWORDS and isinstance(value, dict):
                # Who refers to a definition is not known, so its promises may be those of any field.
                kept[keyword] = {
                    key: self._keep(one, key if keyword == "properties" else None, f"{at}.{key}".lstrip("."))
                    for key, one in value.items()
                }
            elif keyword in DATA_KEYWORDS:
                kept[keyword] = value
            elif isinstance(value, list):
                kept[keyword] = [self._keep(one, name, at) for one in value]
            else:
                kept[keyword] = self._keep(value, name, f"{at}[]" if keyword == "items" else at)
        return kept

    def _is_kept(self, keyword: str, value: Any, name: str | None) -> bool:
        if keyword in _NEVER:
            return False
        holds = _HOLDS.get(keyword)
        if holds is None or (keyword == "oneOf" and not any(overlaps(value, self._root))):
            return True
        made = self._made.get(name, []) if name is not None else [one for many in self._made.values() for one in many]
        return any(keyword in one and holds(one[keyword], value) for one in made)


_HOLDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    **dict.fromkeys(("const", "multipleOf", "pattern", "uniqueItems", "oneOf"), lambda made, wanted: made == wanted),
    **dict.fromkeys(
        ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"),
        lambda made, wanted: isinstance(made, int | float) and made <= wanted,
    ),
    **dict.fromkeys(
        ("minimum", "exclusiveMinimum", "minLength"),
        lambda made, wanted: isinstance(made, int | float) and made >= wanted,
    ),
    "enum": lambda made, wanted: isinstance(made, list) and isinstance(wanted, list) and all(x in wanted for x in made),
}
"""Whether a promise that is made includes the one that is wanted, by keyword."""
