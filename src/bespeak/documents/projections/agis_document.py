"""The AGIS document of a service (AGIS 8): everything a caller may know, without handlers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.schema.compile import DIALECT
from bespeak.contract.semantic import Semantic
from bespeak.contract.service import UNSPECIFIED, Service
from bespeak.contract.vocabulary import Vocabulary
from bespeak.documents.agis.references import unbundle
from bespeak.documents.agis.shape import AGIS_CAPABILITY, AGIS_VERSION, AGTP_CAPABILITY


def project_agis(service: Service) -> dict[str, Any]:
    """Build the document of a service, in canonical order.

    Built-in and internal endpoints are left out.
    """
    endpoints = [service.published(endpoint) for endpoint in service.endpoints if endpoint.is_listed]
    identity = service.identity
    document: dict[str, Any] = {
        "agis": AGIS_VERSION,
        "service": identity.name or identity.server_id,
        "agtp": service.address,
        "description": service.description or None,
        "version": service.document_version,
        "operator": identity.operator if identity.operator != UNSPECIFIED else None,
        "contact": identity.contact or None,
        "vocabulary": _vocabulary(service.vocabulary or Vocabulary(), (endpoint.method for endpoint in endpoints)),
        "data_manifest": service.data_manifest.to_json() if service.data_manifest else None,
        "endpoints": [_endpoint(endpoint, service.schemas) for endpoint in endpoints],
        "schemas": dict(service.schemas) or None,
    }
    return _said(document)


def _vocabulary(vocabulary: Vocabulary, methods: Iterable[str]) -> dict[str, Any]:
    """Build the vocabulary block: the verbs in use, in declared order where declared."""
    used = dict.fromkeys(methods)
    declared = dict.fromkeys(verb for verb in vocabulary.declared_verbs if verb in used)
    return _said(
        {
            "declared_verbs": list(declared | used),
            "domain": vocabulary.domain,
            "namespace": vocabulary.namespace,
            "version": vocabulary.version,
            "negotiable": vocabulary.negotiable or None,
        }
    )


def _endpoint(endpoint: Endpoint, shared: Mapping[str, Any]) -> dict[str, Any]:
    return _said(
        {
            "method": endpoint.method,
            "path": endpoint.path,
            "description": endpoint.description if endpoint.description != endpoint.semantic.intent else None,
            "namespace": endpoint.namespace,
            "proposed": endpoint.proposed or None,
            "semantic": _semantic(endpoint.semantic),
            "input": _input(endpoint.input_schema, shared),
            "output": _schema(endpoint.output_schema, shared),
            "errors": [_error(error) for error in endpoint.errors],
            "required_scopes": list(endpoint.required_scopes) or None,
            "deprecated": endpoint.deprecated.to_json() if endpoint.deprecated else None,
            "cost": endpoint.cost.to_json() if endpoint.cost else None,
            "confirm": endpoint.confirm,
            "since": endpoint.since,
        }
    )


def _semantic(semantic: Semantic) -> dict[str, Any]:
    """Build the semantic block of AGIS. AGTP's confidence is not AGIS's guidance, so it has its own name."""
    nearest = AGIS_CAPABILITY.get(semantic.capability)
    return _said(
        {
            "intent": semantic.intent,
            "actor": semantic.actor,
            "outcome": semantic.outcome,
            "capability": nearest or semantic.capability or None,
            AGTP_CAPABILITY: semantic.capability if nearest else None,
            "impact_tier": semantic.impact,
            "is_idempotent": semantic.is_idempotent,
            "confidence_guidance": semantic.confidence_guidance,
            "confidence": semantic.confidence or None,
            "state_transition": dict(semantic.state_transition) or None,
            "parameter_hints": dict(semantic.parameter_hints) or None,
            "mcp_tool_name": semantic.mcp_tool_name,
            "concepts": list(semantic.concepts) or None,
        }
    )


def _input(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input schema that says which parameters are required, even if none is (AGIS 7)."""
    written = _schema(schema, shared)
    return {**written, "required": []} if written.get("properties") and "required" not in written else written


def _schema(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without its dialect, which documents omit."""
    written = unbundle(schema, shared)
    return {key: value for key, value in written.items() if key != "$schema" or value != DIALECT}


def _error(error: DeclaredError) -> Any:
    return {"name": error.name, "description": error.description} if error.description else error.name


def _said(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not None}
