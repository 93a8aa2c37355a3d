"""A plan: how a proposed endpoint can be composed of existing ones, and what that makes of it (AGTP-API 10.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Recipe
from bespeak.contract.semantic import IMPACTS

CERTAIN: Final = 0.62
"""Quality from which a plan is approved. Below it, the plan is only offered as a counter-proposal."""
PLAUSIBLE: Final = 0.35
"""Quality below which a plan is not even offered."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A recipe whose steps fit together. What it publishes is derived from its steps, never from the proposer."""

    recipe: Recipe
    endpoints: tuple[Endpoint, ...]
    """Endpoint of each step, in the order of the recipe."""
    quality: float
    """How sure it is that the plan means what the proposal means, 0 to 1."""
    explanation: tuple[str, ...] = ()
    """What each step does, for people."""
    doubts: tuple[str, ...] = ()
    """Choices that the proposal leaves open, each with what would settle it."""

    @property
    def is_certain(self) -> bool:
        """True if the plan may be approved without asking."""
        return self.quality >= CERTAIN

    @cached_property
    def impact(self) -> str:
        """Worst impact of the steps."""
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
        """Union of the steps' scopes, sorted."""
        return tuple(sorted({scope for endpoint in self.endpoints for scope in endpoint.required_scopes}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A field of a proposal that no plan covers."""

    field: str
    """Path of the field, such as `invoices[].total`."""
    reason: str
    """What is wrong, in a sentence."""
    nearest: Endpoint | None = None
    """The endpoint that came closest; None if none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """No plan was found."""

    misses: tuple[Miss, ...]
    exhausted: bool = False
    """True if the search ended at its bound, so that a plan may exist."""
