"""Normative rules for registration: one endpoint, all endpoints together, the policies, the compositions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any, Final

from bespeak.checks.lint.rules import composition, error, handler, method, path, policy, schema, semantic
from bespeak.checks.lint.subject import attempt
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.service import Service
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.source.pointer import pointer
from bespeak.text.source.tree import Location

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ADVICE: Final = "Remove it; text from the command line or the environment may be in another encoding than UTF-8."


def check_endpoint_encoding(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Check the texts of an endpoint declared in Python, beside its schemas, which must be JSON in any case."""
    for parts, text in _unencodable(replace(endpoint, input_schema={}, output_schema={})):
        yield WRONG_VALUE.at(endpoint, pointer(parts), f"{brief(text)} contains half a surrogate pair", _ADVICE)


def check_service_encoding(service: Service) -> Iterator[Diagnostic]:
    """Check the texts of a service beside its endpoints."""
    for parts, text in _unencodable(replace(service, endpoints=())):
        yield WRONG_VALUE.inside(pointer(parts), f"{brief(text)} contains half a surrogate pair", _ADVICE)


def _unencodable(value: Any, parts: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Find texts that UTF-8 cannot encode, with their places. Names of files may be such texts."""
    inside: Iterable[tuple[object, Any]] = ()
    if isinstance(value, str):
        if _SURROGATE.search(value):
            yield parts, value
    elif isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    elif is_dataclass(value) and not isinstance(value, Location | type):
        inside = ((field.name, getattr(value, field.name)) for field in fields(value))
    for name, inner in inside:
        if isinstance(value, Mapping):
            yield from _unencodable(name, parts)
        yield from _unencodable(inner, (*parts, str(name)))


def check_endpoint(
    endpoint: Endpoint, catalog: Catalog, policies: Policies, recipes: Sequence[Recipe] = ()
) -> list[Diagnostic]:
    """Check one endpoint by itself. It must not be registered if there is an error."""
    return [*check_contract(endpoint, catalog, policies), *check_binding(endpoint, recipes)]


def check_contract(endpoint: Endpoint, catalog: Catalog, policies: Policies) -> Iterator[Diagnostic]:
    """Check what AGTP-API requires of an endpoint in any document."""
    methods = policies.methods
    return attempt(
        (method.check_endpoint, endpoint, catalog, methods),
        (path.check_endpoint, endpoint, catalog.names),
        (semantic.check_endpoint, endpoint, methods.custom),
        (schema.check_endpoint, endpoint),
        (error.check_endpoint, endpoint),
        (policy.check, endpoint, catalog.names),
        (check_endpoint_encoding, endpoint),
        endpoint=endpoint,
    )


def check_binding(endpoint: Endpoint, recipes: Sequence[Recipe]) -> Iterator[Diagnostic]:
    """Check what AGTP-API requires of a handler; a published contract contains none."""
    upstreams = ((handler.check_request, endpoint), (handler.check_mcp, endpoint))
    return attempt((handler.check, endpoint, {one.name for one in recipes}), *upstreams, endpoint=endpoint)


def check_service(endpoints: Iterable[Endpoint]) -> list[tuple[Endpoint, Diagnostic]]:
    """Find the endpoints that collide with an earlier one, each with its finding (AGTP-API 5.4, 6.1)."""
    claims = path.PathClaims()
    return [
        (endpoint, finding)
        for endpoint in endpoints
        for finding in attempt((path.check_collision, endpoint, claims), endpoint=endpoint)
    ]


def effective_policies(policies: Policies, catalog: Catalog) -> tuple[Policies, list[Diagnostic]]:
    """Return the policies in force; warn of entries whose method the catalog lacks (AGTP-API 9.4)."""
    return policy.effective(policies, catalog)


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
    waiting = {one.key: (one, recipes[one.handler.recipe]) for one in composed if isinstance(one.handler, Composition)}
    while True:
        ready = [key for key, (_, recipe) in waiting.items() if all(called in known for called in recipe.calls)]
        if not ready:
            break
        for key in ready:
            endpoint, recipe = waiting.pop(key)
            called = {one: known[one] for one in recipe.calls}
            size = sum(sizes[step.endpoint] for step in recipe.steps)
            checks = (
                (composition.check, endpoint, recipe, called, policies, size),
                (composition.check_values, endpoint, recipe, called),
            )
            found = list(attempt(*checks, endpoint=endpoint))
            if has_errors(found):
                yield endpoint, None, found
            else:
                known[key], sizes[key] = endpoint, size
                yield endpoint, called, found
    yield from ((endpoint, None, [_stuck(endpoint, recipe, waiting, known)]) for endpoint, recipe in waiting.values())


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
        return composition.missing_step(endpoint, recipe, missing, get_close_matches(" ".join(missing), named, n=2))
    if (way := _way_back(endpoint.key, waiting)) is not None:
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
