"""The contract as the console shows it: every endpoint with its semantic block, and the documents made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.checks.evolution.comparison import compare, read_contract
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import tool_names
from bespeak.contract.http_route import http_route
from bespeak.contract.schema.view import sample
from bespeak.documents.projections.reference.calls import Reach, write_calls
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.runtime.route_table import RouteTable
from bespeak.terminal import panels


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


def show_catalog(routes: RouteTable) -> list[panels.Block]:
    """Return the verbs in use, with what is deprecated of the catalog and of the contract."""
    used: dict[str, list[Endpoint]] = {}
    for one in sorted(routes.endpoints.values(), key=lambda one: one.key):
        used.setdefault(one.method, []).append(one)
    verbs, gone = [], []
    for method, endpoints in used.items():
        verb = routes.catalog.verbs.get(method)
        own, is_old = sum(not one.is_basic for one in endpoints), routes.catalog.warns_of(method) is not None
        known = ("not in the catalog", None) if verb is None else (", ".join(verb.categories), verb.successor)
        told = (method, known[0], len(endpoints), own, known[1], "" if verb is None else verb.description)
        verbs.append(panels.row(method, *told, state="deprecated" if is_old else ""))
        for one in endpoints:
            if one.deprecated is not None:
                old = one.deprecated
                instead = " ".join(part for part in (old.successor_method, old.successor_path) if part)
                gone.append(panels.row(f"{one}", f"{one}", old.deprecated_in, old.removed_in, instead))
    identity, command = routes.catalog, "bespeak catalog list"
    return [
        panels.facts("Catalog", command, version=identity.version, verbs=len(identity.verbs), in_use=len(used)),
        panels.Table("Verbs in use", _VERBS, verbs[: panels.MOST_ROWS], command=command),
        panels.Table(
            "Deprecated endpoints", _GONE, gone[: panels.MOST_ROWS], empty="None.", command="bespeak discover TARGET"
        ),
    ]


_VERBS: Final = ("Verb", "Category", "Endpoints", "Own", "Successor", "Meaning")
_GONE: Final = ("Endpoint", "Since", "Until", "Instead")


def compare_with(routes: RouteTable, other: str) -> dict[str, Any]:
    """Compare another version of the contract, given as a document, with the one that is served.

    Raises ContractError with the findings of a document that cannot be read.
    """
    before, _ = read_contract(other, "other", tolerant=True)
    served, _ = read_contract(routes.publication.manifest_for(ANONYMOUS).body.decode(), "served")
    return compare("other", "served", before, served).to_json()


def _sample(endpoint: Endpoint) -> Mapping[str, Any]:
    found = sample(endpoint.input_schema)
    return found if isinstance(found, dict) else {}
