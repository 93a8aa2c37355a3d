"""Calls of endpoints through a client, with the outcome in terms of AGTP."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from bespeak.agent.client.reply import Reply
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import BespeakError, RemoteProtocolError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import SEMANTIC_MAPPING
from bespeak.protocol.exchange.outcome import Outcome
from bespeak.protocol.exchange.scope import Scopes

if TYPE_CHECKING:
    from bespeak.agent.discovery.discovered import Discovered

_QUERY: Final = re.compile(r"\?\S+")


class Requesting(Protocol):
    """What is needed of a client to call endpoints."""

    discovered: Discovered | None

    async def discover(self, *, refresh: bool = False) -> ManifestDocument:
        """Return the manifest."""
        ...

    async def request(
        self,
        method: str,
        path: str = "",
        input: Mapping[str, Any] | None = None,  # noqa: A002 - as the client has it
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request and return its reply."""
        ...


class CalledService:
    """The endpoints of a service, called with the authority of a client."""

    def __init__(self, client: Requesting, *, policies: Policies | None = None, scopes: Scopes | None = None) -> None:
        """Call through a client.

        `policies` are those of a loaded service; None for those of the manifest. `scopes` are the authority of the
        client; None if only the service knows it.
        """
        self._client = client
        self._policies = policies
        self._scopes = scopes
        self._manifest: ManifestDocument | None = None
        self._endpoints: tuple[Endpoint, ...] = ()
        self._confirmed: set[tuple[str, str]] = set()
        """Endpoints whose service has demanded a confirmation: not all documents on the web tell."""

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        """Return the endpoints of the manifest, the same object until they change."""
        manifest = await self._client.discover(refresh=refresh)
        if manifest is not self._manifest:
            self._manifest, self._endpoints = manifest, manifest.offered_endpoints
        return self._endpoints

    def is_confirmed(self, endpoint: Endpoint) -> bool:
        """Return True if another party confirms every call: the contract says so, or the service has."""
        policies = self._policies or (self._manifest.policies if self._manifest is not None else Policies())
        return needs_confirmation(endpoint, policies) or endpoint.key in self._confirmed

    def lacking(self, endpoint: Endpoint) -> list[str]:
        """Return the scopes that a call needs and the client is known not to have."""
        return [] if self._scopes is None else self._scopes.missing(endpoint.required_scopes)

    async def call(self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
        """Call an endpoint and read its reply, whatever the status."""
        try:
            reply = await self._client.request(*self._named(endpoint), arguments or None, headers=headers)
        except BespeakError as error:  # the client says what failed and what may help
            # The query of an address may hold a credential.
            message = _QUERY.sub("", str(error))
            return Outcome(status.SERVER_ERROR, error={"code": "service-not-reached", "message": message})
        outcome = _outcome(reply)
        if outcome.confirmation_id is not None:
            self._confirmed.add(endpoint.key)
        return outcome

    def _named(self, endpoint: Endpoint) -> tuple[str, str]:
        """Return how the client names an endpoint: on the web by its id, for several may share a method and a path."""
        discovered, chosen = self._client.discovered, endpoint.semantic.mcp_tool_name or ""
        by_id = discovered is not None and discovered.kind in ("ai", "openapi") and discovered.capability(chosen)
        return (chosen, "") if by_id else endpoint.key


def _outcome(reply: Reply) -> Outcome:
    retry_after, mapping = reply.headers.get("retry-after"), reply.headers.get(SEMANTIC_MAPPING)
    if reply.error is not None:
        members = {**reply.error.members, "code": reply.error.code, "message": reply.error.message}
        return Outcome(reply.status, error=members, retry_after=retry_after, mapping=mapping)
    warning = reply.headers.get("agtp-endpoint-warning") or reply.headers.get("agtp-catalog-warning")
    try:
        output = reply.output
    except RemoteProtocolError:
        output = reply.body.decode(errors="replace")
    return Outcome(reply.status, output, warning=warning, mapping=mapping)
