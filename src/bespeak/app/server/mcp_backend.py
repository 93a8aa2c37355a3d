"""A service behind MCP that is called through a client: inside this process, over AGTP or on the web."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bespeak.agent.client.endpoint_calling import CalledService
from bespeak.agent.client.service import ServiceClient
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.protocol import status
from bespeak.protocol.exchange.media_type import essence
from bespeak.protocol.exchange.outcome import Outcome
from bespeak.protocol.exchange.scope import Scopes


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
        self._service = CalledService(
            client, policies=manifest.policies if service is None else service.policies, scopes=scopes
        )
        self._caller = caller
        name = manifest.server.name if service is None else service.identity.name
        self.name = name or manifest.server.server_id
        self.server_id = manifest.server.server_id
        self.version = manifest.document_version

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints of the manifest."""
        return await self._service.endpoints(refresh=refresh)

    async def document(self, media_type: str, request: Any) -> bytes | None:
        """Ask an AGTP service for a document; other services on the web have theirs at addresses of their own."""
        if not self._manifest.agtp_version:
            return None
        reply = await self._client.request("DISCOVER", "/", headers={"Accept": media_type})
        kind = essence(reply.headers.get("content-type", ""))
        return reply.body if reply.ok and kind.startswith(media_type) else None

    def caller(self, request: Any) -> str:
        """Return the Agent-ID of the client."""
        return self._caller

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if another party confirms every call: the contract says so, or the service has."""
        return self._service.is_confirmed(endpoint)

    def refuse(self, endpoint: Endpoint, request: Any) -> Outcome | None:
        """Refuse a call whose scopes are known to be missing."""
        missing = self._service.lacking(endpoint)
        if not missing:
            return None
        message = f"{endpoint} needs the scopes {', '.join(missing)}, which this server was not started with."
        error = {"code": "scope-violation", "message": message, "missing_scopes": missing}
        return Outcome(status.SCOPE_VIOLATION, error=error)

    async def call(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str], request: Any
    ) -> Outcome:
        """Call an endpoint and read its reply, whatever the status."""
        return await self._service.call(endpoint, arguments, headers)
