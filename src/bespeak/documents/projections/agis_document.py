"""The AGIS document of a service (AGIS 8): everything a caller may know, without handlers; and what can be derived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.policy import Policies
from bespeak.contract.schema.validation import DIALECT
from bespeak.contract.service import UNSPECIFIED, Service, Vocabulary
from bespeak.documents.agis.shape import AGIS_CAPABILITY, AGIS_VERSION, AGTP_CAPABILITY, unbundle
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.text.identifiers import unused


def project_agis(service: Service) -> dict[str, Any]:
    """Build the document of a service, in canonical order, without built-in and internal endpoints."""
    endpoints = [service.published(endpoint) for endpoint in service.endpoints if endpoint.is_listed]
    identity = service.identity
    return _said(
        agis=AGIS_VERSION,
        service=identity.name or identity.server_id,
        agtp=service.address,
        description=service.description or None,
        version=service.document_version,
        operator=identity.operator if identity.operator != UNSPECIFIED else None,
        contact=identity.contact or None,
        vocabulary=_vocabulary(service.vocabulary or Vocabulary(), (endpoint.method for endpoint in endpoints)),
        data_manifest=service.data_manifest.to_json() if service.data_manifest else None,
        endpoints=[_endpoint(endpoint, service.schemas) for endpoint in endpoints],
        schemas=dict(service.schemas) or None,
    )


def _vocabulary(vocabulary: Vocabulary, methods: Iterable[str]) -> dict[str, Any]:
    """Build the vocabulary block: the verbs in use, in declared order where declared."""
    used = dict.fromkeys(methods)
    declared = dict.fromkeys(verb for verb in vocabulary.declared_verbs if verb in used)
    return _said(
        declared_verbs=list(declared | used),
        domain=vocabulary.domain,
        namespace=vocabulary.namespace,
        version=vocabulary.version,
        negotiable=vocabulary.negotiable or None,
    )


def _endpoint(endpoint: Endpoint, shared: Mapping[str, Any]) -> dict[str, Any]:
    given = _schema(endpoint.input_schema, shared)
    if given.get("properties"):
        given.setdefault("required", [])  # AGIS 7: it says which parameters are required, even if none is
    return _said(
        method=endpoint.method,
        path=endpoint.path,
        description=endpoint.description if endpoint.description != endpoint.semantic.intent else None,
        namespace=endpoint.namespace,
        proposed=endpoint.proposed or None,
        semantic=_semantic(endpoint.semantic),
        input=given,
        output=_schema(endpoint.output_schema, shared),
        errors=[
            {"name": error.name, "description": error.description} if error.description else error.name
            for error in endpoint.errors
        ],
        required_scopes=list(endpoint.required_scopes) or None,
        deprecated=endpoint.deprecated.to_json() if endpoint.deprecated else None,
        cost=endpoint.cost.to_json() if endpoint.cost else None,
        confirm=endpoint.confirm,
        since=endpoint.since,
        streams=endpoint.streams or None,
    )


def _semantic(semantic: Semantic) -> dict[str, Any]:
    """Build the semantic block of AGIS. AGTP's confidence is not AGIS's guidance, so it has its own name."""
    nearest = AGIS_CAPABILITY.get(semantic.capability)
    return _said(
        intent=semantic.intent,
        actor=semantic.actor,
        outcome=semantic.outcome,
        capability=nearest or semantic.capability or None,
        **{AGTP_CAPABILITY: semantic.capability if nearest else None},
        impact_tier=semantic.impact,
        is_idempotent=semantic.is_idempotent,
        confidence_guidance=semantic.confidence_guidance,
        confidence=semantic.confidence or None,
        state_transition=dict(semantic.state_transition) or None,
        parameter_hints=dict(semantic.parameter_hints) or None,
        mcp_tool_name=semantic.mcp_tool_name,
        concepts=list(semantic.concepts) or None,
    )


def _schema(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without its dialect, which documents omit."""
    return {key: value for key, value in unbundle(schema, shared).items() if key != "$schema" or value != DIALECT}


def _said(**block: Any) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not None}


_GUIDANCE: Final = {"informational": 0.5, "reversible": 0.7, "irreversible": 0.85}
"""Confidence to require by impact. AGIS 6.2 asks for 0.85 where nothing can be undone, and allows less elsewhere."""
_VERSION: Final = "0.0.0"  # version of a service that has none
_SHOWN: Final = 3


