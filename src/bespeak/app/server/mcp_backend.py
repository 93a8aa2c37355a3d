"""A service behind MCP that is called through a client: inside this process, over AGTP or on the web."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bespeak.agent.client.reply import Reply
from bespeak.agent.client.service import ServiceClient
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import BespeakError, RemoteProtocolError
from bespeak.faces.mcp.outcome import Outcome
from bespeak.protocol import status
from bespeak.protocol.exchange.scope import Scopes

_QUERY: Final = re.compile(r"\?\S+")


class ClientBackend:
    """Calls a service with the authority of its client."""

    def __init__(
        self,
        client: ServiceClient,
        manifest: ManifestDocument,
        *,
        caller: str = "",
        scopes: Scopes | None = None,
        service: Service | None = None,
    ) -> None:
        """Serve what a manifest describes.

        `caller` is the Agent-ID of the client, and `scopes` its authority, None if only the service knows it. `service`
        is a loaded target.
        """
        self._client = client
        self._manifest = manifest
        self._endpoints = _own(manifest)
        self._caller = caller
        self._scopes = scopes
        self._policies = manifest.policies if service is None else service.policies
        name = manifest.server.name if service is None else service.identity.name
        self.name = name or manifest.server.server_id
        self.version = manifest.document_version

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints of the manifest."""
        manifest = await self._client.discover(refresh=refresh)
        if manifest is not self._manifest:
            self._manifest, self._endpoints = manifest, _own(manifest)
        return self._endpoints

    def caller(self, request: Any) -> str:
        """Return the Agent-ID of the client."""
        return self._caller

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if the policies demand a confirmation by another party. Manifests do not tell."""
        return needs_confirmation(endpoint, self._policies)

    def refuse(self, endpoint: Endpoint, request: Any) -> Outcome | None:
        """Refuse a call whose scopes are known to be missing."""
        missing = [] if self._scopes is None else self._scopes.missing(endpoint.required_scopes)
        if not missing:
            return None
        message = f"{endpoint} needs the scopes {', '.join(missing)}, which this server was not started with."
        error = {"code": "scope-violation", "message": message, "missing_scopes": missing}
        return Outcome(status.SCOPE_VIOLATION, error=error)

    async def call(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str], request: Any
    ) -> Outcome:
        """Call an endpoint and read its reply, whatever the status."""
        try:
            reply = await self._client.request(*self._named(endpoint), arguments or None, headers=headers)
            return _outcome(reply)
        except BespeakError as error:  # the client says what failed and what may help
            # The query of an address may hold a credential.
            message = _QUERY.sub("", str(error))
            return Outcome(status.SERVER_ERROR, error={"code": "service-not-reached", "message": message})

    def _named(self, endpoint: Endpoint) -> tuple[str, str]:
        """Return how the client names an endpoint: on the web by its id, for several may share a method and a path."""
        discovered, chosen = self._client.discovered, endpoint.semantic.mcp_tool_name or ""
        by_id = discovered is not None and discovered.kind in ("ai", "openapi") and discovered.capability(chosen)
        return (chosen, "") if by_id else endpoint.key


def _own(manifest: ManifestDocument) -> tuple[Endpoint, ...]:
    """Return the endpoints without those of every AGTP server, which other services on the web do not have."""
    return manifest.own_endpoints if manifest.agtp_version else manifest.endpoints


def _outcome(reply: Reply) -> Outcome:
    retry_after = reply.headers.get("retry-after")
    if reply.error is not None:
        members = {**reply.error.members, "code": reply.error.code, "message": reply.error.message}
        return Outcome(reply.status, error=members, retry_after=retry_after)
    warning = reply.headers.get("agtp-endpoint-warning") or reply.headers.get("agtp-catalog-warning")
    try:
        output = reply.output
    except RemoteProtocolError:
        output = reply.body.decode(errors="replace")
    return Outcome(reply.status, output, warning=warning)
