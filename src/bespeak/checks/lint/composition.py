"""Compositions of a service: which can be served beside which endpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from bespeak.checks.lint.failed_check import attempt
from bespeak.checks.lint.rules import composition, composition_value
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors

Key = tuple[str, str]


def check_compositions(
    composed: Sequence[Endpoint], recipes: Mapping[str, Recipe], served: Mapping[Key, Endpoint], policies: Policies
) -> Iterator[tuple[Endpoint, Mapping[Key, Endpoint] | None, list[Diagnostic]]]:
    """Yield each composition with the endpoints that it calls, or None if it cannot be served, and its findings.

    `served` are endpoints that can be called. A composition may call another one, which then comes first.
    """
    if not composed:
        return
    known = dict(served)
    sizes = {key: _size(endpoint, known, recipes) for key, endpoint in served.items()}
    waiting = {endpoint.key: (endpoint, _recipe(endpoint, recipes)) for endpoint in composed}
    while True:
        ready = [key for key, (_, recipe) in waiting.items() if all(called in known for called in recipe.calls)]
        if not ready:
            break
        for key in ready:
            endpoint, recipe = waiting.pop(key)
            called = {one: known[one] for one in recipe.calls}
            size = sum(sizes[step.endpoint] for step in recipe.steps)
            found = list(attempt(composition.check, endpoint, recipe, called, policies, size, endpoint=endpoint))
            found += attempt(composition_value.check, endpoint, recipe, called, endpoint=endpoint)
            if has_errors(found):
                yield endpoint, None, found
            else:
                known[key], sizes[key] = endpoint, size
                yield endpoint, called, found
    for endpoint, recipe in waiting.values():
        yield endpoint, None, [_stuck(endpoint, recipe, waiting, known)]


def _recipe(endpoint: Endpoint, recipes: Mapping[str, Recipe]) -> Recipe:
    assert isinstance(endpoint.handler, Composition)
    return recipes[endpoint.handler.recipe]


def _size(endpoint: Endpoint, served: Mapping[Key, Endpoint], recipes: Mapping[str, Recipe]) -> int:
    """Count the calls that a call of an endpoint makes: one, or those of its steps."""
    if not isinstance(endpoint.handler, Composition) or endpoint.handler.recipe not in recipes:
        return 1
    steps = (served.get(step.endpoint) for step in recipes[endpoint.handler.recipe].steps)
    return sum(1 if step is None else _size(step, served, recipes) for step in steps)


def _stuck(
    endpoint: Endpoint, recipe: Recipe, waiting: Mapping[Key, tuple[Endpoint, Recipe]], known: Mapping[Key, Endpoint]
) -> Diagnostic:
    """Report why a composition has no place in any order: a step is missing, or the steps form a cycle."""
    missing = next((called for called in recipe.calls if called not in known and called not in waiting), None)
    if missing is not None:
        named = [" ".join(key) for key, other in known.items() if not other.internal]
        near = get_close_matches(" ".join(missing), named, n=2)
        return composition.missing_step(endpoint, recipe, missing, near)
    way = _way_back(endpoint.key, waiting)
    if way is not None:
        return composition.cycle(endpoint, recipe, way)
    return composition.missing_step(endpoint, recipe, next(called for called in recipe.calls if called in waiting), ())


def _way_back(start: Key, waiting: Mapping[Key, tuple[Endpoint, Recipe]]) -> list[Endpoint] | None:
    """Return the compositions by way of which one calls itself; None if it does not."""
    seen: set[Key] = set()
    ways: list[tuple[Key, list[Endpoint]]] = [(start, [])]
    while ways:
        key, way = ways.pop(0)
        for called in waiting[key][1].calls:
            if called == start:
                return way
            if called in waiting and called not in seen:
                seen.add(called)
                ways.append((called, [*way, waiting[called][0]]))
    return None
