"""Deprecation warnings: advice on every response, success and refusal alike (AGTP-API 4.4, 6.4)."""

from __future__ import annotations

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.runtime.call import Call

CATALOG_WARNING = "AGTP-Catalog-Warning"
ENDPOINT_WARNING = "AGTP-Endpoint-Warning"


def endpoint_advisories(endpoint: Endpoint, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """The warnings that every response of an endpoint carries; known when it is registered."""
    found: tuple[tuple[str, str], ...] = ()
    warning = catalog.warns_of(endpoint.method)
    if warning is not None:
        found += ((CATALOG_WARNING, warning),)
    if endpoint.deprecated is not None:
        found += ((ENDPOINT_WARNING, endpoint.deprecated.warning()),)
    return found


def catalog_warning(catalog: Catalog, call: Call) -> tuple[tuple[str, str], ...]:
    """The warning for the method as it was requested, where no endpoint of that method answers."""
    route = call.route
    if route is not None and (
        route.endpoint.method == call.request.method or catalog.warns_of(route.endpoint.method) is not None
    ):
        return ()
    warning = catalog.warns_of(call.request.method)
    return ((CATALOG_WARNING, warning),) if warning is not None else ()
