"""Deprecation warnings: advice on every response, success and refusal alike (AGTP-API 4.4, 6.4)."""

from __future__ import annotations

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.runtime.route import Route

CATALOG_WARNING = "AGTP-Catalog-Warning"
ENDPOINT_WARNING = "AGTP-Endpoint-Warning"


def endpoint_advisories(endpoint: Endpoint, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return the deprecation warnings of an endpoint, sent with every response."""
    found: tuple[tuple[str, str], ...] = ()
    warning = catalog.warns_of(endpoint.method)
    if warning is not None:
        found += ((CATALOG_WARNING, warning),)
    if endpoint.deprecated is not None:
        found += ((ENDPOINT_WARNING, endpoint.deprecated.warning()),)
    return found


def catalog_warning(catalog: Catalog, requested: str, route: Route | None) -> tuple[tuple[str, str], ...]:
    """Return the warning for the requested method, unless an endpoint of that method answers."""
    if route is not None and (route.method == requested or catalog.warns_of(route.method) is not None):
        return ()
    warning = catalog.warns_of(requested)
    return ((CATALOG_WARNING, warning),) if warning is not None else ()
