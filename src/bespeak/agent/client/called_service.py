"""A service as it is called for others: by tools, and by a face that passes calls on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bespeak.agent.client.errors import Reply
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import parse_template
from bespeak.contract.policy import Policies
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import BespeakError, RemoteProtocolError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import SEMANTIC_MAPPING
from bespeak.protocol.exchange.principal import Scopes
from bespeak.protocol.exchange.refusal import Fault, Outcome

if TYPE_CHECKING:
    from bespeak.agent.client.service import ServiceClient

_QUERY: Final = re.compile(r"\?\S+")


class CalledService:
    """The endpoints of a service, called with the authority of a client."""

    def __init__(
        self, client: ServiceClient, *, policies: Policies | None = None, scopes: Scopes | None = None
    ) -> None:
        """Call through a client. Without `policies` the manifest has them; without `scopes` the service knows."""
        self.keeps_envelopes = False  # True if an output that is published in an envelope is returned in it
        self._client = client
        self._policies = policies
        self._scopes = scopes
        self._manifest: ManifestDocument | None = None
        self._endpoints: tuple[Endpoint, ...] = ()
        self._confirmed: set[tuple[str, str]] = set()  # endpoints whose service has demanded a confirmation

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
        return [] if self._scopes is None else self._scopes.missing(endpoint.required_scopes)

    async def call(self, endpoint: Endpoint, arguments: Mapping[str, Any], headers: Mapping[str, str]) -> Outcome:
        try:
            placed = await self._place(endpoint, arguments)
            if isinstance(placed, Outcome):
                return placed
            reply = await self._client.request(*call_name(self._client, endpoint), placed or None, headers=headers)
        except BespeakError as error:  # the client says what failed and what may help
            # The query of an address may hold a credential.
            message = _QUERY.sub("", str(error))
            return Outcome(status.SERVER_ERROR, error={"code": "service-not-reached", "message": message})
        is_enveloped = "result" in endpoint.output_schema.get("required", ())
        outcome = _outcome(reply, is_whole=self.keeps_envelopes and is_enveloped)
        if outcome.confirmation_id is not None:
            self._confirmed.add(endpoint.key)
        return outcome

    async def _place(self, endpoint: Endpoint, arguments: Mapping[str, Any]) -> Mapping[str, Any] | Outcome:
        """Give arguments in another vocabulary that belong into the path the names that they have there.

        Their values stay as they are: the service translates them.
        """
        envelope, template = arguments.get("semantic"), parse_template(endpoint.path)
        names = () if isinstance(template, Fault) or not call_name(self._client, endpoint)[1] else template.parameters
        if not names or not isinstance(envelope, dict) or "@context" not in envelope:
            return arguments
        asked = {"semantic_profile": envelope, "endpoint": {"method": endpoint.method, "path": endpoint.path}}
        reply = await self._client.request("DESCRIBE", "/", asked)
        told = reply.output.get("semantic", {}) if reply.error is None and isinstance(reply.output, dict) else {}
        inputs: Mapping[str, str] = told.get("data", {}).get("inputs", {})
        foreign = sorted(set(names) & set(inputs.values()) & arguments.keys() - inputs.keys())
        if foreign:
            message = f"{', '.join(foreign)} must be in the vocabulary of the envelope, as all arguments are."
            return Outcome(status.UNPROCESSABLE, error={"code": "semantic-input-untranslated", "message": message})
        placed = {name: inputs[name] for name in arguments if inputs.get(name) in names}
        return {placed.get(name, name): value for name, value in arguments.items()}


def call_name(client: ServiceClient, endpoint: Endpoint) -> tuple[str, str]:
    """Return how a client names an endpoint: on the web by its id, for several may share a method and a path."""
    discovered, chosen = client.discovered, endpoint.semantic.mcp_tool_name or ""
    by_id = discovered is not None and discovered.kind in ("ai", "openapi") and discovered.capability(chosen)
    return (chosen, "") if by_id else endpoint.key


def _outcome(reply: Reply, *, is_whole: bool = False) -> Outcome:
    retry_after, mapping = reply.headers.get("retry-after"), reply.headers.get(SEMANTIC_MAPPING)
    if reply.error is not None:
        members = {**reply.error.members, "code": reply.error.code, "message": reply.error.message}
        return Outcome(reply.status, error=members, retry_after=retry_after, mapping=mapping)
    warning = reply.headers.get("agtp-endpoint-warning") or reply.headers.get("agtp-catalog-warning")
    try:
        output = reply.json() if is_whole else reply.output
    except RemoteProtocolError:
        output = reply.body.decode(errors="replace")
    return Outcome(reply.status, output, warning=warning, mapping=mapping)
