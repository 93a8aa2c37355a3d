"""The service argument of `bespeak export`, with the settings its documents need."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bespeak.agent.client.service import ServiceClient
from bespeak.app.cli.agis_file import open_agis
from bespeak.app.cli.console import print_findings
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.service import open_service
from bespeak.app.server.assembly import now
from bespeak.app.server.serving import assemble_target
from bespeak.app.server.target import load_target
from bespeak.contract.service import Service
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.documents.projections.agtp_manifest import project_manifest
from bespeak.state.identity.settings import AuthSettings

_NO_AUTH = AuthSettings(modes=())
"""Empty authentication settings: a manifest does not describe authentication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A service with the settings its web documents need. Its endpoints are those that would be served."""

    service: Service
    version: str
    updated: str
    http: HttpSettings = field(default_factory=HttpSettings)
    auth: AuthSettings = field(default_factory=AuthSettings)
    keys_required: bool = False
    a2a: A2aSettings = field(default_factory=A2aSettings)
    mcp: bool = False
    """True if the deployment serves MCP too."""
    catalog_warnings: Mapping[str, str] = field(default_factory=dict)


def open_exported(target: str, options: Mapping[str, Any], *, url: str | None = None) -> Exported:
    """Open a folder, a file, `module:app`, or a live service through its manifest. `url` is its HTTP address."""
    if "://" in target:
        found = asyncio.run(_live(target, options))
    elif target.endswith(".agis"):
        found = _with_defaults(open_agis(Path(target)), now())
    else:
        found = _local(target)
    if not any(endpoint.is_listed for endpoint in found.service.endpoints):
        raise CommandFailedError(f"{target} has no endpoints of its own; the document needs at least one")
    return found if url is None else replace(found, http=replace(found.http, url=url.rstrip("/")))


def live_service(client: ServiceClient, manifest: ManifestDocument, uri: str) -> Service:
    """Build the service that a manifest describes. Raises CommandFailedError if it is not an AGTP contract."""
    web = client.discovered
    if web is not None and web.kind not in ("agtp", "agis"):
        raise CommandFailedError(
            f"{client.locator} has no AGTP contract, and HTTP methods do not express intent. "
            "Create a facade with `bespeak import openapi` and export that."
        )
    return Service(
        # Only web documents have the display name of the service; manifests do not.
        identity=manifest.server if web is None else replace(manifest.server, name=web.name),
        description="" if web is None else web.description,
        endpoints=manifest.own_endpoints,
        policies=manifest.policies,
        document_version=manifest.document_version or None,
        agtp=uri if web is None else web.agtp,
    )


def _local(target: str) -> Exported:
    loaded = load_target(target)
    assembled = assemble_target(loaded, now(), describes=True)
    print_findings(assembled.findings)
    registrar, document = assembled.registrar, loaded.document
    warned = {method: registrar.catalog.warns_of(method) for method, _ in registrar.endpoints}
    service = replace(registrar.service, endpoints=tuple(registrar.endpoints.values()), policies=registrar.policies)
    return replace(
        _with_defaults(service, assembled.updated, registrar.catalog.version),
        http=document.http,
        auth=document.auth,
        keys_required=document.idempotency.require,
        a2a=document.a2a,
        mcp=document.mcp.enabled,
        catalog_warnings={method: text for method, text in warned.items() if text is not None},
    )


def _with_defaults(service: Service, updated: str, catalog: str | None = None) -> Exported:
    """Wrap a service with default settings."""
    manifest = project_manifest(
        service, service.endpoints, service.policies, catalog or service.catalog, updated=updated
    )
    return Exported(service=service, version=manifest["document_version"], updated=updated)


async def _live(uri: str, options: Mapping[str, Any]) -> Exported:
    async with open_service(uri, **options) as client:
        manifest = await client.discover()
        service = live_service(client, manifest, uri)
    found = _with_defaults(service, manifest.updated or now(), manifest.catalog_version)
    return replace(found, auth=_NO_AUTH, http=HttpSettings(url=client.locator.web))
