"""Operators' recipes that answer a proposal: those whose pattern fits it (AGTP-API 12.1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Recipe
from bespeak.runtime.negotiation.plan import Plan


def match_recipe(
    proposed: Endpoint,
    recipes: Iterable[Recipe],
    catalog: Catalog,
    lookup: Callable[[tuple[str, str]], Endpoint | None],
) -> Plan | None:
    """Return the plan of the first recipe that answers the proposal; None if there is none."""
    for recipe in recipes:
        if recipe.pattern and _fits(recipe, proposed, catalog):
            endpoints = [lookup(step.endpoint) for step in recipe.steps]
            called = tuple(endpoint for endpoint in endpoints if endpoint is not None)
            if len(called) == len(endpoints):
                explanation = tuple(f"Calls {endpoint}." for endpoint in called)
                return Plan(recipe=recipe, endpoints=called, quality=1.0, explanation=explanation)
    return None


def _fits(recipe: Recipe, proposed: Endpoint, catalog: Catalog) -> bool:
    verb = catalog.verbs.get(proposed.method)
    properties = proposed.input_schema.get("properties")
    given = properties if isinstance(properties, dict) else {}
    tests: dict[str, Callable[..., bool]] = {
        "name_exact": lambda name: bool(name == proposed.method),
        "name_regex": lambda pattern: re.fullmatch(pattern, proposed.method) is not None,
        "category": lambda category: verb is not None and category in verb.categories,
        "path_exact": lambda path: bool(path == proposed.path),
        "path_regex": lambda pattern: re.fullmatch(pattern, proposed.path) is not None,
        "has_parameters": lambda names: set(names) <= given.keys(),
    }
    return all(tests[key](value) for key, value in recipe.pattern.items() if value)
