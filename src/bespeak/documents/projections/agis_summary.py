"""The summary at /.well-known/agis.json: enough to decide whether to read the AGIS document (AGIS 11.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import Service
from bespeak.contract.vocabulary import Vocabulary
from bespeak.documents.agis.shape import AGIS_CAPABILITY, AGIS_VERSION
from bespeak.documents.deployment.http_settings import HttpSettings

PATH: Final = "/.well-known/agis.json"


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
