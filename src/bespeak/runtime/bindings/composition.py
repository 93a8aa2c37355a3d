"""Compositions: the composition binding (AGTP-API 12.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Recipe
from bespeak.runtime.composition.plan import plan_composition
from bespeak.runtime.composition.run import run_composition


def bind_composition(endpoint: Endpoint, recipe: Recipe, endpoints: Sequence[Endpoint]) -> Callable[..., Any]:
    """Return the call of a composition, `(call, run_step)`; `endpoints` are those of its steps, in order."""
    return partial(run_composition, plan_composition(endpoint, recipe, endpoints))
