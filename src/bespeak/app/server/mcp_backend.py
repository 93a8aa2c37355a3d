"""A service behind MCP that is called through a client: inside this process, over AGTP or on the web."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bespeak.agent.client.service import CalledService, ServiceClient
from bespeak.contract.confirmation import ListedCall, list_named
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.mcp_tool import offered_by
from bespeak.contract.service import Service
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.faces.http.dispatched import judge_purchase
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import essence
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal, Scopes
from bespeak.protocol.exchange.refusal import Fault, Outcome, Refused, refused
from bespeak.runtime.call import Call, parties_of
from bespeak.runtime.extension import LIST_CALLS
from bespeak.runtime.server import Server


class ClientBackend:
    def __init__(
        self,
        client: ServiceClient,
        manifest: ManifestDocument,
        *,
        caller: str = "",
        scopes: Scopes | None = None,
        service: Service | None = None,
        server: Server | None = None,
    ) -> None:
        """Serve what a manifest describes.

        `caller` is the Agent-ID of the client, and `scopes` its authority, None if only the service knows it. `service`
        is a loaded target, and `server` what serves it inside this process.
        """
        self._client = client
        self._server = server
        self._described: Sequence[Endpoint] | None = None
        self._offered: Sequence[Endpoint] = ()
        self._manifest = manifest
        policies = manifest.policies if service is None else service.policies
        self._service = CalledService(client, policies=policies, scopes=scopes)
        self._caller = caller
        name = manifest.server.name if service is None else service.identity.name
        self.name = name or manifest.server.server_id
        self.server_id = manifest.server.server_id
        self.version = manifest.document_version

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints of the manifest. What serves a loaded target knows which of them are prompts."""
        found = await self._service.endpoints(refresh=refresh)
        if self._server is not None and found is not self._described:
            own = self._server.routes.endpoints
            self._described = found
            self._offered = [
                replace(one, handler=own[one.key].handler)
                if one.key in own and offered_by(own[one.key]) is not None
                else one
                for one in found
            ]
        return found if self._server is None else self._offered

    def own(self, request: Any) -> None:
        """Return None: there is one caller, and the manifest is what the service shows it."""
        return

    async def document(self, media_type: str, request: Any) -> bytes | None:
        """Ask an AGTP service for a document; other services on the web have theirs at addresses of their own."""
        if not self._manifest.agtp_version:
            return None
        reply = await self._client.request("DISCOVER", "/", headers={"Accept": media_type})
        kind = essence(reply.headers.get("content-type", ""))
        return reply.body if reply.ok and kind.startswith(media_type) else None

    def caller(self, request: Any) -> str:
        return self._caller

    def parties(self, request: Any) -> tuple[str, ...]:
        """Return everyone behind the client, as far as this process knows."""
        return () if self._server is None else parties_of(self._call(self._server))

    async def calls(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], request: Any
    ) -> tuple[ListedCall, ...] | Fault:
        if self._server is None:
            return list_named(endpoint, arguments, await self._service.endpoints())
        found = self._server.routes.endpoints.get(endpoint.key)
        return () if found is None else await self._server.hooks[LIST_CALLS](self._call(self._server), found, arguments)

    def _call(self, server: Server) -> Call:
        """Return a call of the client, as it is known by its Agent-ID."""
        call = Call(Request("DISCOVER", "/", "", {}, b"", Connection(face="mcp")), server)
        who = server.principals.resolve(self._caller, None) if self._caller else ANONYMOUS
        call.principal = Principal(agent_id=self._caller) if isinstance(who, Refused) else who
        return call

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if another party confirms every call: the contract says so, or the service has."""
        return self._service.is_confirmed(endpoint)

    def refuse(
        self,
        endpoint: Endpoint,
        request: Any,
        arguments: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Outcome | None:
        """Refuse a call whose scopes are known to be missing, or a purchase here that is not in order."""
        missing = self._service.lacking(endpoint)
        if not missing:
            if self._server is None or arguments is None:
                return None
            found = judge_purchase(self._call(self._server), endpoint, arguments, headers or {})
            return None if found is None else refused(found)
        message = f"{endpoint} needs the scopes {', '.join(missing)}, which this server was not started with."
        error = {"code": "scope-violation", "message": message, "missing_scopes": missing}
        return Outcome(status.SCOPE_VIOLATION, error=error)

    async def call(
        self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str], request: Any
    ) -> Outcome:
        return await self._service.call(endpoint, arguments, headers)
