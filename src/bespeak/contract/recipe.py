"""Recipes: named compositions of endpoints (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bespeak.text.source.span import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeStep:
    """One call of a recipe."""

    method: str
    path: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    """Sources of the step's input, as in the file."""
    output: str | None = None
    """Name by which later steps refer to the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A named, ordered list of steps."""

    name: str
    steps: tuple[RecipeStep, ...]
    description: str = ""
    version: str = "1"
    pattern: Mapping[str, Any] = field(default_factory=dict)
    """Proposals that the recipe answers, as in the file."""
    aggregation: str = "last"
    """Aggregation of the steps' outputs: the `last` one, a `merge` of all, or a `list`."""
    location: Location | None = None
