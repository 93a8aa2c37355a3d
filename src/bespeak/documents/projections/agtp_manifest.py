"""The server manifest on the wire, without handler details (AGTP-API 8), and its inventory, DISCOVER /methods (5.8)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import FLOOR_METHODS, Policies
from bespeak.contract.service import AGTP_VERSION, Service

API_VERSION: Final = "1.0"


def project_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    """Build an endpoint definition that reveals only the kind of its handler (AGTP-API 8.9)."""
    projected = {
        "method": endpoint.method,
        "path": endpoint.path,
        "description": endpoint.description,
        "namespace": endpoint.namespace,
        "semantic": endpoint.semantic.to_json(),
        "input_schema": endpoint.input_schema,
        "output_schema": endpoint.output_schema,
        "errors": list(endpoint.error_names),
        "handler": {"type": endpoint.handler.type},
        "required_scopes": list(endpoint.required_scopes),
        "deprecated": endpoint.deprecated.to_json() if endpoint.deprecated is not None else None,
        "cost": endpoint.cost.to_json() if endpoint.cost is not None else None,
        "confirm": endpoint.confirm,
        "since": endpoint.since,
        "streams": endpoint.streams or None,
        # AGTP-API 14.1: a machine-converted endpoint is not authoritative before a person has confirmed it.
        "reviewed": None if endpoint.reviewed else False,
        "implemented": None if endpoint.missing is None else False,
        "missing": endpoint.missing,
    }
    return {name: value for name, value in projected.items() if value is not None}


def project_manifest(
    service: Service,
    endpoints: Iterable[Endpoint],
    policies: Policies,
    catalog_version: str,
    *,
    updated: str,
    issued: str | None = None,
    hosted: Iterable[Agent] | None = None,
) -> dict[str, Any]:
    """Build the unsigned manifest of a service. `issued` is used if the operator names no time of first issue.

    `hosted` lists the agents that the caller may see, by default the public ones of the service (AGTP-API 8.5).
    """
    identity = service.identity
    published = [service.published(endpoint) for endpoint in endpoints if not endpoint.internal]
    if hosted is None:
        hosted = service.agents if service.agent_disclosure == "public" else ()
    manifest: dict[str, Any] = {
        "agtp_version": AGTP_VERSION,
        "agtp_api_version": API_VERSION,
        "document_version": service.document_version,
        "catalog_version": catalog_version,
        "catalog_versions_supported": [catalog_version],
        "server": {
            "server_id": identity.server_id,
            "domain": identity.domain,
            "operator": identity.operator,
            "contact": identity.contact,
            "supported_features": list(identity.supported_features),
        },
        "embedded_methods": _list_methods(FLOOR_METHODS, published),
        "custom_methods": _list_methods(policies.methods.custom, published),
        "endpoints": [
            # No other place shows the confirmation that the policies demand.
            project_endpoint(endpoint) | ({"confirm": True} if needs_confirmation(endpoint, policies) else {})
            for endpoint in published
        ],
        "agent_disclosure": service.agent_disclosure,
        "hosted_agents": [agent.reference() for agent in hosted if agent.is_discoverable],
        "agent_disclosure_notice": service.agent_disclosure_notice,
        "apis": [dict(api) for api in service.apis],
        "hosted_protocols": _hosted_protocols(service, published),
        "policies": policies.to_json(),
    }
    data = service.data_manifest
    if data is not None and data.pre_auth_discovery is not False:
        # AGIS 8.3. Core 07 names it in its flow of negotiation, though AGTP-API 8 does not list it.
        manifest["data_manifest"] = data.to_json()
    if service.document_version is None:
        # It depends only on the content, so that workers and restarts agree.
        revision = hashlib.sha256(msgspec.json.encode(manifest, order="sorted")).hexdigest()
        manifest["document_version"] = f"v-{revision[:12]}"
    manifest["server"] |= {"issued": identity.issued or issued or updated, "updated": updated}
    manifest["manifest_signature"] = None
    return manifest


def _hosted_protocols(service: Service, endpoints: Iterable[Endpoint]) -> list[dict[str, Any]]:
    """List the declared protocols, and MCP, which the built-in EXECUTE carries (core 9), unless it is declared."""
    declared = [dict(protocol) for protocol in service.hosted_protocols]
    named = any(str(protocol.get("protocol", "")).lower() == "mcp" for protocol in declared)
    carries = any(endpoint.builtin and endpoint.key == ("EXECUTE", "/") for endpoint in endpoints)
    return declared if named or not carries else [*declared, {"protocol": "mcp", "method": "EXECUTE", "path": "/"}]


def _list_methods(names: Iterable[str], endpoints: Iterable[Endpoint]) -> list[dict[str, str]]:
    """List methods as objects: the draft leaves the form open (8.4), and existing clients read `name` from each."""
    root_last = sorted(endpoints, key=lambda endpoint: endpoint.path == "/")
    described = {endpoint.method: endpoint.description for endpoint in root_last}
    return [{"name": name, "description": described.get(name, "")} for name in names]


def project_inventory(endpoints: Iterable[Endpoint]) -> list[dict[str, str]]:
    return [
        {"method": endpoint.method, "path": endpoint.path, "description": endpoint.description}
        for endpoint in endpoints
        if not endpoint.internal
    ]
