"""What a composition may be made of on behalf of a caller, and what must not meet in one (AGTP-API 16.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import Composition
from bespeak.contract.negotiation import ForbiddenCombination, NegotiationSettings
from bespeak.contract.recipe import Recipe
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Refused, authorization_required
from bespeak.runtime.call import Call
from bespeak.runtime.disclosure import sees
from bespeak.runtime.negotiation.planner.resource import resource_of
from bespeak.runtime.negotiation.planner.term import noun_of, stems

Lookup = Callable[[tuple[str, str]], Endpoint | None]


def has_scopes(principal: Principal, endpoint: Endpoint) -> bool:
    """Return True if the caller holds every scope that the endpoint requires."""
    return not principal.scopes.missing(endpoint.required_scopes)


def is_admitted(settings: NegotiationSettings, endpoint: Endpoint) -> bool:
    """Return True if the search for compositions may know an endpoint; the operator says which internal ones."""
    return not endpoint.internal or any(fnmatchcase(str(endpoint), pattern) for pattern in settings.internal)


def may_use(call: Call, settings: NegotiationSettings, endpoint: Endpoint) -> bool:
    """Return True if a composition for the caller may contain the endpoint, scopes aside.

    An internal one is used only where the operator allows it, and only with its scopes: asking for them would reveal
    it.
    """
    route = call.routes.steps.get(endpoint.key)
    if route is None or endpoint.builtin or endpoint.missing or endpoint.method not in call.routes.allowed:
        return False
    if route.synthesis_id is not None:
        # Syntheses of syntheses would multiply: ten steps of ten steps of ten steps.
        return False
    if endpoint.internal:
        return is_admitted(settings, endpoint) and has_scopes(call.principal, endpoint)
    return sees(call, route)


def refuse_missing_scopes(call: Call, scopes: Iterable[str]) -> Refused | None:
    """Return the 262 of evaluation 5 if the caller lacks one of the scopes, or has none where one is required."""
    principal, required = call.principal, sorted(set(scopes))
    if required and principal.agent_id is None:
        names = ", ".join(required)
        return call.server.principals.credentials_missing(f"The proposed endpoint requires the scopes {names}")
    missing = principal.scopes.missing(required)
    if missing:
        message = f"The proposed endpoint requires the scopes {', '.join(missing)}, which the agent does not hold."
        return authorization_required(
            "scope-required",
            message,
            missing_scopes=missing,
            required_scopes=required,
            declared_scopes=[*principal.scopes],
        )
    if call.routes.policies.scope_required_for_invocation and not principal.scopes:
        message = "This server requires a scope for every call, so the proposed endpoint could not be called."
        return authorization_required("scope-required", message)
    return None


def refuse_unauthorized_data(call: Call, proposed: Endpoint) -> Refused | None:
    """Return the 262 for a proposal that names a data class in its path, if the caller lacks the scopes for it.

    Core 4.6: authorization comes first. Otherwise 463 would tell which columns a class has, and which it has not.
    """
    said = set(resource_of(proposed.path, ()).nouns)
    scopes = [
        scope
        for route in call.routes.steps.values()
        if route.endpoint.data_class is not None and noun_of(stems(route.endpoint.data_class)) in said
        for scope in route.endpoint.required_scopes
    ]
    return refuse_missing_scopes(call, scopes) if scopes else None


def list_parts(endpoints: Iterable[Endpoint], recipes: Mapping[str, Recipe], lookup: Lookup) -> list[Endpoint]:
    """List endpoints and, for compositions among them, everything that they call."""
    found: dict[tuple[str, str], Endpoint] = {}
    waiting = list(endpoints)
    while waiting:
        endpoint = waiting.pop()
        if endpoint.key in found:
            continue
        found[endpoint.key] = endpoint
        recipe = recipes.get(endpoint.handler.recipe) if isinstance(endpoint.handler, Composition) else None
        called = () if recipe is None else (lookup(step.endpoint) for step in recipe.steps)
        waiting += [part for part in called if part is not None]
    return list(found.values())


def find_forbidden(settings: NegotiationSettings, parts: Iterable[Endpoint]) -> ForbiddenCombination | None:
    """Return the first combination of which a composition has every member; None if it has none."""
    words = {word for part in parts for word in _words(part)}
    for combination in settings.forbidden:
        if all(any(fnmatchcase(word, pattern) for word in words) for pattern in combination.together):
            return combination
    return None


def _words(endpoint: Endpoint) -> Iterator[str]:
    """Yield the names under which an operator may forbid an endpoint."""
    yield str(endpoint)
    for scope in endpoint.required_scopes:
        yield f"scope:{scope}"
    if endpoint.data_class is not None:
        yield f"data:{endpoint.data_class}"
    if endpoint.namespace is not None:
        yield f"namespace:{endpoint.namespace}"
