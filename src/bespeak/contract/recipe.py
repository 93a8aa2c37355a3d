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
    """How the step's input is made, as the file says it."""
    output: str | None = None
    """The name later steps know the result by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A named, ordered list of steps."""

    name: str
    steps: tuple[RecipeStep, ...]
    description: str = ""
    version: str = "1"
    pattern: Mapping[str, Any] = field(default_factory=dict)
    """Which proposals the recipe answers, as the file says it."""
    aggregation: str = "last"
    """What becomes of the steps' outputs: the `last` one, all in a `merge`, or a `list`."""
    location: Location | None = None