def complete_agis(document: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """Return the document with the members that AGIS requires or recommends and that can be derived."""
    endpoints = [_completed_endpoint(entry, catalog) for entry in document["endpoints"]]
    _name_tools(endpoints)
    vocabulary = {"domain": str(document["service"]).lower(), **document["vocabulary"]}
    derived = {
        "description": _description(endpoints),
        "version": _VERSION,
        "vocabulary": _in_order(vocabulary, "declared_verbs"),
        "endpoints": endpoints,
    }
    # The order of the document stays; new members go behind the address.
    start = ("agis", "service", "agtp", "description", "version")
    return _in_order({**derived, **document, "vocabulary": derived["vocabulary"], "endpoints": endpoints}, *start)


def _in_order(members: Mapping[str, Any], *first: str) -> dict[str, Any]:
    return {**{key: members[key] for key in first if key in members}, **members}


def _description(endpoints: list[dict[str, Any]]) -> str:
    names = [f"{endpoint['method']} {endpoint['path']}" for endpoint in endpoints]
    more = len(names) - _SHOWN
    return f"Offers {', '.join(names[:_SHOWN])}{f' and {more} more' if more > 0 else ''}."


def _completed_endpoint(entry: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    semantic = dict(entry["semantic"])
    verb = catalog.verbs.get(entry["method"])
    if "capability" not in semantic and verb is not None:
        category = verb.categories[0]
        nearest = AGIS_CAPABILITY.get(category)
        semantic |= {"capability": nearest, AGTP_CAPABILITY: category} if nearest else {"capability": category}
    guidance = _GUIDANCE.get(semantic.get("impact_tier", ""), _GUIDANCE["irreversible"])
    semantic.setdefault("confidence_guidance", guidance)
    return {**entry, "semantic": semantic}


def _name_tools(endpoints: list[dict[str, Any]]) -> None:
    """Name the MCP tools that would share a name, which AGIS C derives from method and first segment."""
    firsts = (endpoint["path"].lstrip("/").partition("/")[0].strip("{}").replace("-", "_") for endpoint in endpoints)
    short = [f"{endpoint['method']}_{first}".lower() for endpoint, first in zip(endpoints, firsts, strict=True)]
    taken = {endpoint["semantic"].get("mcp_tool_name") for endpoint in endpoints} | set(short)
    seen: set[str] = set()
    for endpoint, name in zip(endpoints, short, strict=True):
        if name in seen and "mcp_tool_name" not in endpoint["semantic"]:
            endpoint["semantic"]["mcp_tool_name"] = unique = unused(_whole_name(endpoint), taken)
            taken.add(unique)
        seen.add(name)


def _whole_name(endpoint: Mapping[str, Any]) -> str:
    """Return a name with all segments: fetch_notes_text, fetch_notes_by_note_id."""
    segments = [part for part in endpoint["path"].split("/") if part]
    words = [part.replace("-", "_") for part in segments if not part.startswith("{")]
    words += [f"by_{part.strip('{}')}" for part in segments[-1:] if part.startswith("{")]
    return "_".join((endpoint["method"], *words)).lower()


SUMMARY_PATH: Final = "/.well-known/agis.json"


def project_summary(
    service: Service,
    endpoints: Iterable[Endpoint],
    settings: HttpSettings,
    *,
    version: str,
    policies: Policies | None = None,
    mcp: str | None = None,
) -> dict[str, Any]:
    """Build every field of AGIS 11.1, null for unknown values; `mcp_tools_list` is omitted if MCP is not served.

    `version` is that of the manifest, `mcp` the URL of the MCP server. Of the data manifest only the class names
    appear, and not even those if anonymous callers may not see the manifest.
    """
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    vocabulary = service.vocabulary or Vocabulary()
    manifest = service.data_manifest
    hidden = manifest is None or manifest.pre_auth_discovery is False
    capabilities = [AGIS_CAPABILITY.get(each.semantic.capability, each.semantic.capability) for each in listed]
    return {
        "agis": AGIS_VERSION,
        "service": service.identity.name or service.identity.server_id,
        "agtp": service.address,
        # HTTP clients get it from GET /.
        "agis_document": f"{settings.url}/" if settings.url else service.address,
        "methods": list(dict.fromkeys(endpoint.method for endpoint in listed)),
        "domain": vocabulary.domain,
        "namespace": vocabulary.namespace,
        "negotiable": vocabulary.negotiable,
        "capability_summary": list(dict.fromkeys(filter(None, capabilities))),
        "data_classes": [] if hidden or manifest is None else [entry.name for entry in manifest.available_data],
        "pre_auth_discovery": manifest is not None and manifest.pre_auth_discovery is True,
        "version": version,
        "interaction_protocols": _protocols(listed, vocabulary, policies or service.policies),
        "related_services": list(settings.related_services),
        **({} if mcp is None else {"mcp_tools_list": mcp}),
    }


def _protocols(listed: Sequence[Endpoint], vocabulary: Vocabulary, policies: Policies) -> list[str]:
    found = ["request"]
    if vocabulary.negotiable:
        found.append("negotiate")
    if any(needs_confirmation(endpoint, policies) for endpoint in listed):
        found.append("confirm")
    if any(endpoint.semantic.impact == "informational" for endpoint in listed):
        found.append("query")
    return found
