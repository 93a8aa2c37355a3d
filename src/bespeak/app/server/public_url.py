"""The public URL of the HTTP face, and its entry in the manifest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from bespeak.app.server.settings import Settings
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.service import Service
from bespeak.protocol.address import Address

_EVERYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound


def with_public_url(settings: Settings, service: Service) -> Settings:
    """Set the public URL of the HTTP face, if there is one: as configured, else from its listening address.

    With port 0 the system chooses, so the URL is not known yet.
    """
    address = settings.http
    if address is None or settings.web.url is not None or address.port == 0:
        return settings
    identity = service.identity
    host = (identity.domain or identity.server_id) if address.host in _EVERYWHERE else address.host
    scheme = "http" if settings.certificate is None else "https"
    return replace(settings, web=replace(settings.web, url=f"{scheme}://{Address(host, address.port)}"))


def with_http_face(service: Service, url: str) -> Service:
    """Add the HTTP face to the `apis` of the manifest (AGTP-API 8.6, 14.3), unless it is listed."""
    if any(api.get("url") == url for api in service.apis):
        return service
    face = {"name": service.identity.name or service.identity.server_id, "type": "http", "url": url}
    if is_described(service.policies, service.endpoints):
        face |= {"http_documentation": f"{url}/openapi.json", "discovery": f"{url}/.well-known/ai"}
    return replace(service, apis=(*service.apis, face))


def is_described(policies: Policies, endpoints: Iterable[Endpoint]) -> bool:
    """Return True if documents on the web describe the endpoints: discovery is public, and some are listed."""
    return policies.anonymous_discovery and any(endpoint.is_listed for endpoint in endpoints)
