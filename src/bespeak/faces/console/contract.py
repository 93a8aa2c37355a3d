"""The contract as the console shows it: every endpoint with its semantic block, and the documents made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import tool_names
from bespeak.contract.http_route import http_route
from bespeak.contract.schema.view import sample
from bespeak.documents.projections.reference.calls import Reach, write_calls
from bespeak.runtime.route_table import RouteTable


def list_endpoints(routes: RouteTable) -> list[list[Any]]:
    """Return a row for each endpoint that can be called, the operator's own first."""
    endpoints = sorted(routes.endpoints.values(), key=lambda one: (one.is_basic, one.path, one.method))
    return [
        [
            one.method,
            one.path,
            one.semantic.intent or one.description,
            one.semantic.impact,
            one.namespace or "",
            one.deprecated is not None,
            one.internal,
            one.is_basic,
            list(one.required_scopes),
        ]
        for one in endpoints
    ]


def describe_endpoint(routes: RouteTable, method: str, path: str, reach: Reach) -> dict[str, Any] | None:
    """Return everything about an endpoint; None if there is none."""
    endpoint = routes.endpoints.get((method, path))
    if endpoint is None:
        return None
    listed = [one for one in routes.endpoints.values() if one.is_listed]
    tools = dict(zip((one.key for one in listed), tool_names(listed), strict=True))
    tool = tools.get(endpoint.key)
    route = http_route(endpoint)
    return {
        "method": endpoint.method,
        "path": endpoint.path,
        "description": endpoint.description,
        "semantic": endpoint.semantic.to_json(),
        "input_schema": endpoint.input_schema,
        "output_schema": endpoint.output_schema,
        "errors": [{"name": one.name, "description": one.description} for one in endpoint.errors],
        "required_scopes": list(endpoint.required_scopes),
        "deprecated": None if endpoint.deprecated is None else endpoint.deprecated.to_json(),
        "confirmed": needs_confirmation(endpoint, routes.policies),
        "internal": endpoint.internal,
        "http": f"{route.preferred} {route.path}",
        "tool": tool,
        "sample": _sample(endpoint),
        "calls": write_calls(endpoint, reach, tool or ""),
    }


def _sample(endpoint: Endpoint) -> Mapping[str, Any]:
    found = sample(endpoint.input_schema)
    return found if isinstance(found, dict) else {}
