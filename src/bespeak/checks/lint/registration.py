"""Normative rules for registration: one endpoint, all endpoints together, the policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bespeak.checks.lint import encoding
from bespeak.checks.lint.failed_check import attempt
from bespeak.checks.lint.rules import (
    error,
    handler,
    mcp_upstream,
    method,
    path,
    path_collision,
    policy,
    schema,
    semantic,
    upstream,
)
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.text.diagnostics.diagnostic import Diagnostic


def check_endpoint(
    endpoint: Endpoint, catalog: Catalog, policies: Policies, recipes: Sequence[Recipe] = ()
) -> list[Diagnostic]:
    """Check one endpoint by itself. It must not be registered if there is an error."""
    return [*check_contract(endpoint, catalog, policies), *check_binding(endpoint, recipes)]


def check_contract(endpoint: Endpoint, catalog: Catalog, policies: Policies) -> Iterator[Diagnostic]:
    """Check what AGTP-API requires of an endpoint in any document."""
    verbs = catalog.names
    yield from attempt(method.check_endpoint, endpoint, catalog, policies.methods, endpoint=endpoint)
    yield from attempt(path.check_endpoint, endpoint, verbs, endpoint=endpoint)
    yield from attempt(semantic.check_endpoint, endpoint, policies.methods.custom, endpoint=endpoint)
    yield from attempt(schema.check_endpoint, endpoint, endpoint=endpoint)
    yield from attempt(error.check_endpoint, endpoint, endpoint=endpoint)
    yield from attempt(policy.check, endpoint, verbs, endpoint=endpoint)
    yield from attempt(encoding.check_endpoint, endpoint, endpoint=endpoint)


def check_binding(endpoint: Endpoint, recipes: Sequence[Recipe]) -> Iterator[Diagnostic]:
    """Check what AGTP-API requires of a handler; a published contract contains none."""
    yield from attempt(handler.check, endpoint, {recipe.name for recipe in recipes}, endpoint=endpoint)
    yield from attempt(upstream.check, endpoint, endpoint=endpoint)
    yield from attempt(mcp_upstream.check, endpoint, endpoint=endpoint)


def check_service(endpoints: Iterable[Endpoint]) -> list[tuple[Endpoint, Diagnostic]]:
    """Find the endpoints that collide with an earlier one, each with its finding (AGTP-API 5.4, 6.1)."""
    claims = path_collision.PathClaims()
    return [
        (endpoint, finding)
        for endpoint in endpoints
        for finding in attempt(path_collision.check, endpoint, claims, endpoint=endpoint)
    ]


def effective_policies(policies: Policies, catalog: Catalog) -> tuple[Policies, list[Diagnostic]]:
    """Return the policies in force; warn of entries whose method the catalog lacks (AGTP-API 9.4)."""
    return policy.effective(policies, catalog)
