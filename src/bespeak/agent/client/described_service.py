"""Manifest built from a discovery document, so that services on the web look like AGTP services."""

from __future__ import annotations

from typing import Any

from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.discovered import Discovered
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.semantic import Semantic
from bespeak.contract.service import ServerIdentity
from bespeak.documents.manifest_json import ManifestDocument


def described_manifest(discovered: Discovered) -> ManifestDocument:
    """Build a manifest with the capabilities as endpoints. Members that the documents do not give are empty."""
    if discovered.agis is not None and discovered.kind == "agis":
        endpoints = tuple(entry.endpoint for entry in discovered.agis.endpoints)
    else:
        endpoints = tuple(_endpoint(capability) for capability in discovered.capabilities)
    server = ServerIdentity(
        server_id=discovered.address.origin.host, operator="", contact="", name=discovered.name, domain=None
    )
    return ManifestDocument(server=server, endpoints=endpoints, raw=_raw(discovered, endpoints))


def _endpoint(capability: Capability) -> Endpoint:
    """Convert a capability into an endpoint. Methods other than GET and HEAD count as irreversible."""
    reads = capability.method in ("GET", "HEAD")
    return Endpoint(
        method=capability.method,
        path=capability.path,
        description=capability.description,
        semantic=Semantic(
            intent=capability.description,
            actor="agent",
            outcome=capability.returns or "",
            capability="retrieval" if reads else "transaction",
            confidence=0.0,
            impact="informational" if reads else "irreversible",
            is_idempotent=capability.is_idempotent,
            mcp_tool_name=capability.id,
        ),
        input_schema=capability.input_schema,
        output_schema=capability.output_schema or {"type": "object"},
        handler=OpaqueHandler(type="external_service"),
    )


def _raw(discovered: Discovered, endpoints: tuple[Endpoint, ...]) -> dict[str, Any]:
    return {
        "server": {"server_id": discovered.address.origin.host, "name": discovered.name},
        "endpoints": [
            {
                "method": endpoint.method,
                "path": endpoint.path,
                "description": endpoint.description,
                "input_schema": endpoint.input_schema,
            }
            for endpoint in endpoints
        ],
    }
