"""Normative rules for registration: one endpoint, all endpoints together, the policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bespeak.checks.lint.rules import error, handler, method, path, path_collision, policy, schema, semantic, upstream
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.text.diagnostics.diagnostic import Diagnostic


def check_endpoint(
    endpoint: Endpoint, catalog: Catalog, policies: Policies, recipes: Sequence[Recipe] = ()
) -> list[Diagnostic]:
    """Check one endpoint by itself. It must not be registered if there is an error."""
    verbs = catalog.names
    return [
        *method.check_endpoint(endpoint, catalog, policies.methods),
        *path.check_endpoint(endpoint, verbs),
        *semantic.check_endpoint(endpoint, policies.methods.custom),
        *schema.check_endpoint(endpoint),
        *error.check_endpoint(endpoint),
        *handler.check(endpoint, {recipe.name for recipe in recipes}),
        *upstream.check(endpoint),
        *policy.check(endpoint, verbs),
    ]


def check_service(endpoints: Iterable[Endpoint]) -> list[tuple[Endpoint, Diagnostic]]:
    """Find the endpoints that collide with an earlier one, each with its finding (AGTP-API 5.4, 6.1)."""
    return list(path_collision.check_together(endpoints))


def effective_policies(policies: Policies, catalog: Catalog) -> tuple[Policies, list[Diagnostic]]:
    """Return the policies in force; warn of entries whose method the catalog lacks (AGTP-API 9.4)."""
    return policy.effective(policies, catalog)
