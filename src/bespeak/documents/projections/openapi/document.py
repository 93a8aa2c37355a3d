"""The OpenAPI 3.1 document of a service for HTTP clients, derived from the manifest (AGTP-API 14.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bespeak.contract.capability_id import capability_ids, group_of
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import http_route
from bespeak.contract.policy import Policies
from bespeak.contract.service import UNSPECIFIED, ServerIdentity, Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.projections.openapi.circumstances import Circumstances
from bespeak.documents.projections.openapi.operation import Operations
from bespeak.documents.projections.openapi.parameters import PARAMETERS
from bespeak.documents.projections.openapi.responses import HEADERS, PROBLEM, PROBLEM_SCHEMA, shared_responses
from bespeak.documents.projections.openapi.schemas import SchemaComponents
from bespeak.documents.projections.openapi.security import security_schemes
from bespeak.protocol.exchange.headers import MEDIA_MANIFEST

OPENAPI_VERSION: Final = "3.1.1"


def project_openapi(
    service: Service,
    endpoints: Iterable[Endpoint],
    settings: HttpSettings,
    modes: Iterable[str],
    *,
    version: str,
    policies: Policies | None = None,
    keeps_state: bool = True,
    keys_required: bool = False,
    catalog_warnings: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Build the document of the HTTP face, without built-in and internal endpoints.

    `modes` are the authentication modes of `[auth]`. `version` is that of the manifest.
    `keeps_state` and `keys_required` describe the handling of idempotency keys.
    """
    listed = [service.published(endpoint) for endpoint in endpoints if endpoint.is_listed]
    served = Circumstances(
        modes=tuple(modes),
        policies=policies or service.policies,
        rate_limits=service.rate_limits,
        knows_agents=bool(service.agents) or keeps_state,
        keeps_state=keeps_state,
        keys_required=keys_required,
        catalog_warnings=catalog_warnings or {},
    )
    schemas = SchemaComponents({PROBLEM: PROBLEM_SCHEMA})
    operations = Operations(capability_ids(listed), schemas, served)
    for endpoint in listed:
        operations.reserve(endpoint)
    paths = {http_route(endpoint).path: operations.path_item(endpoint) for endpoint in listed}
    return {
        "openapi": OPENAPI_VERSION,
        "info": _info(service, settings, version),
        "servers": [{"url": settings.url or "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(map(group_of, listed))],
        "paths": paths,
        "components": {
            "schemas": schemas.schemas,
            "responses": shared_responses(),
            "parameters": PARAMETERS,
            "headers": HEADERS,
            "securitySchemes": security_schemes(served.modes),
        },
    }


def _info(service: Service, settings: HttpSettings, version: str) -> dict[str, Any]:
    identity = service.identity
    note = f"Derived from the AGTP manifest at {service.address}, which is authoritative."
    return {
        "title": identity.name or identity.server_id,
        "version": version,
        "description": f"{service.description}\n\n{note}" if service.description else note,
        **_contact(identity),
        "x-agtp-derived-from": "agtp-manifest",
        "x-agtp-manifest": service.address,
        "x-agtp-manifest-on-http": {"url": f"{settings.url or ''}/", "accept": MEDIA_MANIFEST},
        "x-agtp-server-id": identity.server_id,
    }


def _contact(identity: ServerIdentity) -> dict[str, Any]:
    """Build the contact object; OpenAPI allows an e-mail address or a URL."""
    contact: dict[str, str] = {}
    if identity.operator and identity.operator != UNSPECIFIED:
        contact["name"] = identity.operator
    given = identity.contact.strip().removeprefix("mailto:")
    if given.startswith(("https://", "http://")):
        contact["url"] = given
    elif given.count("@") == 1 and not given.startswith("@") and not any(map(str.isspace, given)):
        contact["email"] = given
    return {"contact": contact} if contact else {}
